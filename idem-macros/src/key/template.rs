//! A template: paths in braces, with punctuation between them.

use super::Path;

/// What a text key is made of, checked so that different values always give different text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) pieces: Vec<Piece>,
    /// Each punctuation character among the literals, to be escaped inside the values.
    pub(crate) punctuation: String,
}

/// A part of a template.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Literal(String),
    Path(Path),
}

impl Template {
    /// Reads a template, or a path alone.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        if text.trim().is_empty() {
            return Err("an empty key would be the same for every call; write a path, as in \"request.order_no\"".to_owned());
        }
        let is_spring = text.trim_start().starts_with(['#', '$'])
            && (text.contains('+') || !text.contains('{'));
        if is_spring || !text.contains(['{', '}']) {
            let pieces = vec![Piece::Path(Path::parse(text)?)];
            return Ok(Self {
                pieces,
                punctuation: String::new(),
            });
        }
        let pieces = pieces(text)?;
        check_constant(text, &pieces)?;
        check_literals(&pieces)?;
        check_neighbours(&pieces)?;
        let punctuation = punctuation(&pieces);
        Ok(Self {
            pieces,
            punctuation,
        })
    }
}

fn pieces(text: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '{' | '}' if rest.starts_with(c) => {
                literal.push(c);
                rest = &rest[1..];
            }
            '{' => {
                let end = closing(rest).ok_or_else(|| {
                    format!("`{{{rest}` is not closed; a literal brace is written `{{{{`")
                })?;
                flush(&mut literal, &mut pieces);
                pieces.push(Piece::Path(placeholder(&rest[..end])?));
                rest = &rest[end + 1..];
            }
            '}' => return Err("a `}` closes nothing; a literal brace is written `}}`".to_owned()),
            c => literal.push(c),
        }
    }
    flush(&mut literal, &mut pieces);
    Ok(pieces)
}

fn flush(literal: &mut String, pieces: &mut Vec<Piece>) {
    if !literal.is_empty() {
        pieces.push(Piece::Literal(std::mem::take(literal)));
    }
}

/// Where the placeholder ends at whose beginning `rest` stands: not in a quoted name, unless the
/// quote is never closed.
fn closing(rest: &str) -> Option<usize> {
    let mut is_quoted = false;
    let unquoted = rest.find(|c| {
        is_quoted ^= c == '"';
        c == '}' && !is_quoted
    });
    unquoted.or_else(|| rest.find('}'))
}

fn placeholder(text: &str) -> Result<Path, String> {
    if text.trim().is_empty() {
        return Err("`{}` is empty; name an argument, as in `{request.order_no}`".to_owned());
    }
    Path::parse(text).map_err(|mistake| match text.split_once(':') {
        Some((path, _)) if Path::parse(path).is_ok() => {
            format!("`{{{text}}}`: a key takes no format; write `{{{path}}}`")
        }
        _ => mistake,
    })
}

fn check_constant(text: &str, pieces: &[Piece]) -> Result<(), String> {
    if pieces.iter().any(|piece| matches!(piece, Piece::Path(_))) {
        return Ok(());
    }
    Err(format!(
        "`{text}` names no argument: every call would share one record"
    ))
}

fn check_literals(pieces: &[Piece]) -> Result<(), String> {
    for literal in pieces.iter().filter_map(Piece::literal) {
        if let Some(bad) = literal
            .chars()
            .find(|&c| c == '%' || c == '~' || c.is_whitespace() || c.is_control())
        {
            return Err(format!(
                "a literal in a key can not hold {bad:?}: `%`, `~`, white space and controls are kept for escaping"
            ));
        }
    }
    Ok(())
}

fn check_neighbours(pieces: &[Piece]) -> Result<(), String> {
    for neighbours in pieces.windows(2) {
        if let [Piece::Path(left), Piece::Path(right)] = neighbours {
            return Err(touching(left, right, "touch"));
        }
    }
    for neighbours in pieces.windows(3) {
        if let [
            Piece::Path(left),
            Piece::Literal(between),
            Piece::Path(right),
        ] = neighbours
            && !between.chars().any(is_punctuation)
        {
            return Err(touching(left, right, "have no punctuation between them"));
        }
    }
    Ok(())
}

fn touching(left: &Path, right: &Path, how: &str) -> String {
    let (left, right) = (&left.text, &right.text);
    format!(
        "`{{{left}}}` and `{{{right}}}` {how}, so that 1 and 23 would give the key of 12 and 3; write `{{{left}}}:{{{right}}}`"
    )
}

fn punctuation(pieces: &[Piece]) -> String {
    let mut all = String::new();
    for c in pieces
        .iter()
        .filter_map(Piece::literal)
        .flat_map(str::chars)
    {
        if is_punctuation(c) && !all.contains(c) {
            all.push(c);
        }
    }
    all
}

fn is_punctuation(c: char) -> bool {
    !c.is_alphanumeric()
}

impl Piece {
    fn literal(&self) -> Option<&str> {
        match self {
            Self::Literal(literal) => Some(literal),
            Self::Path(_) => None,
        }
    }
}
