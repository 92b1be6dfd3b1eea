//! `#[derive(KeyPart)]` for newtypes and for enums without data.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DataEnum, DataStruct, DeriveInput, Field, Fields, Index, Member};

use crate::mistakes::Mistakes;

pub(crate) fn key_part(item: TokenStream) -> syn::Result<TokenStream> {
    let input: DeriveInput = syn::parse2(item)?;
    match &input.data {
        Data::Struct(data) => newtype(&input, data),
        Data::Enum(data) => unit_enum(&input, data),
        Data::Union(data) => Err(syn::Error::new(
            data.union_token.span,
            "a union can not be a part of a key",
        )),
    }
}

fn newtype(input: &DeriveInput, data: &DataStruct) -> syn::Result<TokenStream> {
    let mut fields = data.fields.iter();
    let (Some(field), None) = (fields.next(), fields.next()) else {
        return Err(syn::Error::new(
            input.ident.span(),
            "only a struct with one field can be a part of a key; name the field that identifies the request in `key`, or implement `KeyPart`",
        ));
    };
    let span = Span::call_site().located_at(field.ty.span());
    let member = match field.ident.clone() {
        Some(mut name) => {
            name.set_span(span);
            Member::Named(name)
        }
        None => Member::Unnamed(Index { index: 0, span }),
    };
    let write = quote_spanned!(span=> ::idem_core::KeyPart::write(&self.#member, out));
    Ok(implementation(input, Some(field), &write))
}

fn unit_enum(input: &DeriveInput, data: &DataEnum) -> syn::Result<TokenStream> {
    let mut mistakes = Mistakes::default();
    for variant in &data.variants {
        if !matches!(variant.fields, Fields::Unit) {
            mistakes.at(variant.ident.span(), "a variant with data can not be a part of a key: its name alone would not tell two values apart");
        }
    }
    if data.variants.is_empty() {
        mistakes.at(
            input.ident.span(),
            "an enum without variants has no value to be a part of a key",
        );
    }
    mistakes.finish(Some(()))?;
    let names = data.variants.iter().map(|variant| {
        let ident = &variant.ident;
        let name = syn::ext::IdentExt::unraw(ident).to_string();
        quote!(Self::#ident => #name,)
    });
    let write = quote!(out.text(match self { #(#names)* }));
    Ok(implementation(input, None, &write))
}

fn implementation(input: &DeriveInput, field: Option<&Field>, write: &TokenStream) -> TokenStream {
    let name = &input.ident;
    let mut generics = input.generics.clone();
    // Only a field that mentions a parameter needs a bound; others are checked at the call.
    if let Some(field) = field.filter(|_| input.generics.type_params().next().is_some()) {
        let ty = &field.ty;
        generics
            .make_where_clause()
            .predicates
            .push(syn::parse_quote!(#ty: ::idem_core::KeyPart));
    }
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #impl_generics ::idem_core::KeyPart for #name #type_generics #where_clause {
            fn write(&self, out: &mut ::idem_core::KeyWriter) {
                #write;
            }
        }
    }
}
