//! What an author sees with `cargo expand`, kept as snapshots.

use proc_macro2::TokenStream;
use quote::quote;

use crate::args::{IDEMPOTENT, LOCKED, Words};
use crate::{expand::expand, model::Model};

fn assert_expansion(name: &str, args: TokenStream, item: TokenStream) {
    assert_expansion_of(&IDEMPOTENT, name, args, item);
}

fn assert_expansion_of(words: &'static Words, name: &str, args: TokenStream, item: TokenStream) {
    let model = Model::new(words, args, item).unwrap_or_else(|mistake| panic!("{mistake}"));
    let file = syn::parse2(expand(&model)).unwrap();
    let shown = prettyplease::unparse(&file);
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.set_prepend_module_to_snapshot(false);
    settings.bind(|| insta::assert_snapshot!(name, shown));
}

#[test]
fn a_plain_function() {
    assert_expansion(
        "a_plain_function",
        quote!(prefix = "order:pay", key = "request.order_no", expire = 600),
        quote! {
            /// Pays an order.
            pub async fn pay(request: PayRequest) -> Result<Receipt, PayError> {
                charge(&request).await?;
                Ok(Receipt::of(request))
            }
        },
    );
}

#[test]
fn a_method_with_every_kind_of_option() {
    assert_expansion(
        "a_method_with_every_kind_of_option",
        quote!(
            prefix = "order:pay",
            key = "{self.tenant}-{request.coupon?.code}:{request.lines[0]}",
            fingerprint = "request, request.headers[\"x\"]",
            lease = "30s",
            wait = MAX_WAIT,
            on_duplicate = "reject",
            on_error = classify,
            replay_errors = true,
            on_abandoned = "rerun",
            checkpoint = true,
            recover = Self::lookup,
            message = "being paid",
            engine = self.engine,
            on_store_error = "run",
            on_missing_key = "run",
            detach = true,
            crate = shop::idem,
        ),
        quote! {
            async fn pay(self: Arc<Self>, Json(request): Json<PayRequest>, _permit: Permit) -> anyhow::Result<Receipt> {
                #![allow(unused)]
                Ok(Receipt)
            }
        },
    );
}

#[test]
fn an_expression_key() {
    assert_expansion(
        "an_expression_key",
        quote!(
            prefix = "order:pay",
            key = (
                request.user_id,
                request.items.first()?.id,
                format!("{}", a + b)
            ),
            forget = true
        ),
        quote! {
            async fn pay<'a, T: Db>(db: &'a T, request: &'a PayRequest, a: u8, b: u8) -> Result<&'a str, Error>
            where
                T: Send,
            {
                db.pay(request).await
            }
        },
    );
}

#[test]
fn a_body_that_async_trait_boxed() {
    assert_expansion(
        "a_body_that_async_trait_boxed",
        quote!(prefix = "order:pay", key = (self.tenant, order_no)),
        quote! {
            fn pay<'life0, 'async_trait>(
                &'life0 self,
                order_no: String,
            ) -> ::core::pin::Pin<
                Box<dyn ::core::future::Future<Output = Result<Receipt, Error>> + ::core::marker::Send + 'async_trait>,
            >
            where
                'life0: 'async_trait,
                Self: 'async_trait,
            {
                Box::pin(async move {
                    if let ::core::option::Option::Some(__ret) = ::core::option::Option::None::<Result<Receipt, Error>> {
                        #[allow(unreachable_code)]
                        return __ret;
                    }
                    let __self = self;
                    let order_no = order_no;
                    let __ret: Result<Receipt, Error> = {
                        __self.charge(order_no).await
                    };
                    #[allow(unreachable_code)]
                    __ret
                })
            }
        },
    );
}

#[test]
fn a_token() {
    assert_expansion(
        "a_token",
        quote!(
            prefix = "order:submit",
            token = "form.token?",
            subject = (user.tenant, user.id)
        ),
        quote! {
            async fn submit(user: User, form: Form) -> Result<Receipt, Error> {
                save(form).await
            }
        },
    );
}

#[test]
fn a_function_under_a_lock() {
    assert_expansion_of(
        &LOCKED,
        "a_function_under_a_lock",
        quote!(
            prefix = "stock",
            key = "{item.shop}:{item.id}",
            lease = 10,
            wait = "5s",
            message = "somebody is at it",
            engine = engine
        ),
        quote! {
            async fn take(engine: &Engine, item: Item) -> Result<&str, Error> {
                engine.take(item).await
            }
        },
    );
}
