//! `#[derive(KeyPart)]` for newtypes and for enums without data.

use proc_macro2::{Span, TokenStream};
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Data, DataEnum, DataStruct, DeriveInput, Field, Fields, Index, Member, Path};

use crate::mistakes::Mistakes;

pub(crate) fn key_part(item: TokenStream) -> syn::Result<TokenStream> {
    let input: DeriveInput = syn::parse2(item)?;
    let krate = krate(&input)?;
    match &input.data {
        Data::Struct(data) => newtype(&input, data, &krate),
        Data::Enum(data) => unit_enum(&input, data, &krate),
        Data::Union(data) => Err(syn::Error::new(
            data.union_token.span,
            "a union can not be a part of a key",
        )),
    }
}

/// Where the runtime is: `#[key_part(crate = path)]` for re-exports.
fn krate(input: &DeriveInput) -> syn::Result<Path> {
    let mut krate = syn::parse_quote!(::idem_core);
    for attr in &input.attrs {
        if attr.path().is_ident("key_part") {
            attr.parse_nested_meta(|meta| {
                if !meta.path.is_ident("crate") {
                    return Err(meta.error("the only option is `crate`: #[key_part(crate = path)]"));
                }
                krate = meta.value()?.call(Path::parse_mod_style)?;
                Ok(())
            })?;
        }
    }
    Ok(krate)
}

fn newtype(input: &DeriveInput, data: &DataStruct, krate: &Path) -> syn::Result<TokenStream> {
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
    let write = quote_spanned!(span=> #krate::KeyPart::write(&self.#member, out));
    Ok(implementation(input, Some(field), krate, &write))
}

fn unit_enum(input: &DeriveInput, data: &DataEnum, krate: &Path) -> syn::Result<TokenStream> {
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
    Ok(implementation(input, None, krate, &write))
}

fn implementation(
    input: &DeriveInput,
    field: Option<&Field>,
    krate: &Path,
    write: &TokenStream,
) -> TokenStream {
    let name = &input.ident;
    let mut generics = input.generics.clone();
    // Only a field that mentions a parameter needs a bound; others are checked at the call.
    if let Some(field) = field.filter(|_| input.generics.type_params().next().is_some()) {
        let ty = &field.ty;
        generics
            .make_where_clause()
            .predicates
            .push(syn::parse_quote!(#ty: #krate::KeyPart));
    }
    let (impl_generics, type_generics, where_clause) = generics.split_for_impl();
    quote! {
        #[automatically_derived]
        impl #impl_generics #krate::KeyPart for #name #type_generics #where_clause {
            fn write(&self, out: &mut #krate::KeyWriter) {
                #write;
            }
        }
    }
}
