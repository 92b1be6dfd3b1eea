//! What stands in the code when something is wrong: the function as the user wrote it, so that
//! callers and the IDE still know it, and one error for each mistake.

use proc_macro2::TokenStream;
use quote::quote;

pub(crate) fn or_unchanged(
    args: TokenStream,
    item: &TokenStream,
    expand: impl FnOnce(TokenStream, TokenStream) -> syn::Result<TokenStream>,
) -> TokenStream {
    expand(args, item.clone()).unwrap_or_else(|mistakes| {
        let errors = mistakes.into_compile_error();
        quote!(#item #errors)
    })
}
