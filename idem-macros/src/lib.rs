//! The attribute and derives of `idem`; use them through `idem_core`, which documents them.
//!
//! An attribute passes three stages, each with its own types: `args` (what was written, with
//! spans), `model` (what was meant, checked), `expand` (tokens; it can not fail).

mod args;
mod boxed;
mod derive;
mod duration;
mod expand;
mod fallback;
mod key;
mod mistakes;
mod model;
mod signature;
mod states;

use proc_macro::TokenStream;

#[allow(
    missing_docs,
    reason = "rustdoc would print them behind those of the re-export"
)]
#[proc_macro_attribute]
pub fn idempotent(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute(&args::IDEMPOTENT, args, item)
}

#[allow(
    missing_docs,
    reason = "rustdoc would print them behind those of the re-export"
)]
#[proc_macro_attribute]
pub fn locked(args: TokenStream, item: TokenStream) -> TokenStream {
    attribute(&args::LOCKED, args, item)
}

fn attribute(words: &'static args::Words, args: TokenStream, item: TokenStream) -> TokenStream {
    fallback::or_unchanged(args.into(), &item.into(), |args, item| {
        model::Model::new(words, args, item).map(|model| expand::expand(&model))
    })
    .into()
}

#[allow(
    missing_docs,
    reason = "rustdoc would print them behind those of the re-export"
)]
#[proc_macro_derive(KeyPart, attributes(key_part))]
pub fn derive_key_part(item: TokenStream) -> TokenStream {
    derive::key_part(item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

#[allow(
    missing_docs,
    reason = "rustdoc would print them behind those of the re-export"
)]
#[proc_macro_derive(States, attributes(state))]
pub fn derive_states(item: TokenStream) -> TokenStream {
    states::derive(item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
