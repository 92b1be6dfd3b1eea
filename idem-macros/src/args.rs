//! Stage one: what was written between the parentheses, with its spans.

mod value;
mod words;

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::Expr;
use syn::parse::{ParseStream, Parser};

pub(crate) use value::{Given, Time};
pub(crate) use words::{IDEMPOTENT, LOCKED, Words};

use crate::mistakes::{Mistakes, list, nearest};

macro_rules! options {
    ($($field:ident $name:literal,)*) => {
        /// Each option as it was given.
        #[derive(Default)]
        pub(crate) struct Args {
            $(pub(crate) $field: Option<Given>,)*
        }

        /// Every option that can be written.
        pub(crate) const OPTIONS: &[&str] = &[$($name,)*];

        impl Args {
            fn slot(&mut self, name: &str) -> Option<&mut Option<Given>> {
                match name {
                    $($name => Some(&mut self.$field),)*
                    _ => None,
                }
            }
        }
    };
}

options! {
    prefix "prefix",
    key "key",
    token "token",
    subject "subject",
    expire "expire",
    lease "lease",
    on_duplicate "on_duplicate",
    in_progress "in_progress",
    wait "wait",
    on_error "on_error",
    replay_errors "replay_errors",
    on_abandoned "on_abandoned",
    checkpoint "checkpoint",
    recover "recover",
    fingerprint "fingerprint",
    forget "forget",
    message "message",
    engine "engine",
    on_store_error "on_store_error",
    on_missing_key "on_missing_key",
    detach "detach",
    tx "tx",
    krate "crate",
}

/// What people who come from other libraries write, and what it is called here.
const HABITS: &[(&str, &str)] = &[
    ("name", "`prefix`"),
    ("business_type", "`prefix`"),
    ("prefix_key", "`prefix`"),
    (
        "keys",
        "`key`, with a template for several parts: key = \"{request.user_id}:{request.order_no}\"",
    ),
    ("spel", "`key`, as a path: key = \"request.order_no\""),
    (
        "key_expression",
        "`key`, as a path: key = \"request.order_no\"",
    ),
    (
        "idempotency_key",
        "`key`, as a path: key = \"request.order_no\"",
    ),
    ("ttl", "`expire`"),
    ("expire_time", "`expire`"),
    ("expiration", "`expire`"),
    ("expires", "`expire`"),
    (
        "expire_seconds",
        "`expire`, in seconds or with a unit: expire = \"10m\"",
    ),
    ("time_unit", "a unit in the value: expire = \"10m\""),
    (
        "timeout",
        "`lease` (how long a silent attempt keeps its record), `wait` or `expire`",
    ),
    ("lock_timeout", "`lease`"),
    ("lease_time", "`lease`"),
    ("wait_time", "`wait`"),
    ("del_key", "`forget = true`"),
    ("delete_key", "`forget = true`"),
    ("info", "`message`"),
    ("msg", "`message`"),
    ("store", "`engine`"),
    ("client", "`engine`"),
    ("payload", "`fingerprint`"),
    ("transaction", "`tx`"),
];

impl Args {
    pub(crate) fn parse(tokens: TokenStream, words: &Words, mistakes: &mut Mistakes) -> Self {
        let mut args = Self::default();
        for option in split(tokens) {
            if let Some(given) = mistakes.keep(parse_option(option)) {
                args.put(given, words, mistakes);
            }
        }
        args
    }

    fn put(&mut self, given: Given, words: &Words, mistakes: &mut Mistakes) {
        let name = given.name.to_string();
        match self.slot(&name).filter(|_| words.know(&name)) {
            None => mistakes.at(given.name.span(), (words.unknown)(&name)),
            Some(Some(_)) => mistakes.at(given.name.span(), format!("`{name}` is given twice")),
            Some(slot) => *slot = Some(given),
        }
    }
}

fn unknown(name: &str) -> String {
    let snake = crate::key::snake_case(name);
    if let Some((_, ours)) = HABITS.iter().find(|(habit, _)| *habit == snake) {
        return format!("there is no option `{name}`; here it is {ours}");
    }
    match nearest(&snake, OPTIONS.iter().copied()) {
        Some(near) => format!("there is no option `{name}`; did you mean `{near}`?"),
        None => format!(
            "there is no option `{name}`; the options are {}",
            list(OPTIONS.iter().copied())
        ),
    }
}

/// Parts the options at commas. A comma inside an expression (`f::<A, B>()`, `|a, b| …`) is not
/// followed by `name =`, nor by the name of an option alone.
fn split(tokens: TokenStream) -> Vec<Vec<TokenTree>> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut options = vec![Vec::new()];
    for (at, token) in tokens.iter().enumerate() {
        if is_punct(Some(token), ',') && begins_option(&tokens[at + 1..]) {
            options.push(Vec::new());
        } else if let Some(option) = options.last_mut() {
            option.push(token.clone());
        }
    }
    options.retain(|option| !option.is_empty());
    options
}

fn begins_option(rest: &[TokenTree]) -> bool {
    let Some(TokenTree::Ident(name)) = rest.first() else {
        return rest.is_empty();
    };
    let assigned =
        is_punct(rest.get(1), '=') && !is_punct(rest.get(2), '=') && !is_punct(rest.get(2), '>');
    let alone = rest.len() == 1 || is_punct(rest.get(1), ',');
    assigned || (alone && OPTIONS.contains(&name.to_string().as_str()))
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn parse_option(option: Vec<TokenTree>) -> syn::Result<Given> {
    let mut tokens = option.into_iter();
    let first = tokens.next();
    let Some(TokenTree::Ident(name)) = first else {
        return Err(syn::Error::new_spanned(
            first.map(ToTokens::into_token_stream),
            "expected an option, as in prefix = \"order:pay\"",
        ));
    };
    if !is_punct(tokens.next().as_ref(), '=') {
        return Err(needs_value(&name));
    }
    let value: TokenStream = tokens.collect();
    if value.is_empty() {
        return Err(needs_value(&name));
    }
    let read = |input: ParseStream<'_>| {
        let value = input.parse::<Expr>()?;
        if input.is_empty() {
            return Ok(value);
        }
        Err(input.error("expected `,` and the next option"))
    };
    match read.parse2(value.clone()) {
        Ok(value) => Ok(Given {
            name,
            value: ungrouped(value),
        }),
        Err(error) => {
            let message = format!("the value of `{name}` can not be read: {error}");
            Err(syn::Error::new_spanned(value, message))
        }
    }
}

/// A value that came through `macro_rules!` stands in an invisible group.
fn ungrouped(value: Expr) -> Expr {
    match value {
        Expr::Group(group) => ungrouped(*group.expr),
        other => other,
    }
}

fn needs_value(name: &Ident) -> syn::Error {
    let example = match name.to_string().as_str() {
        "checkpoint" | "forget" | "detach" | "replay_errors" => "true",
        "expire" | "lease" | "wait" => "\"10m\"",
        "tx" => "tx",
        _ => "…",
    };
    syn::Error::new(
        name.span(),
        format!("`{name}` needs a value: {name} = {example}"),
    )
}
