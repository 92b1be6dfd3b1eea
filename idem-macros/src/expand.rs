//! Stage three: tokens. Everything was checked; this can not fail.
//!
//! Generated code names only the runtime's `__private` module and `::core`. Its names have mixed
//! hygiene, so that no name of the user's can meet them. The user's statements are spliced as they
//! came: a block around them would raise lints and lose coercions.

mod locked;
mod names;
mod part;
#[cfg(test)]
mod tests;
mod tx;

use proc_macro2::{Delimiter, Group, Span, TokenStream};
use quote::{ToTokens, quote_spanned};
use syn::spanned::Spanned;
use syn::{Expr, Ident, Type};

use crate::args::Time;
use crate::model::{Model, OnError, Setting};
use crate::signature::{Binding, Body};

/// The tokens of the guarded function.
pub(crate) fn expand(model: &Model) -> TokenStream {
    let item = &model.function.item;
    let site = Span::mixed_site();
    let content = match &model.function.body {
        Body::Plain { inner, statements } => {
            let guard = Guard::new(model).guarded(statements);
            quote_spanned!(site=> #inner #guard)
        }
        Body::Boxed(boxed) => {
            let (pin, prologue, returned) = (&boxed.pin, &boxed.prologue, &boxed.returned);
            let guard = Guard::new(model).guarded(&boxed.statements);
            // As async-trait writes it, so that the next attribute recognises it, too: without a
            // `return` before `Box::pin`. The one behind the guard is no statement, where rustc would
            // not see the `allow`.
            quote_spanned! {site=>
                #[allow(clippy::implicit_return)]
                #pin(async move {
                    #(#prologue)*
                    let __ret: #returned = { #guard };
                    #[allow(unreachable_code)]
                    return __ret
                })
            }
        }
    };
    let body = braced(content, item.body.span());
    let (attrs, vis, sig) = (&item.attrs, &item.vis, tx::signature(model));
    quote_spanned!(site=> #(#attrs)* #vis #sig #body)
}

/// What every part of the expansion needs.
struct Guard<'a> {
    model: &'a Model,
    private: TokenStream,
    site: Span,
}

impl<'a> Guard<'a> {
    fn new(model: &'a Model) -> Self {
        let site = Span::mixed_site();
        let private = quote_spanned!(site=> __idem_private);
        Self {
            model,
            private,
            site,
        }
    }

    /// Admission, then the body: never the body alone.
    fn guarded(&self, statements: &TokenStream) -> TokenStream {
        if self.model.is_locked {
            return self.locked(statements);
        }
        let (private, krate) = (&self.private, &self.model.krate);
        let place = self.place();
        let call = self.call();
        let key = self.key();
        let token = self.token();
        let fingerprint = self.fingerprint();
        let run = match &self.model.tx {
            Some(tx) => self.in_transaction(tx, statements),
            None => self.in_lease(statements),
        };
        // The path is named once, so that a wrong one is one error. `return` is written for those
        // who have clippy::implicit_return on; without it nobody sees it.
        quote_spanned! {self.site=>
            use #krate::__private as #private;
            #place
            #call
            #key
            #token
            #fingerprint
            #run
        }
    }

    fn in_lease(&self, statements: &TokenStream) -> TokenStream {
        let private = &self.private;
        let run = self.run(statements);
        quote_spanned! {self.site=>
            return match #private::admit(__idem_call, __idem_key).await {
                #private::Admitted::Answer(__idem_answer) => __idem_answer,
                #private::Admitted::Run(__idem_run) => { #run }
            };
        }
    }

    /// Which function this is, to notice two of them under one prefix.
    fn place(&self) -> TokenStream {
        let (private, prefix) = (&self.private, &self.model.prefix);
        let name = self.model.function.item.sig.ident.to_string();
        quote_spanned! {self.site=>
            static __IDEM_SITE: #private::Site =
                #private::Site::new(#prefix, ::core::module_path!(), #name, ::core::line!());
        }
    }

    fn call(&self) -> TokenStream {
        let private = &self.private;
        let policy = self.policy();
        let results = self.results();
        let engine = self.engine();
        let is_added_to = self.model.token.is_some() || !self.model.fingerprint.is_empty();
        let mutable = is_added_to.then(|| quote_spanned!(self.site=> mut));
        quote_spanned! {self.site=>
            let #mutable __idem_call = #private::Call::new(&__IDEM_SITE, #policy, #engine, #results);
        }
    }

    fn engine(&self) -> TokenStream {
        let private = &self.private;
        match &self.model.engine {
            None => quote_spanned!(self.site=> ::core::option::Option::None),
            Some(engine) => quote_spanned! {engine.span()=>
                ::core::option::Option::Some(::core::convert::AsRef::<#private::Idempotency>::as_ref(&#engine))
            },
        }
    }

    fn policy(&self) -> TokenStream {
        let private = &self.private;
        let settings = self
            .model
            .policy
            .iter()
            .map(|setting| self.setting(setting));
        quote_spanned!(self.site=> const { #private::Policy::new() #(#settings)* })
    }

    fn setting(&self, setting: &Setting) -> TokenStream {
        let named = |name: &str| Ident::new(name, self.site);
        match setting {
            Setting::Plain(name) => {
                let name = named(name);
                quote_spanned!(self.site=> .#name())
            }
            Setting::Text(name, text) => {
                let name = named(name);
                quote_spanned!(self.site=> .#name(#text))
            }
            Setting::Time(name, Time::Known(millis)) => {
                let (name, millis) = (named(name), millis.0);
                quote_spanned!(self.site=> .#name(::core::time::Duration::from_millis(#millis)))
            }
            Setting::Time(name, Time::Const(constant)) => {
                let name = named(name);
                quote_spanned!(self.at(constant)=> .#name(#constant))
            }
        }
    }

    /// The one place that asks something of the user's types, so that a wrong one is one error.
    fn results(&self) -> TokenStream {
        let private = &self.private;
        let results = &self.model.results;
        let (value, error) = self.types();
        let kind = Ident::new(
            if results.stored { "stored" } else { "unstored" },
            self.site,
        );
        let start = quote_spanned!(self.site=> #private::#kind::<#value, #error>());
        let start = if results.replay_errors {
            quote_spanned!(self.site=> #private::replay_errors::<#value, #error>(#start))
        } else {
            start
        };
        match &results.on_error {
            OnError::Always(variant) => {
                let variant = Ident::new(variant, self.site);
                quote_spanned!(self.site=> #start.on_error(#private::OnError::#variant))
            }
            OnError::Classify(function) => {
                quote_spanned!(self.at(function)=> #start.classify(#function))
            }
        }
    }

    fn run(&self, statements: &TokenStream) -> TokenStream {
        let private = &self.private;
        let recover = self.recover();
        let body = self.body(statements);
        let execute = if self.model.detach {
            "execute_detached"
        } else if self.model.is_locked && names::are_guarded(statements) {
            "execute_guarded"
        } else {
            "execute"
        };
        let execute = Ident::new(execute, self.site);
        quote_spanned! {self.site=>
            #recover
            __idem_run.#execute(#private::Box::pin(async move #body)).await
        }
    }

    /// The user's statements, as the block of a future.
    fn body(&self, statements: &TokenStream) -> Group {
        let whole = &self.model.function.returned.whole;
        let kept = self.kept_arguments(statements);
        // The early return that never happens gives the block its type before the first `?`,
        // `return` or tail, so that they coerce as in the plain function (as async-trait does).
        let content = quote_spanned! {self.site=>
            if let ::core::option::Option::Some(__idem_never) = ::core::option::Option::None::<#whole> {
                #[allow(unreachable_code)]
                return __idem_never;
            }
            #kept
            #statements
        };
        // The user's place, where rustc reports a half-typed statement; our hygiene, or clippy
        // would say that the user's first items come late.
        let end = self
            .site
            .located_at(self.model.function.item.body.span_close());
        braced(content, end)
    }

    fn recover(&self) -> Option<TokenStream> {
        let private = &self.private;
        let lookup = self.model.recover.as_ref()?;
        let (value, _) = self.types();
        // Typed at the user's place, so that another value is one error there, and not one about
        // our block.
        let recovered = quote_spanned! {self.at(lookup)=>
            let __idem_recovered: ::core::result::Result<#private::Recovered<#value>, _> = #lookup.await;
            __idem_recovered
        };
        // A path passes each argument on, also those that the body does not name.
        Some(quote_spanned! {self.site=>
            #[allow(clippy::used_underscore_binding)]
            let __idem_run = match __idem_run.recover(|| #private::Box::pin(async { #recovered })).await {
                #private::Admitted::Run(__idem_run) => __idem_run,
                #private::Admitted::Answer(__idem_answer) => return __idem_answer,
            };
        })
    }

    /// Moves whole arguments into the body. Alone, the body would take only the fields that it
    /// names: the rest would not live as long as it does, and rustc would judge each field as a
    /// variable. An argument that it does not name stays outside, to be called unused; but not one
    /// like `_permit`, which is there to live.
    fn kept_arguments(&self, statements: &TokenStream) -> TokenStream {
        let function = &self.model.function;
        let used = names::outside_members(statements);
        let is_kept = |name: &Ident| is_idle(name) || used.contains(&name.to_string());
        let receiver = function.receiver.iter().map(|receiver| &receiver.name);
        let bindings = function.bindings.iter();
        let (sure, unsure): (Vec<_>, Vec<_>) = bindings
            .filter(|binding| is_kept(&binding.name))
            .partition(|binding| binding.cfgs.is_empty());
        let sure = sure.into_iter().map(|binding| &binding.name);
        let sure = self.kept(receiver.filter(|name| is_kept(name)).chain(sure));
        let unsure = unsure.into_iter().map(|Binding { name, cfgs }| {
            let kept = self.kept([name]);
            quote_spanned!(self.site=> #(#cfgs)* #kept)
        });
        quote_spanned!(self.site=> #sure #(#unsure)*)
    }

    fn kept<'n>(&self, names: impl IntoIterator<Item = &'n Ident>) -> Option<TokenStream> {
        let names: Vec<_> = names.into_iter().collect();
        if names.is_empty() {
            return None;
        }
        let allow = names
            .iter()
            .any(|name| is_idle(name))
            .then(|| quote_spanned!(self.site=> #[allow(clippy::used_underscore_binding)]));
        Some(quote_spanned!(self.site=> #allow let _ = (#(&#names,)*);))
    }

    /// The result's two types: as written, or taken out of an alias.
    fn types(&self) -> (Type, Type) {
        let returned = &self.model.function.returned;
        returned.parts.clone().unwrap_or_else(|| {
            let whole = &returned.whole;
            let at = self.at(whole);
            let of = |name: TokenStream| {
                Type::Verbatim(quote_spanned!(at=> <#whole as __idem_private::Returned>::#name))
            };
            (
                of(quote_spanned!(at=> Value)),
                of(quote_spanned!(at=> Error)),
            )
        })
    }

    /// Our hygiene at the user's place.
    fn at(&self, tokens: &impl ToTokens) -> Span {
        self.site.located_at(tokens.span())
    }
}

/// Whether a name says that it is only there to live.
fn is_idle(name: &Ident) -> bool {
    name.to_string().starts_with('_')
}

fn braced(content: TokenStream, span: Span) -> Group {
    let mut group = Group::new(Delimiter::Brace, content);
    group.set_span(span);
    group
}

/// A reference to an expression, with parentheses where they are needed.
fn borrowed(expr: &Expr, span: Span) -> TokenStream {
    let reference = syn::ExprReference {
        attrs: Vec::new(),
        and_token: syn::Token![&](span),
        mutability: None,
        expr: Box::new(expr.clone()),
    };
    Expr::Reference(reference).into_token_stream()
}
