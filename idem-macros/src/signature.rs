//! The annotated function: its signature parsed and checked, its body kept as tokens.

mod returned;

use proc_macro2::{Group, Ident, TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::visit::{self, Visit};
use syn::{
    Attribute, FnArg, Pat, PatIdent, PatType, ReceiverKind, Safety, Signature, Token, Type,
    Visibility, token,
};

pub(crate) use returned::Returned;
use returned::Statics;

use crate::boxed::Boxed;
use crate::mistakes::Mistakes;

/// A function as written: whatever parses.
pub(crate) struct Item {
    /// The attribute that stands on it.
    pub(crate) attribute: &'static str,
    pub(crate) attrs: Vec<Attribute>,
    pub(crate) vis: Visibility,
    pub(crate) sig: Signature,
    pub(crate) body: Group,
}

impl Item {
    pub(crate) fn parse(attribute: &'static str, tokens: TokenStream) -> syn::Result<Self> {
        let read = |input: ParseStream<'_>| Self::read(attribute, input);
        read.parse2(tokens)
    }

    fn read(attribute: &'static str, input: ParseStream<'_>) -> syn::Result<Self> {
        let attrs = input.call(Attribute::parse_outer)?;
        let vis = input.parse()?;
        refuse_other_items(attribute, input)?;
        let sig = input.parse()?;
        if input.peek(Token![;]) {
            return Err(input.error(format!(
                "a method without a body runs nothing; put `#[{attribute}]` on the implementations",
            )));
        }
        if !input.peek(token::Brace) {
            return Err(input.error("expected the function's body"));
        }
        let body = input.parse()?;
        Ok(Self {
            attribute,
            attrs,
            vis,
            sig,
            body,
        })
    }
}

fn refuse_other_items(attribute: &str, input: ParseStream<'_>) -> syn::Result<()> {
    if input.peek(Token![impl]) {
        return Err(input.error(format!(
            "`#[{attribute}]` stands on each method, not on the `impl` block"
        )));
    }
    if input.peek(Token![trait]) {
        return Err(input.error(format!(
            "`#[{attribute}]` stands on methods of the implementations, not on the trait"
        )));
    }
    let is_function = input.peek(Token![fn])
        || input.peek(Token![async])
        || input.peek(Token![unsafe])
        || input.peek(Token![extern])
        || (input.peek(Token![const])
            && (input.peek2(Token![fn])
                || input.peek2(Token![async])
                || input.peek2(Token![unsafe])));
    if is_function {
        Ok(())
    } else {
        Err(input.error(format!("`#[{attribute}]` stands on an `async fn`")))
    }
}

/// A function that can be guarded.
pub(crate) struct Function {
    pub(crate) item: Item,
    /// What the patterns of the arguments bind, in order.
    pub(crate) bindings: Vec<Binding>,
    /// The receiver, as the key may name it at the place of the guard.
    pub(crate) receiver: Option<Receiver>,
    pub(crate) returned: Returned,
    pub(crate) body: Body,
}

/// A name that an argument binds.
pub(crate) struct Binding {
    pub(crate) name: Ident,
    /// Each `#[cfg]` of the argument, which may take it away: rustc looks at them only afterwards.
    pub(crate) cfgs: Vec<Attribute>,
}

/// A method's `self`.
pub(crate) struct Receiver {
    /// `self`, or `__self` in a body that async-trait rewrote.
    pub(crate) name: Ident,
    /// Whether `name` is itself a reference.
    pub(crate) is_reference: bool,
}

/// What is to be guarded.
pub(crate) enum Body {
    /// The body of an `async fn`. Inner attributes speak of the whole function and go first.
    Plain {
        inner: TokenStream,
        statements: TokenStream,
    },
    /// A body that async-trait boxed.
    Boxed(Box<Boxed>),
}

impl Function {
    /// Checks the item. A mistake is noted and something plain put in its place, so that the
    /// options can be checked against the rest.
    pub(crate) fn new(item: Item, mistakes: &mut Mistakes) -> Self {
        refuse_twice(&item, mistakes);
        refuse_qualifiers(&item.sig, mistakes);
        let boxed = match item.sig.asyncness {
            Some(_) => None,
            None => mistakes.keep(Boxed::recognise(&item)),
        };
        let returned = match &boxed {
            Some(boxed) => Returned::new(boxed.returned.clone(), item.attribute),
            None if item.sig.asyncness.is_some() => Returned::of(&item.sig, item.attribute),
            None => Ok(Returned::unknown()),
        };
        let returned = mistakes.keep(returned).unwrap_or_else(Returned::unknown);
        let bindings = match &boxed {
            None => typed(&item.sig)
                .flat_map(|argument| bound(&argument.pat, &argument.attrs))
                .collect(),
            Some(boxed) => boxed.bindings(&item.sig),
        };
        let body = boxed.map_or_else(
            || Body::plain(item.body.stream()),
            |boxed| Body::Boxed(Box::new(boxed)),
        );
        let receiver = receiver(&item.sig, &body);
        Self {
            item,
            bindings,
            receiver,
            returned,
            body,
        }
    }

    /// The names at which a path can start.
    pub(crate) fn roots(&self) -> Vec<String> {
        let receiver = self.receiver.iter().map(|_| "self".to_owned());
        receiver
            .chain(
                self.bindings
                    .iter()
                    .map(|binding| binding.name.unraw().to_string()),
            )
            .collect()
    }

    /// The first argument that borrows, as far as its type shows it.
    pub(crate) fn borrowed_argument(&self) -> Option<syn::Error> {
        self.item.sig.inputs.iter().find_map(|input| match input {
            FnArg::Receiver(receiver) => borrowed_receiver(receiver),
            FnArg::Typed(typed) => borrowed_type(&typed.ty),
        })
    }
}

fn borrowed_receiver(receiver: &syn::Receiver) -> Option<syn::Error> {
    let this = &receiver.self_token;
    match &receiver.kind {
        ReceiverKind::Reference(ampersand, ..) => Some(syn::Error::new_spanned(
            quote::quote!(#ampersand #this),
            "`detach` runs the body in a task of its own, which can not borrow; take `self` or `self: Arc<Self>`",
        )),
        ReceiverKind::Typed(_, ty) => borrowed_type(ty),
        _ => None,
    }
}

fn borrowed_type(ty: &Type) -> Option<syn::Error> {
    returned::first_borrow(ty, Statics::Pass).map(|_| {
        syn::Error::new_spanned(
            ty,
            "`detach` runs the body in a task of its own, which can not borrow; take an owned argument",
        )
    })
}

fn refuse_twice(item: &Item, mistakes: &mut Mistakes) {
    let name = item.attribute;
    for attr in &item.attrs {
        let last = attr.path().segments.last();
        if last.is_some_and(|last| last.ident == name) {
            mistakes.add(syn::Error::new_spanned(
                attr,
                format!("this function is {name} already"),
            ));
        }
    }
}

fn refuse_qualifiers(sig: &Signature, mistakes: &mut Mistakes) {
    if let Some(constness) = &sig.constness {
        mistakes.add(syn::Error::new_spanned(
            constness,
            "a `const fn` has no effect to guard",
        ));
    }
    if let Safety::Unsafe(keyword) = &sig.safety {
        mistakes.add(syn::Error::new_spanned(
            keyword,
            "an `unsafe fn` can not be guarded: its caller would not see which calls run; guard a safe function around it",
        ));
    }
    if let Some(abi) = &sig.abi {
        mistakes.add(syn::Error::new_spanned(
            abi,
            "only Rust functions can be guarded",
        ));
    }
}

/// The arguments but the receiver.
pub(crate) fn typed(sig: &Signature) -> impl Iterator<Item = &PatType> {
    sig.inputs.iter().filter_map(|input| match input {
        FnArg::Typed(typed) => Some(typed),
        FnArg::Receiver(_) => None,
    })
}

fn receiver(sig: &Signature, body: &Body) -> Option<Receiver> {
    let receiver = sig.receiver()?;
    let span = receiver.self_token.span;
    let name = match body {
        Body::Plain { .. } => Ident::new("self", span),
        Body::Boxed(_) => Ident::new("__self", span),
    };
    let is_reference = match &receiver.kind {
        ReceiverKind::Reference(..) => true,
        ReceiverKind::Typed(_, ty) => matches!(**ty, Type::Reference(_)),
        _ => false,
    };
    Some(Receiver { name, is_reference })
}

/// The names that the pattern of an argument with these attributes binds.
pub(crate) fn bound(pattern: &Pat, attrs: &[Attribute]) -> Vec<Binding> {
    struct Names(Vec<Ident>);
    impl<'ast> Visit<'ast> for Names {
        fn visit_pat_ident(&mut self, pat: &'ast PatIdent) {
            // A capital begins a constant or a unit struct.
            if !pat.ident.to_string().starts_with(char::is_uppercase) {
                self.0.push(pat.ident.clone());
            }
            visit::visit_pat_ident(self, pat);
        }
    }
    let mut names = Names(Vec::new());
    names.visit_pat(pattern);
    let cfgs = attrs.iter().filter(|attr| attr.path().is_ident("cfg"));
    let cfgs: Vec<Attribute> = cfgs.cloned().collect();
    let binding = |name| Binding {
        name,
        cfgs: cfgs.clone(),
    };
    names.0.into_iter().map(binding).collect()
}

impl Body {
    /// Parts `#![…]` at the beginning from the statements, which need not parse.
    fn plain(body: TokenStream) -> Self {
        let mut tokens = body.into_iter().peekable();
        let mut inner = TokenStream::new();
        while is_punct(tokens.peek(), '#') && is_punct(tokens.clone().nth(1).as_ref(), '!') {
            inner.extend(tokens.by_ref().take(3));
        }
        let statements = tokens.collect();
        Self::Plain { inner, statements }
    }
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}
