//! Values taken from the arguments: key parts and fingerprints.

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{Expr, ExprAsync, ExprClosure, ExprTry, Lit};

use super::readable;
use crate::args::{Args, Given};
use crate::key::{Path, Piece, Template, unknown_root};
use crate::mistakes::Mistakes;
use crate::signature::{Body, Function};

/// A piece of the key.
pub(crate) enum Part {
    Literal(String),
    Value(Value),
}

/// A value that the call reads before its arguments move.
pub(crate) struct Value {
    /// How messages call it.
    pub(crate) name: String,
    pub(crate) source: Source,
}

/// Where a value comes from.
pub(crate) enum Source {
    /// A checked path. `root` has the argument's hygiene and the literal's place.
    Path { root: Ident, path: Path, span: Span },
    /// The user's expression; `tries` when it leaves by `?`.
    Expr { expr: Expr, tries: bool },
}

pub(crate) fn key(
    args: &Args,
    function: Option<&Function>,
    mistakes: &mut Mistakes,
) -> (Vec<Part>, String) {
    let Some(given) = &args.key else {
        return Default::default();
    };
    if let Some(Lit::Str(text)) = given.literal() {
        let template = Template::parse(&text.value()).map_err(|reason| given.error(reason));
        return mistakes
            .keep(template)
            .map(|template| from_template(template, text.span(), function, mistakes))
            .unwrap_or_default();
    }
    let constant = "this key names no argument: every call would share one record";
    refuse_constant(given, constant, mistakes);
    let exprs = elements(&given.value);
    let parts = unquoted(exprs, function).into_iter().map(Part::Value);
    (parts.collect(), String::new())
}

fn from_template(
    template: Template,
    span: Span,
    function: Option<&Function>,
    mistakes: &mut Mistakes,
) -> (Vec<Part>, String) {
    let parts = template.pieces.into_iter().filter_map(|piece| match piece {
        Piece::Literal(text) => Some(Part::Literal(text)),
        Piece::Path(path) => from_path(path, span, function?, mistakes).map(Part::Value),
    });
    (parts.collect(), template.punctuation)
}

pub(crate) fn fingerprint(
    args: &Args,
    function: Option<&Function>,
    mistakes: &mut Mistakes,
) -> Vec<Value> {
    let Some(given) = &args.fingerprint else {
        return Vec::new();
    };
    let Some(Lit::Str(text)) = given.literal() else {
        let exprs = elements(&given.value);
        for expr in exprs.iter().filter(|expr| tries(expr)) {
            mistakes.add(syn::Error::new_spanned(
                expr,
                "a fingerprint expression can not leave by `?`; write the path in quotes: fingerprint = \"request.coupon?.code\"",
            ));
        }
        return unquoted(exprs, function);
    };
    let mut values = Vec::new();
    for path in text.value().split(',') {
        values.extend(path_at(given, path, text.span(), function, mistakes));
    }
    values
}

/// One path, written in the literal at `span`.
pub(super) fn path_at(
    given: &Given,
    path: &str,
    span: Span,
    function: Option<&Function>,
    mistakes: &mut Mistakes,
) -> Option<Value> {
    let path = Path::parse(path).map_err(|reason| given.error(reason));
    let path = mistakes.keep(path)?;
    from_path(path, span, function?, mistakes)
}

/// The expressions of a value without quotes.
pub(super) fn unquoted(exprs: Vec<&Expr>, function: Option<&Function>) -> Vec<Value> {
    exprs
        .into_iter()
        .filter_map(|expr| Some(from_expr(expr, function?)))
        .collect()
}

/// The elements of a tuple at the top, or the expression alone.
pub(super) fn elements(expr: &Expr) -> Vec<&Expr> {
    match expr {
        Expr::Tuple(tuple) => tuple.elems.iter().collect(),
        Expr::Paren(inner) => elements(&inner.expr),
        other => vec![other],
    }
}

fn from_expr(expr: &Expr, function: &Function) -> Value {
    let name = readable(expr.to_token_stream());
    let placed = placed(expr, function);
    // A rename of `self` keeps an expression an expression.
    let expr = syn::parse2(placed).unwrap_or_else(|_| expr.clone());
    let tries = tries(&expr);
    Value {
        name,
        source: Source::Expr { expr, tries },
    }
}

fn from_path(
    path: Path,
    span: Span,
    function: &Function,
    mistakes: &mut Mistakes,
) -> Option<Value> {
    let argument = match (path.root.as_str(), &function.receiver) {
        ("self", Some(receiver)) => Some(&receiver.name),
        (root, _) => function
            .bindings
            .iter()
            .map(|binding| &binding.name)
            .find(|name| name.unraw() == root),
    };
    let Some(argument) = argument else {
        let roots = function.roots();
        mistakes.at(
            span,
            unknown_root(&path.root, roots.iter().map(String::as_str)),
        );
        return None;
    };
    let mut root = argument.clone();
    root.set_span(span.resolved_at(argument.span()));
    let name = path.text.clone();
    Some(Value {
        name,
        source: Source::Path { root, path, span },
    })
}

/// An expression as it reads at the place of the guard: in a body that async-trait rewrote,
/// `self` is called `__self`.
pub(crate) fn placed(expr: &Expr, function: &Function) -> TokenStream {
    let tokens = expr.to_token_stream();
    match (&function.receiver, &function.body) {
        (Some(receiver), Body::Boxed(_)) => rename_self(tokens, &receiver.name),
        _ => tokens,
    }
}

fn rename_self(tokens: TokenStream, name: &Ident) -> TokenStream {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let rename = |(at, token): (usize, &TokenTree)| match token {
        TokenTree::Ident(ident) if ident == "self" && !opens_path(&tokens[at + 1..]) => {
            let mut renamed = name.clone();
            renamed.set_span(ident.span().resolved_at(name.span()));
            TokenTree::Ident(renamed)
        }
        TokenTree::Group(group) => {
            let mut renamed = Group::new(group.delimiter(), rename_self(group.stream(), name));
            renamed.set_span(group.span());
            TokenTree::Group(renamed)
        }
        other => other.clone(),
    };
    tokens.iter().enumerate().map(rename).collect()
}

/// Whether what stands before these is the module or type of a path: `self` in `self::look_up`.
fn opens_path(behind: &[TokenTree]) -> bool {
    match behind {
        [first, second, rest @ ..] if is_punct(first, ':') && is_punct(second, ':') => {
            !rest.first().is_some_and(|token| is_punct(token, '<'))
        }
        _ => false,
    }
}

/// Whether the expression itself, not a closure or block within, leaves by `?`.
fn tries(expr: &Expr) -> bool {
    struct Tries(bool);
    impl<'ast> Visit<'ast> for Tries {
        fn visit_expr_try(&mut self, _: &'ast ExprTry) {
            self.0 = true;
        }
        fn visit_expr_closure(&mut self, _: &'ast ExprClosure) {}
        fn visit_expr_async(&mut self, _: &'ast ExprAsync) {}
    }
    let mut tries = Tries(false);
    visit::visit_expr(&mut tries, expr);
    match expr {
        Expr::Try(_) => true,
        _ => tries.0,
    }
}

/// A key of literals and constants only is the same for every request. A small name that is not a
/// member of something, nor where it is to be found, may be an argument or a function, or a wrong name,
/// which rustc knows better.
pub(super) fn refuse_constant(given: &Given, message: &str, mistakes: &mut Mistakes) {
    if !varies(given.value.to_token_stream()) {
        mistakes.add(given.error(message));
    }
}

fn varies(tokens: TokenStream) -> bool {
    let tokens: Vec<_> = tokens.into_iter().collect();
    let mut is_member = false;
    let mut is_constant_macro = false;
    tokens.iter().enumerate().any(|(at, token)| {
        // The type of a cast is no value, either.
        let is_next = is_punct(token, '.') || is_word(token, &["as"]);
        let member = std::mem::replace(&mut is_member, is_next);
        match token {
            TokenTree::Ident(name) => {
                is_constant_macro = is_word(token, CONSTANT_MACROS);
                let is_constant = is_constant_macro
                    || is_word(token, &["as", "true", "false"])
                    || opens_path(&tokens[at + 1..]);
                !member && !is_constant && is_small(name)
            }
            TokenTree::Group(group) => {
                !std::mem::take(&mut is_constant_macro) && varies(group.stream())
            }
            _ => false,
        }
    })
}

const CONSTANT_MACROS: &[&str] = &[
    "concat",
    "stringify",
    "env",
    "file",
    "line",
    "column",
    "module_path",
    "include_str",
];

fn is_word(token: &TokenTree, words: &[&str]) -> bool {
    matches!(token, TokenTree::Ident(name) if words.iter().any(|word| name == word))
}

fn is_small(name: &Ident) -> bool {
    name.unraw().to_string().starts_with(char::is_lowercase)
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}
