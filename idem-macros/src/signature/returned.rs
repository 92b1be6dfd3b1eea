//! What the function returns: a `Result`, written out or behind an alias.

use quote::ToTokens;
use syn::visit::{self, Visit};
use syn::{
    BoundLifetimes, GenericArgument, GenericParam, Lifetime, ParenthesizedGenericArguments,
    PathArguments, ReturnType, Signature, TraitBound, Type, TypeFnPtr, TypeImplTrait, TypeInfer,
    TypeReference,
};

use crate::model::readable;

/// A return type that may be a `Result`.
pub(crate) struct Returned {
    pub(crate) whole: Type,
    /// `T` and `E`, where they are written; an alias is taken apart by rustc.
    pub(crate) parts: Option<(Type, Type)>,
}

impl Returned {
    pub(crate) fn of(sig: &Signature, attribute: &str) -> syn::Result<Self> {
        match &sig.output {
            ReturnType::Type(_, ty) => Self::new((**ty).clone(), attribute),
            ReturnType::Default => Err(syn::Error::new(
                sig.ident.span(),
                format!(
                    "`#[{attribute}]` needs a function that returns a `Result<T, E>`, so that a refusal can be told; this one returns nothing"
                ),
            )),
        }
    }

    /// Of a function whose mistake was noted.
    pub(crate) fn unknown() -> Self {
        Self {
            whole: syn::parse_quote!(()),
            parts: None,
        }
    }

    pub(crate) fn new(whole: Type, attribute: &str) -> syn::Result<Self> {
        if let Some(unnamed) = first_unnamed(&whole) {
            return Err(syn::Error::new_spanned(
                unnamed,
                "a guarded function's result needs a type with a name; write it out instead of `impl …`",
            ));
        }
        if !may_be_result(&whole) {
            let written = whole.to_token_stream();
            return Err(syn::Error::new_spanned(
                &whole,
                format!(
                    "`#[{attribute}]` needs a function that returns a `Result<T, E>`, so that a refusal can be told; this one returns `{}`",
                    readable(written)
                ),
            ));
        }
        let parts = parts(&whole);
        Ok(Self { whole, parts })
    }

    /// The part of the result that is stored and borrows, if any.
    pub(crate) fn borrowed_value(&self) -> Option<Box<dyn ToTokens>> {
        let value = self.parts.as_ref().map_or(&self.whole, |(value, _)| value);
        first_borrow(value, Statics::Count)
    }

    pub(crate) fn borrowed_error(&self) -> Option<Box<dyn ToTokens>> {
        self.parts
            .as_ref()
            .and_then(|(_, error)| first_borrow(error, Statics::Count))
    }
}

/// Common types that are none; any other name may be an alias, which rustc checks.
fn may_be_result(ty: &Type) -> bool {
    const OTHERS: &[&str] = &[
        "Option", "Vec", "String", "Box", "Arc", "Pin", "HashMap", "Self", "bool", "char", "str",
        "i8", "i16", "i32", "i64", "i128", "isize", "u8", "u16", "u32", "u64", "u128", "usize",
        "f32", "f64",
    ];
    match ty {
        Type::Path(path) => match path.path.segments.last() {
            Some(last) => !OTHERS.iter().any(|other| last.ident == other),
            None => false,
        },
        Type::Paren(inner) => may_be_result(&inner.elem),
        Type::Group(inner) => may_be_result(&inner.elem),
        Type::Macro(_) => true,
        _ => false,
    }
}

fn parts(ty: &Type) -> Option<(Type, Type)> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    if last.ident != "Result" {
        return None;
    }
    let mut types = arguments.args.iter().map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty.clone()),
        _ => None,
    });
    match (types.next()??, types.next()??, types.next()) {
        (value, error, None) => Some((value, error)),
        _ => None,
    }
}

fn first_unnamed(ty: &Type) -> Option<Box<dyn ToTokens>> {
    struct Unnamed(Option<Box<dyn ToTokens>>);
    impl<'ast> Visit<'ast> for Unnamed {
        fn visit_type_impl_trait(&mut self, ty: &'ast TypeImplTrait) {
            self.0.get_or_insert_with(|| Box::new(ty.clone()));
        }
        fn visit_type_infer(&mut self, ty: &'ast TypeInfer) {
            self.0.get_or_insert_with(|| Box::new(ty.clone()));
        }
    }
    let mut unnamed = Unnamed(None);
    unnamed.visit_type(ty);
    unnamed.0
}

/// The first borrow in a type: a lifetime but `'static`, or a reference. What stands in the
/// signature of a function type or of an `Fn` bound is not held by the value, nor is what lives for
/// any lifetime.
pub(super) fn first_borrow(ty: &Type, statics: Statics) -> Option<Box<dyn ToTokens>> {
    struct Borrow {
        first: Option<Box<dyn ToTokens>>,
        statics: Statics,
        /// Those of each `for<…>` around.
        any: Vec<Lifetime>,
    }
    impl<'ast> Visit<'ast> for Borrow {
        fn visit_type_reference(&mut self, ty: &'ast TypeReference) {
            let is_held = ty.lifetime.as_ref().is_none_or(|lifetime| {
                let passes = self.statics == Statics::Pass && is_static(lifetime);
                !passes && !self.any.contains(lifetime)
            });
            if !is_held {
                return visit::visit_type_reference(self, ty);
            }
            self.first.get_or_insert_with(|| Box::new(ty.clone()));
        }
        fn visit_lifetime(&mut self, lifetime: &'ast Lifetime) {
            if !is_static(lifetime) && !self.any.contains(lifetime) {
                self.first.get_or_insert_with(|| Box::new(lifetime.clone()));
            }
        }
        fn visit_trait_bound(&mut self, bound: &'ast TraitBound) {
            let outside = self.any.len();
            let lifetimes = bound.lifetimes.iter().flat_map(|bound| &bound.lifetimes);
            self.any
                .extend(lifetimes.filter_map(|parameter| match parameter {
                    GenericParam::Lifetime(parameter) => Some(parameter.lifetime.clone()),
                    _ => None,
                }));
            visit::visit_trait_bound(self, bound);
            self.any.truncate(outside);
        }
        fn visit_type_fn_ptr(&mut self, _: &'ast TypeFnPtr) {}
        fn visit_parenthesized_generic_arguments(
            &mut self,
            _: &'ast ParenthesizedGenericArguments,
        ) {
        }
        fn visit_bound_lifetimes(&mut self, _: &'ast BoundLifetimes) {}
    }
    let mut borrow = Borrow {
        first: None,
        statics,
        any: Vec::new(),
    };
    borrow.visit_type(ty);
    borrow.first
}

/// What is thought of a `&'static T`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Statics {
    /// It lives as long as any task.
    Pass,
    /// It can not be read back from a store.
    Count,
}

fn is_static(lifetime: &Lifetime) -> bool {
    lifetime.ident == "static"
}
