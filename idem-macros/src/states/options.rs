//! What stands in `#[state(…)]`, with its spans.

use proc_macro2::{Ident, Span, TokenTree};
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{Attribute, Lit, LitInt, LitStr, Path, Token, parenthesized};

use crate::mistakes::{Mistakes, list, nearest};

const OPTIONS: [&str; 3] = ["code", "name", "to"];

/// What people write first, and what it is called here.
const HABITS: &[(&str, &str)] = &[
    ("value", "`code`, a number: code = 1"),
    ("id", "`code`, a number: code = 1"),
    ("label", "`name`"),
    ("title", "`name`"),
    ("desc", "`name`"),
    ("description", "`name`"),
    ("next", "`to`, with the states in parentheses"),
    ("transitions", "`to`, with the states in parentheses"),
    ("successors", "`to`, with the states in parentheses"),
];

/// A code, and where it stands.
pub(super) struct Code {
    pub(super) value: i16,
    pub(super) span: Span,
}

/// The options of one state.
#[derive(Default)]
pub(super) struct Options {
    pub(super) code: Option<Code>,
    pub(super) name: Option<LitStr>,
    pub(super) to: Option<Vec<Ident>>,
    /// A code that is not usable was given: its absence is not a second mistake.
    pub(super) is_code_given: bool,
}

impl Options {
    pub(super) fn parse(attributes: &[Attribute], mistakes: &mut Mistakes) -> Self {
        let mut options = Self::default();
        let mut seen = Vec::new();
        for attribute in attributes.iter().filter(|it| it.path().is_ident("state")) {
            let parsed = attribute.parse_nested_meta(|meta| {
                let option = meta.path.get_ident().map(ToString::to_string);
                let option = option.unwrap_or_default();
                let parsed = if seen.contains(&option) {
                    Err(meta.error(format!("`{option}` is given twice")))
                } else {
                    options.put(&option, &meta.path, meta.input)
                };
                if mistakes.keep(parsed).is_none() {
                    skip_to_comma(meta.input)?;
                }
                seen.push(option);
                Ok(())
            });
            mistakes.keep(parsed);
        }
        options
    }

    fn put(&mut self, option: &str, path: &Path, input: ParseStream<'_>) -> syn::Result<()> {
        match option {
            "code" => {
                self.is_code_given = true;
                self.code = Some(code(input)?);
            }
            "name" => self.name = Some(name(input)?),
            "to" => self.to = Some(targets(path, input)?),
            _ => return Err(syn::Error::new_spanned(path, unknown(option))),
        }
        Ok(())
    }
}

/// Where the runtime is: `#[state(crate = path)]` on the enum, for re-exports.
pub(super) fn krate(attributes: &[Attribute], mistakes: &mut Mistakes) -> Path {
    let mut krate = syn::parse_quote!(::idem_core);
    for attribute in attributes.iter().filter(|it| it.path().is_ident("state")) {
        let parsed = attribute.parse_nested_meta(|meta| {
            if !meta.path.is_ident("crate") {
                return Err(meta.error(
                    "the only option of the whole enum is `crate`; the others stand at each variant",
                ));
            }
            krate = meta.value()?.call(Path::parse_mod_style)?;
            Ok(())
        });
        mistakes.keep(parsed);
    }
    krate
}

fn unknown(option: &str) -> String {
    if let Some((_, ours)) = HABITS.iter().find(|(habit, _)| *habit == option) {
        return format!("there is no option `{option}`; here it is {ours}");
    }
    match nearest(option, OPTIONS) {
        Some(near) => format!("there is no option `{option}`; did you mean `{near}`?"),
        None => format!(
            "there is no option `{option}`; the options are {}",
            list(OPTIONS)
        ),
    }
}

fn code(input: ParseStream<'_>) -> syn::Result<Code> {
    const RULE: &str = "a code is a whole number from -32768 to 32767: code = 1";
    input.parse::<Token![=]>()?;
    let minus: Option<Token![-]> = input.parse()?;
    let span = input.span();
    let digits: LitInt = input.parse().map_err(|_| syn::Error::new(span, RULE))?;
    let sign = if minus.is_some() { "-" } else { "" };
    let value = format!("{sign}{}", digits.base10_digits()).parse();
    match value {
        Ok(value) if matches!(digits.suffix(), "" | "i16") => Ok(Code { value, span }),
        _ => Err(syn::Error::new(span, RULE)),
    }
}

fn name(input: ParseStream<'_>) -> syn::Result<LitStr> {
    input.parse::<Token![=]>()?;
    match input.parse()? {
        Lit::Str(name) if !name.value().trim().is_empty() => Ok(name),
        other => Err(syn::Error::new_spanned(
            other,
            "`name` is a text that people read: name = \"paid\"",
        )),
    }
}

fn targets(path: &Path, input: ParseStream<'_>) -> syn::Result<Vec<Ident>> {
    if !input.peek(syn::token::Paren) {
        return Err(syn::Error::new_spanned(
            path,
            "the states stand in parentheses: to(Paid, Cancelled)",
        ));
    }
    let within;
    parenthesized!(within in input);
    let targets = Punctuated::<Ident, Token![,]>::parse_terminated(&within)?;
    Ok(targets.into_iter().collect())
}

fn skip_to_comma(input: ParseStream<'_>) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}
