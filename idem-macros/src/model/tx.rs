//! `tx`: effects and record commit together, in the transaction that an argument names.

use proc_macro2::{Ident, Span};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{FnArg, Pat, PatIdent, Type};

use crate::args::{Args, Given};
use crate::key::unknown_root;
use crate::mistakes::Mistakes;
use crate::signature::Function;

/// The argument that is the transaction.
pub(crate) struct Tx {
    /// As it is bound.
    pub(crate) binding: PatIdent,
    /// Its name at the place of its type, where rustc is to blame a wrong one.
    pub(crate) at_type: Ident,
}

/// The types that are taken for a transaction of sqlx.
const TYPES: &[&str] = &[
    "Transaction",
    "PgTransaction",
    "MySqlTransaction",
    "SqliteTransaction",
];

pub(crate) fn tx(args: &Args, function: Option<&Function>, mistakes: &mut Mistakes) -> Option<Tx> {
    let function = function?;
    let Some(given) = &args.tx else {
        refuse_unsaid(function, mistakes);
        return None;
    };
    let name = mistakes.keep(name(given))?;
    if name == "none" {
        return None;
    }
    refuse_without_meaning(args, mistakes);
    let argument = arguments(function).find(|(binding, _)| binding.ident == name);
    if argument.is_none() {
        let name = name.unraw().to_string();
        let roots = function.roots();
        let known = roots.iter().map(String::as_str);
        mistakes.add(given.error(unknown_root(&name, known)));
    }
    argument.map(|(binding, ty)| Tx {
        binding: binding.clone(),
        at_type: located(&binding.ident, ty.span()),
    })
}

/// Whether the record is to be kept in a transaction.
pub(super) fn is_asked_for(args: &Args) -> bool {
    let name = args.tx.as_ref().map(name);
    name.is_some_and(|name| name.is_ok_and(|name| name != "none"))
}

fn name(given: &Given) -> syn::Result<Ident> {
    given
        .path()
        .and_then(|path| path.path.get_ident().cloned())
        .ok_or_else(|| {
            given.error("`tx` is the name of an argument, without quotes, as in tx = tx; or `none`")
        })
}

/// The arguments that are bound by a plain name.
fn arguments(function: &Function) -> impl Iterator<Item = (&PatIdent, &Type)> {
    let inputs = function.item.sig.inputs.iter();
    inputs.filter_map(|input| match input {
        FnArg::Typed(typed) => match &*typed.pat {
            Pat::Ident(binding) => Some((binding, &*typed.ty)),
            _ => None,
        },
        FnArg::Receiver(_) => None,
    })
}

/// A record elsewhere does not commit with a transaction that the function is given: whether that
/// is meant has to be said.
fn refuse_unsaid(function: &Function, mistakes: &mut Mistakes) {
    for (binding, ty) in arguments(function).filter(|(_, ty)| is_transaction(ty)) {
        let name = binding.ident.unraw();
        mistakes.add(syn::Error::new_spanned(
            ty,
            format!(
                "this function is given a transaction: write tx = {name}, and its effects and its record commit together; or tx = none, and the record is kept apart"
            ),
        ));
    }
}

fn is_transaction(ty: &Type) -> bool {
    let Type::Reference(reference) = ty else {
        return false;
    };
    let Type::Path(path) = &*reference.elem else {
        return false;
    };
    let last = path.path.segments.last();
    last.is_some_and(|last| TYPES.iter().any(|name| last.ident == name))
}

fn refuse_without_meaning(args: &Args, mistakes: &mut Mistakes) {
    let rolled_back =
        "what an attempt that died has done is rolled back, and there is nothing to find out";
    let options = [
        (
            &args.lease,
            "the database knows when its transaction has ended",
        ),
        (&args.on_abandoned, rolled_back),
        (&args.recover, rolled_back),
        (&args.checkpoint, "effects and record begin and end at once"),
        (
            &args.detach,
            "the body borrows the transaction of its caller",
        ),
        (
            &args.on_store_error,
            "the record is where the effects go, and can not be away alone",
        ),
        (
            &args.token,
            "a token is used up in the store that issued it",
        ),
        (
            &args.forget,
            "a success that leaves no record would run again",
        ),
    ];
    for (given, why) in options {
        if let Some(given) = given {
            let name = &given.name;
            mistakes.at(
                name.span(),
                format!("`{name}` has no meaning with `tx`: {why}"),
            );
        }
    }
}

fn located(name: &Ident, place: Span) -> Ident {
    let mut name = name.clone();
    name.set_span(name.span().located_at(place));
    name
}
