//! Bodies that `#[async_trait]` rewrote before this attribute saw them:
//! `Box::pin(async move { prologue; let __ret: R = { body }; __ret })`.
//!
//! Guarding the function would guard only the making of that future, so the guard goes inside,
//! between the prologue, which names the arguments, and the body.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote};
use syn::visit::{self, Visit};
use syn::{Expr, ExprCall, Pat, ReturnType, Signature, Stmt, Type, TypeImplTrait};

use crate::signature::{Binding, Item, bound, typed};

/// A recognised body, taken apart.
pub(crate) struct Boxed {
    /// `Box::pin`
    pub(crate) pin: Expr,
    pub(crate) prologue: Vec<Stmt>,
    pub(crate) statements: TokenStream,
    /// What the boxed future gives.
    pub(crate) returned: Type,
}

impl Boxed {
    pub(crate) fn recognise(item: &Item) -> syn::Result<Self> {
        syn::parse2::<ExprCall>(item.body.stream())
            .ok()
            .and_then(|call| Self::take_apart(&call))
            .ok_or_else(|| not_async(&item.sig, item.attribute))
    }

    fn take_apart(call: &ExprCall) -> Option<Self> {
        let Expr::Path(pin) = &*call.func else {
            return None;
        };
        let Expr::Async(future) = call.args.first()? else {
            return None;
        };
        if pin.path.segments.last()?.ident != "pin" || call.args.len() != 1 {
            return None;
        }
        let statements = &future.block.stmts;
        let at = statements
            .iter()
            .position(|statement| result(statement).is_some())?;
        let (returned, body) = result(statements.get(at)?)?;
        Some(Self {
            pin: (*call.func).clone(),
            prologue: statements[..at].to_vec(),
            statements: body,
            returned,
        })
    }

    /// What the arguments are called in the body, in the order of the signature.
    pub(crate) fn bindings(&self, sig: &Signature) -> Vec<Binding> {
        typed(sig)
            .flat_map(|argument| {
                let pattern = self.taken_up(&argument.pat).unwrap_or(&argument.pat);
                bound(pattern, &argument.attrs)
            })
            .filter(|binding| !binding.name.to_string().starts_with("__"))
            .collect()
    }

    /// The pattern by which the prologue takes an argument up; references it leaves alone.
    fn taken_up(&self, argument: &Pat) -> Option<&Pat> {
        let Pat::Ident(argument) = argument else {
            return None;
        };
        self.prologue.iter().find_map(|statement| match statement {
            Stmt::Local(local) => {
                let init = local.init.as_ref()?;
                gives(&init.expr, &argument.ident).then_some(&local.pat)
            }
            _ => None,
        })
    }
}

/// `name`, or `{ let name = name; name }`.
fn gives(expr: &Expr, name: &Ident) -> bool {
    match expr {
        Expr::Path(path) => path.path.is_ident(name),
        Expr::Block(block) => match block.block.stmts.last() {
            Some(Stmt::Expr(last, None)) => gives(last, name),
            _ => false,
        },
        _ => false,
    }
}

/// `let __ret: R = { body };`
fn result(statement: &Stmt) -> Option<(Type, TokenStream)> {
    let Stmt::Local(local) = statement else {
        return None;
    };
    let Pat::Type(typed) = &local.pat else {
        return None;
    };
    let Pat::Ident(name) = &*typed.pat else {
        return None;
    };
    let Expr::Block(block) = &*local.init.as_ref()?.expr else {
        return None;
    };
    let statements = &block.block.stmts;
    (name.ident == "__ret").then(|| ((*typed.ty).clone(), quote!(#(#statements)*)))
}

fn not_async(sig: &Signature, attribute: &str) -> syn::Error {
    struct Future(bool);
    impl<'ast> Visit<'ast> for Future {
        fn visit_type_impl_trait(&mut self, ty: &'ast TypeImplTrait) {
            self.0 |= ty.to_token_stream().to_string().contains("Future");
            visit::visit_type_impl_trait(self, ty);
        }
    }
    let mut future = Future(false);
    future.visit_return_type(&sig.output);
    if future.0 {
        return syn::Error::new_spanned(
            &sig.output,
            "the body of such a function only makes a future, and may have had its effects before it is polled; write `async fn`",
        );
    }
    let message = match &sig.output {
        ReturnType::Type(_, ty) if ty.to_token_stream().to_string().contains("Future") => {
            "a boxed future is recognised only as `#[async_trait]` writes it; write `async fn`"
                .to_owned()
        }
        _ => {
            format!("`#[{attribute}]` needs an `async fn`: it asks the store before the body runs")
        }
    };
    syn::Error::new_spanned(sig.fn_token, message)
}
