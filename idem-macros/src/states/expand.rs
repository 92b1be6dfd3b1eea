//! The model as an implementation of the trait.

use proc_macro2::TokenStream;
use quote::quote;

use super::model::Model;

pub(super) fn expand(model: &Model<'_>) -> TokenStream {
    let Model {
        ident,
        generics,
        krate,
        states,
    } = model;
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    let variant: Vec<_> = states.iter().map(|state| state.ident).collect();
    let code: Vec<_> = states.iter().map(|state| state.code).collect();
    let name = states.iter().map(|state| &state.name);
    let to = states.iter().map(|state| {
        let to = &state.to;
        quote!(&[#(Self::#to),*])
    });
    quote! {
        #[automatically_derived]
        impl #impl_generics #krate::States for #ident #type_generics #where_clause {
            const ALL: &'static [Self] = &[#(Self::#variant),*];

            fn code(self) -> ::core::primitive::i16 {
                match self { #(Self::#variant => #code,)* }
            }

            fn from_code(code: ::core::primitive::i16) -> ::core::option::Option<Self> {
                match code {
                    #(#code => ::core::option::Option::Some(Self::#variant),)*
                    _ => ::core::option::Option::None,
                }
            }

            fn name(self) -> &'static ::core::primitive::str {
                match self { #(Self::#variant => #name,)* }
            }

            fn successors(self) -> &'static [Self] {
                match self { #(Self::#variant => #to,)* }
            }
        }
    }
}
