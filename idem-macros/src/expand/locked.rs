//! A function under a lock: acquisition, then the body.

use proc_macro2::TokenStream;
use quote::quote_spanned;

use super::Guard;

impl Guard<'_> {
    pub(super) fn locked(&self, statements: &TokenStream) -> TokenStream {
        let (private, krate) = (&self.private, &self.model.krate);
        let (policy, engine) = (self.policy(), self.engine());
        let (value, error) = self.types();
        let key = self.key();
        let run = self.run(statements);
        quote_spanned! {self.site=>
            use #krate::__private as #private;
            let __idem_call = #private::LockCall::new(
                #policy,
                #engine,
                #private::unstored::<#value, #error>(),
            );
            #key
            return match #private::lock(__idem_call, __idem_key).await {
                #private::Locked::Answer(__idem_answer) => __idem_answer,
                #private::Locked::Run(__idem_run) => { #run }
            };
        }
    }
}
