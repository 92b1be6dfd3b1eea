//! Records in the transaction of their caller, on real databases: the same scenes on each.

mod astray;
mod base;
mod by_hand;
mod concurrent;
mod ended;
mod given_up;
mod half;
mod isolation;
mod lease;
mod locks;
mod mysql;
mod once;
mod payloads;
mod postgres;
mod refused;
mod settle_in;
mod shop;
mod sqlite;

/// Runs scenes on a database, each as a test of its name.
macro_rules! scenes {
    ($base:ty: $($suite:ident::{$($scene:ident),* $(,)?}),* $(,)?) => {
        $(mod $suite {
            use super::*;
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $scene() {
                    crate::$suite::$scene::<$base>().await;
                }
            )*
        })*
    };
}
pub(crate) use scenes;
