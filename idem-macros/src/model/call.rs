//! The options that shape the generated call: results, recovery, the engine's crate.

use proc_macro2::{Spacing, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, ExprPath, Lit, Path, parse_quote};

use super::tx;
use super::value::placed;
use crate::args::Args;
use crate::mistakes::Mistakes;
use crate::signature::{Binding, Function, Receiver};

/// What happens to results.
pub(crate) struct Results {
    /// Whether duplicates are answered with the stored value.
    pub(crate) stored: bool,
    pub(crate) on_error: OnError,
    /// Whether errors are stored as well.
    pub(crate) replay_errors: bool,
}

/// What an error of the body means.
pub(crate) enum OnError {
    /// The same for each: a variant of `OnError`.
    Always(&'static str),
    /// The user's function, or a closure that captures nothing, decides.
    Classify(Expr),
}

/// A lock stores nothing.
pub(crate) fn results(
    args: &Args,
    is_locked: bool,
    function: Option<&Function>,
    mistakes: &mut Mistakes,
) -> Results {
    let rejects = args
        .on_duplicate
        .as_ref()
        .and_then(|given| given.string().ok())
        .is_some_and(|text| text.value() == "reject");
    let forgets = args.forget.as_ref().and_then(|given| given.flag().ok()) == Some(true);
    let on_error = on_error(args, mistakes);
    let results = Results {
        stored: !rejects && !forgets && !is_locked,
        replay_errors: replay_errors(args, &on_error, mistakes),
        on_error,
    };
    if let Some(function) = function {
        refuse_borrowed(&results, function, mistakes);
    }
    results
}

fn on_error(args: &Args, mistakes: &mut Mistakes) -> OnError {
    let Some(given) = &args.on_error else {
        return OnError::Always("Fail");
    };
    if matches!(given.value, Expr::Path(_) | Expr::Closure(_)) {
        return OnError::Classify(given.value.clone());
    }
    if !matches!(given.literal(), Some(Lit::Str(_))) {
        mistakes.add(given.error("`on_error` is \"fail\", \"release\", \"abandon\", \"replay\", or the path of a `fn(&E) -> OnError`"));
        return OnError::Always("Fail");
    }
    let words = [
        ("fail", "Fail"),
        ("release", "Release"),
        ("abandon", "Abandon"),
        ("replay", "Replay"),
    ];
    OnError::Always(mistakes.keep(given.word(&words)).unwrap_or("Fail"))
}

fn replay_errors(args: &Args, on_error: &OnError, mistakes: &mut Mistakes) -> bool {
    let always = matches!(on_error, OnError::Always("Replay"));
    let Some(given) = &args.replay_errors else {
        return always;
    };
    let wanted = mistakes.keep(given.flag()) == Some(true);
    if wanted && !always && matches!(on_error, OnError::Always(_)) {
        mistakes.at(
            given.name.span(),
            "`replay_errors` belongs to an `on_error` function that answers `Replay`; for every error write on_error = \"replay\"",
        );
    }
    always || wanted
}

fn refuse_borrowed(results: &Results, function: &Function, mistakes: &mut Mistakes) {
    if results.stored
        && let Some(borrow) = function.returned.borrowed_value()
    {
        mistakes.add(syn::Error::new_spanned(
            borrow,
            "a borrowed result can not be stored for duplicates; return an owned value, or say on_duplicate = \"reject\"",
        ));
    }
    if results.replay_errors
        && let Some(borrow) = function.returned.borrowed_error()
    {
        mistakes.add(syn::Error::new_spanned(
            borrow,
            "a borrowed error can not be stored for duplicates; return an owned one",
        ));
    }
}

pub(crate) fn krate(args: &Args) -> syn::Result<Path> {
    let Some(given) = &args.krate else {
        return Ok(parse_quote!(::idem_core));
    };
    match given.path() {
        Some(path) => Ok(path.path.clone()),
        None => {
            Err(given
                .error("`crate` is the path of the runtime, as in crate = my_prelude::idem_core"))
        }
    }
}

pub(crate) fn detach(args: &Args, function: Option<&Function>, mistakes: &mut Mistakes) -> bool {
    let detach = args
        .detach
        .as_ref()
        .and_then(|given| mistakes.keep(given.flag()))
        == Some(true);
    // With `tx` it is the option itself that is a mistake.
    if detach
        && !tx::is_asked_for(args)
        && let Some(borrow) = function.and_then(Function::borrowed_argument)
    {
        mistakes.add(borrow);
    }
    detach
}

pub(crate) fn recover(
    args: &Args,
    function: Option<&Function>,
    mistakes: &mut Mistakes,
) -> Option<TokenStream> {
    let given = args.recover.as_ref()?;
    match &given.value {
        Expr::Path(path) => {
            let function = function?;
            if let Some(binding) = function.bindings.iter().find(|one| !one.cfgs.is_empty()) {
                let name = &binding.name;
                mistakes.add(given.error(format!(
                    "a path is called with every argument, and `{name}` has a `#[cfg]`; write the call: recover = lookup(&gateway, &request.order_no)"
                )));
                return None;
            }
            Some(called(path, function))
        }
        Expr::Call(_) | Expr::MethodCall(_) => {
            function.map(|function| placed(&given.value, function))
        }
        _ => {
            mistakes.add(given.error(
                "`recover` is the path of an async function, or a call of one: recover = lookup(&gateway, &request.order_no)",
            ));
            None
        }
    }
}

/// A path stands for the call with the receiver and a reference to each argument.
fn called(path: &ExprPath, function: &Function) -> TokenStream {
    let receiver = function.receiver.as_ref().map(by_reference);
    let arguments = function
        .bindings
        .iter()
        .map(|Binding { name, .. }| quote!(&#name));
    let arguments = receiver.into_iter().chain(arguments);
    quote_spanned!(path.span()=> #path(#(#arguments),*))
}

fn by_reference(receiver: &Receiver) -> TokenStream {
    let name = &receiver.name;
    if receiver.is_reference {
        quote!(&*#name)
    } else {
        quote!(&#name)
    }
}

/// Tokens as people write them: no space but between words and around operators.
pub(crate) fn readable(tokens: TokenStream) -> String {
    let mut text = String::new();
    push_readable(&mut text, tokens);
    text
}

fn push_readable(text: &mut String, tokens: TokenStream) {
    for token in tokens {
        let space_before = text.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        match token {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    proc_macro2::Delimiter::Parenthesis => ("(", ")"),
                    proc_macro2::Delimiter::Brace => ("{", "}"),
                    proc_macro2::Delimiter::Bracket => ("[", "]"),
                    proc_macro2::Delimiter::None => ("", ""),
                };
                text.push_str(open);
                push_readable(text, group.stream());
                text.push_str(close);
            }
            TokenTree::Punct(punct) => {
                text.push(punct.as_char());
                if punct.as_char() == ',' && punct.spacing() == Spacing::Alone {
                    text.push(' ');
                }
            }
            word => {
                if space_before {
                    text.push(' ');
                }
                text.push_str(&word.to_token_stream().to_string());
            }
        }
    }
}
