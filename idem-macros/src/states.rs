//! `#[derive(States)]` for enums without data: what was written, what was meant, tokens.

mod expand;
mod model;
mod options;

use proc_macro2::TokenStream;
use syn::DeriveInput;

pub(crate) fn derive(item: TokenStream) -> syn::Result<TokenStream> {
    let input: DeriveInput = syn::parse2(item)?;
    let model = model::Model::new(&input)?;
    Ok(expand::expand(&model))
}
