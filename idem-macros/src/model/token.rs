//! A one-time token in place of the key: what is presented, and by whom.

use syn::{Expr, Lit};

use super::value::{self, Part, Value};
use crate::args::{Args, Given};
use crate::mistakes::Mistakes;
use crate::signature::Function;

/// What makes the key of a call with a token.
pub(crate) struct Presented {
    pub(crate) token: Option<Value>,
    /// Whose token it has to be.
    pub(crate) subject: Vec<Part>,
}

pub(crate) fn presented(
    args: &Args,
    function: Option<&Function>,
    mistakes: &mut Mistakes,
) -> Presented {
    refuse_company(args, mistakes);
    let token = args.token.as_ref().and_then(|given| {
        let constant = "this token names no argument: every call would present the same one";
        read(given, vec![&given.value], constant, function, mistakes).pop()
    });
    let subject = args.subject.iter().flat_map(|given| {
        let constant = "this subject names no argument: every caller would pass for the same one";
        let parts = value::elements(&given.value);
        read(given, parts, constant, function, mistakes)
    });
    Presented {
        subject: subject.map(Part::Value).collect(),
        token,
    }
}

/// A path in quotes, or expressions.
fn read(
    given: &Given,
    exprs: Vec<&Expr>,
    constant: &str,
    function: Option<&Function>,
    mistakes: &mut Mistakes,
) -> Vec<Value> {
    if let Some(Lit::Str(text)) = given.literal() {
        let path = value::path_at(given, &text.value(), text.span(), function, mistakes);
        return path.into_iter().collect();
    }
    value::refuse_constant(given, constant, mistakes);
    value::unquoted(exprs, function)
}

/// What can not stand beside a token, or without one.
fn refuse_company(args: &Args, mistakes: &mut Mistakes) {
    let Some(token) = &args.token else {
        if let Some(subject) = &args.subject {
            mistakes.at(
                subject.name.span(),
                "`subject` says whose one-time token it is; it belongs to token = \"form.token\"",
            );
        }
        return;
    };
    if args.subject.is_none() {
        mistakes.at(
            token.name.span(),
            "`token` needs `subject`: whose token it is, as in subject = \"user.id\"; the authenticated caller, never a field of the request body",
        );
    }
    if let Some(key) = &args.key {
        mistakes.at(
            key.name.span(),
            "the token is the key; leave `key` out, or put what must be equal in `fingerprint`",
        );
    }
    for given in [&args.on_store_error, &args.on_missing_key] {
        if let Some(given) = given
            && given.string().is_ok_and(|word| word.value() == "run")
        {
            mistakes.at(
                given.name.span(),
                format!(
                    "{} = \"run\" would let in a token that nobody has checked",
                    given.name
                ),
            );
        }
    }
}
