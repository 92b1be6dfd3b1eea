//! The guard of a function with `tx`: the body runs in a savepoint, under the name of the
//! transaction.

use proc_macro2::TokenStream;
use quote::quote_spanned;
use syn::{FnArg, Pat, Signature};

use super::Guard;
use crate::model::{Model, Tx};

/// The user's signature. `mut` before the name of the transaction is for the body, which has a
/// binding of its own; here it would be unused.
pub(super) fn signature(model: &Model) -> Signature {
    let mut signature = model.function.item.sig.clone();
    for input in &mut signature.inputs {
        if let (FnArg::Typed(argument), Some(tx)) = (input, &model.tx)
            && let Pat::Ident(binding) = &mut *argument.pat
            && binding.ident == tx.binding.ident
        {
            binding.mutability = None;
        }
    }
    signature
}

impl Guard<'_> {
    /// Admission, then the body, then its record: all on the connection of the transaction.
    pub(super) fn in_transaction(&self, tx: &Tx, statements: &TokenStream) -> TokenStream {
        let private = &self.private;
        let (binding, argument) = (&tx.binding, &tx.at_type);
        let body = self.body(statements);
        let allow = super::is_idle(&binding.ident)
            .then(|| quote_spanned!(self.site=> #[allow(clippy::used_underscore_binding)]));
        quote_spanned! {self.site=>
            #allow
            let __idem_connection = #private::transaction::opened(#argument);
            let __idem_admitted =
                #private::transaction::admit(__idem_call, __idem_key, &mut *__idem_connection);
            let (__idem_answer, __idem_before) = match __idem_admitted.await {
                #private::transaction::Admitted::Answer(__idem_answer, __idem_before) => {
                    (__idem_answer, __idem_before)
                }
                #private::transaction::Admitted::Run(__idem_run, mut __idem_savepoint, __idem_before) => {
                    let __idem_result = {
                        let #binding = &mut __idem_savepoint;
                        __idem_run.body(#private::Box::pin(async move #body)).await
                    };
                    (__idem_run.settle(__idem_result, __idem_savepoint).await, __idem_before)
                }
            };
            return #private::transaction::restore(__idem_connection, __idem_before, __idem_answer)
                .await;
        }
    }
}
