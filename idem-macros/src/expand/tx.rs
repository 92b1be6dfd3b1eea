//! The guard of a function with `tx`: the body runs in a savepoint, under the name of the
//! transaction.

use proc_macro2::TokenStream;
use quote::quote_spanned;

use super::Guard;
use crate::model::Tx;

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
            return match #private::transaction::admit(__idem_call, __idem_key, __idem_connection).await {
                #private::transaction::Admitted::Answer(__idem_answer) => __idem_answer,
                #private::transaction::Admitted::Run(__idem_run, mut __idem_savepoint) => {
                    let __idem_result = {
                        let #binding = &mut __idem_savepoint;
                        __idem_run.body(#private::Box::pin(async move #body)).await
                    };
                    __idem_run.settle(__idem_result, __idem_savepoint).await
                }
            };
        }
    }
}
