//! Key parts and fingerprints: values read from the arguments by reference.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{quote, quote_spanned};

use super::{Guard, borrowed};
use crate::key::Step;
use crate::model::{Part, Source, Value};

impl Guard<'_> {
    pub(super) fn key(&self) -> TokenStream {
        let private = &self.private;
        let (prefix, punctuation) = (&self.model.prefix, &self.model.punctuation);
        let parts = self.model.key.iter().map(|part| self.part(part));
        quote_spanned! {self.site=>
            let mut __idem_key = #private::KeyBuilder::new(#prefix, #punctuation);
            #(#parts)*
        }
    }

    fn part(&self, part: &Part) -> TokenStream {
        match part {
            Part::Literal(text) => quote_spanned!(self.site=> __idem_key.literal(#text);),
            Part::Value(value) => self.value(value),
        }
    }

    fn value(&self, value: &Value) -> TokenStream {
        let name = &value.name;
        let reference = value.source.reference();
        let site = self.site.located_at(value.source.span());
        let part = quote_spanned!(site=> __idem_key.part(#name, #reference););
        let missing = quote_spanned!(self.site=> __idem_key.missing(#name););
        self.unless_it_misses(value, part, &missing)
    }

    pub(super) fn token(&self) -> Option<TokenStream> {
        let value = self.model.token.as_ref()?;
        let reference = value.source.reference();
        let site = self.site.located_at(value.source.span());
        let present = quote_spanned!(site=> __idem_call.token(#reference););
        let missing = quote_spanned!(self.site=> __idem_call.no_token(););
        Some(self.unless_it_misses(value, present, &missing))
    }

    /// Does `take`, which reads the value; `missing` if it is not there.
    fn unless_it_misses(
        &self,
        value: &Value,
        take: TokenStream,
        missing: &TokenStream,
    ) -> TokenStream {
        if !value.source.may_miss() {
            return take;
        }
        quote_spanned! {self.site=>
            if (|| { #take return ::core::option::Option::Some(()); })().is_none() {
                #missing
            }
        }
    }

    pub(super) fn fingerprint(&self) -> TokenStream {
        let values: Vec<TokenStream> = self
            .model
            .fingerprint
            .iter()
            .map(|value| self.printed(value))
            .collect();
        match values.as_slice() {
            [] => TokenStream::new(),
            [only] => quote_spanned!(self.site=> __idem_call.fingerprint(#only);),
            several => quote_spanned!(self.site=> __idem_call.fingerprint(&(#(#several),*));),
        }
    }

    /// A value that is not there is hashed as `None`.
    fn printed(&self, value: &Value) -> TokenStream {
        if value.source.may_miss() {
            let found = value.source.found();
            quote_spanned!(self.site=> &(|| { return #found; })())
        } else {
            value.source.reference()
        }
    }
}

impl Source {
    fn may_miss(&self) -> bool {
        match self {
            Self::Path { path, .. } => path.steps.iter().any(Step::may_miss),
            Self::Expr { tries, .. } => *tries,
        }
    }

    fn span(&self) -> Span {
        match self {
            Self::Path { span, .. } => *span,
            Self::Expr { expr, .. } => syn::spanned::Spanned::span(expr),
        }
    }

    /// The value as an option that a closure can give out: of a reference, unless a getter made the
    /// value itself.
    fn found(&self) -> TokenStream {
        let some = quote!(::core::option::Option::Some);
        match self {
            Self::Path { root, path, span } => match path.steps.split_last() {
                Some((last, before)) if last.may_miss() => {
                    optional(&place(root, before, *span), last, *span)
                }
                Some((Step::Call(_), _)) => {
                    let made = place(root, &path.steps, *span);
                    quote_spanned!(*span=> #some(#made))
                }
                _ => {
                    let reference = self.reference();
                    quote_spanned!(*span=> #some(#reference))
                }
            },
            Self::Expr { .. } => {
                let reference = self.reference();
                quote!(#some(#reference))
            }
        }
    }

    /// A reference to the value.
    fn reference(&self) -> TokenStream {
        match self {
            Self::Path { root, path, span } => {
                let place = place(root, &path.steps, *span);
                quote_spanned!(*span=> &#place)
            }
            Self::Expr { expr, .. } => borrowed(expr, self.span()),
        }
    }
}

/// The steps have the literal's place and our hygiene: as the user's own, rustc would offer to
/// replace the whole literal by a field's name.
fn place(root: &Ident, steps: &[Step], span: Span) -> TokenStream {
    let span = Span::mixed_site().located_at(span);
    steps.iter().fold(quote!(#root), |place, step| match step {
        Step::Field(name) => {
            let name = member(name, span);
            quote_spanned!(span=> #place.#name)
        }
        Step::Element(at) => {
            let mut at = Literal::u32_unsuffixed(*at);
            at.set_span(span);
            quote_spanned!(span=> #place.#at)
        }
        Step::Call(name) => {
            let name = member(name, span);
            quote_spanned!(span=> #place.#name())
        }
        Step::At(_) | Step::Entry(_) | Step::Try => {
            let optional = optional(&place, step, span);
            quote_spanned!(span=> #optional?)
        }
    })
}

/// A step that may lead nowhere, as an option of a reference.
fn optional(place: &TokenStream, step: &Step, span: Span) -> TokenStream {
    let span = Span::mixed_site().located_at(span);
    match step {
        Step::At(at) => quote_spanned!(span=> #place.get(#at)),
        Step::Entry(name) => quote_spanned!(span=> #place.get(#name)),
        _ => quote_spanned!(span=> __idem_private::present(&#place)),
    }
}

/// A name that may be a keyword, as in `request.type`.
fn member(name: &str, span: Span) -> Ident {
    let is_keyword = syn::parse_str::<Ident>(name).is_err();
    if is_keyword {
        Ident::new_raw(name, span)
    } else {
        Ident::new(name, span)
    }
}
