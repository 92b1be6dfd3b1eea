//! A path: an argument's name and the way from it to a value.

use unicode_ident::{is_xid_continue, is_xid_start};

use crate::mistakes::list;

/// `request.coupon?.codes[0]`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// As written, for messages.
    pub(crate) text: String,
    /// The argument, or `self`.
    pub(crate) root: String,
    pub(crate) steps: Vec<Step>,
}

/// One step of a path.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// `.name`
    Field(String),
    /// `.0`
    Element(u32),
    /// `.name()`
    Call(String),
    /// `[0]`: missing when it is not there
    At(usize),
    /// `["name"]`: missing when it is not there
    Entry(String),
    /// `?`: missing when it is `None`
    Try,
}

impl Step {
    /// Whether this step may lead nowhere.
    pub(crate) fn may_miss(&self) -> bool {
        matches!(self, Self::At(_) | Self::Entry(_) | Self::Try)
    }
}

impl Path {
    /// Reads a whole path; the error is a sentence without an end.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.starts_with('#') || text.starts_with('$') {
            return Err(spring(text));
        }
        let mut cursor = Cursor { rest: text, text };
        let root = cursor.name("an argument's name")?;
        let mut steps = Vec::new();
        while !cursor.rest.is_empty() {
            steps.push(cursor.step()?);
        }
        Ok(Self {
            text: text.to_owned(),
            root,
            steps,
        })
    }
}

struct Cursor<'a> {
    rest: &'a str,
    text: &'a str,
}

impl Cursor<'_> {
    fn step(&mut self) -> Result<Step, String> {
        if self.eat("?") {
            return Ok(Step::Try);
        }
        if self.eat("[") {
            return self.index();
        }
        if self.eat(".") {
            return self.member();
        }
        let found = self.rest.chars().next().unwrap_or_default();
        Err(format!(
            "`{}` is no path: `{found}` can not stand here; after a name come `.field`, `.0`, `[0]`, `[\"name\"]`, `.getter()` or `?`",
            self.text
        ))
    }

    fn member(&mut self) -> Result<Step, String> {
        if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            return self.number().map(Step::Element);
        }
        let name = self.name("a field's name after `.`")?;
        if NO_MEMBERS.contains(&&*name) {
            return Err(format!(
                "`{}`: `{name}` is no name of a field or a getter",
                self.text
            ));
        }
        if !self.eat("(") {
            return Ok(Step::Field(name));
        }
        if self.eat(")") {
            return Ok(Step::Call(name));
        }
        Err(format!(
            "a getter in a path takes no arguments; write the key as an expression, without quotes: key = {}",
            self.text
        ))
    }

    fn index(&mut self) -> Result<Step, String> {
        let step = if self.eat("\"") {
            let end = self.rest.find('"').ok_or_else(|| self.unclosed("\""))?;
            let name = self.rest[..end].to_owned();
            self.rest = &self.rest[end + 1..];
            Step::Entry(name)
        } else if self.rest.starts_with(|c: char| c.is_ascii_digit()) {
            Step::At(self.number()?)
        } else {
            return Err(format!(
                "`{}`: inside `[…]` stands a number or a quoted name",
                self.text
            ));
        };
        if self.eat("]") {
            Ok(step)
        } else {
            Err(self.unclosed("]"))
        }
    }

    fn unclosed(&self, wanted: &str) -> String {
        format!("`{}` ends too early: `{wanted}` is missing", self.text)
    }

    fn number<N: std::str::FromStr>(&mut self) -> Result<N, String> {
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits
            .parse()
            .map_err(|_| format!("`{}`: {digits} is too large", self.text))
    }

    fn name(&mut self, what: &str) -> Result<String, String> {
        self.eat("r#");
        let end = self
            .rest
            .find(|c: char| !is_name(c))
            .unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        if !name.starts_with(|c| c == '_' || is_xid_start(c)) {
            return Err(match self.rest.chars().next() {
                Some(found) => format!(
                    "`{}` is no path: expected {what}, found `{found}`",
                    self.text
                ),
                None => format!("`{}` ends too early: expected {what}", self.text),
            });
        }
        self.rest = rest;
        Ok(name.to_owned())
    }

    fn eat(&mut self, wanted: &str) -> bool {
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

/// What can be no member's name, not even behind `r#`; every other wrong one is rustc's to refuse.
const NO_MEMBERS: [&str; 5] = ["_", "self", "Self", "super", "crate"];

/// Whether rustc takes it in a name.
fn is_name(c: char) -> bool {
    is_xid_continue(c)
}

/// What to write instead of Spring's expression.
fn spring(text: &str) -> String {
    let parts: Vec<String> = text
        .trim_matches(|c| matches!(c, '#' | '$' | '{' | '}'))
        .split('+')
        .map(str::trim)
        .map(|part| {
            match part
                .strip_prefix('\'')
                .and_then(|part| part.strip_suffix('\''))
            {
                Some(literal) => literal.to_owned(),
                None => format!("{{{}}}", rust_path(part)),
            }
        })
        .collect();
    let ours = match parts.as_slice() {
        [only] => only.trim_matches(|c| matches!(c, '{' | '}')).to_owned(),
        several => several.concat(),
    };
    format!("`{text}` is Spring's way of writing; here it is \"{ours}\"")
}

fn rust_path(spring: &str) -> String {
    let bare = spring
        .trim_start_matches(['#', '$', '{'])
        .trim_end_matches('}');
    let steps: Vec<String> = bare.split('.').map(snake_case).collect();
    steps.join(".")
}

/// `orderNo` as `order_no`.
pub(crate) fn snake_case(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        if c.is_uppercase() && !snake.is_empty() && !snake.ends_with('_') {
            snake.push('_');
        }
        snake.extend(c.to_lowercase());
    }
    snake
}

/// Says which arguments a path can start at.
pub(crate) fn unknown_root<'a>(
    root: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
) -> String {
    let near = crate::mistakes::nearest(root, known.clone());
    let arguments = list(known);
    match near {
        Some(near) => format!(
            "no argument is called `{root}`; did you mean `{near}`? The arguments are {arguments}"
        ),
        None => format!("no argument is called `{root}`; the arguments are {arguments}"),
    }
}
