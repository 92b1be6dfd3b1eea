//! The laws that every store keeps, to run on your own.
//!
//! Give the suite a [`Harness`] that makes stores, and let [`conformance_tests!`] turn each law
//! into a test of its own, or [`run`] run them all:
//!
//! ```
//! use std::time::Duration;
//! use idem_core::conformance::{self, Harness};
//! use idem_core::store::memory::{ManualClock, MemoryStore};
//!
//! #[derive(Default)]
//! struct InMemory {
//!     clock: ManualClock,
//! }
//!
//! impl Harness for InMemory {
//!     type Store = MemoryStore<ManualClock>;
//!
//!     async fn fresh_store(&self) -> Self::Store {
//!         MemoryStore::with_clock(self.clock.clone())
//!     }
//!
//!     async fn pass_time(&self, time: Duration) {
//!         self.clock.advance(time);
//!     }
//! }
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! conformance::run(&InMemory::default()).await;
//! # });
//! ```
//!
//! A law that fails panics, names itself and prints the operations that led there, with each
//! reply and the store's time of it. [`differential`] is the other half: it compares a store with
//! [`step`](crate::record::step()) over long random histories.
//!
//! [`conformance_tests!`]: crate::conformance_tests

mod caller;
mod checks;
mod claims;
mod differential;
mod laws;
mod losses;
mod matrix;
mod operators;
mod races;
mod reading;
mod refusals;
mod renewals;
mod settles;
mod times;
mod tokens;
mod trial;

pub use differential::{Course, Report, differential};

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use self::trial::{Stop, Trial, Tried};
use crate::store::{Store, StoreKey};

/// What the suite needs to know of a store.
pub trait Harness: Send + Sync + 'static {
    /// The store under test.
    type Store: Store;

    /// A store for one law. It may share its server with others: no two laws use the same key.
    fn fresh_store(&self) -> impl Future<Output = Self::Store> + Send;

    /// Lets the store's clock go on by `time`, which is real time unless the store's clock is a
    /// manual one.
    fn pass_time(&self, time: Duration) -> impl Future<Output = ()> + Send {
        tokio::time::sleep(time)
    }

    /// The shortest lease with which a few calls in a row are surely over before it lapses. A law
    /// that was too slow for its own lease is tried again with a longer one.
    fn pace(&self) -> Duration {
        Duration::from_millis(300)
    }

    /// Puts bytes that are no record at `key`; says `false` if this store can not hold such.
    fn corrupt(&self, store: &Self::Store, key: &StoreKey) -> impl Future<Output = bool> + Send {
        let _ = (store, key);
        async { false }
    }

    /// After which time the store itself will drop what it holds at `key`, closed marks included;
    /// `None` if it can not tell. [`Duration::MAX`] for one that it holds for ever.
    fn time_to_live(
        &self,
        store: &Self::Store,
        key: &StoreKey,
    ) -> impl Future<Output = Option<Duration>> + Send {
        let _ = (store, key);
        async { None }
    }

    /// Whether [`Store::watch`] reports ends; without that the laws about it say nothing.
    fn pushes(&self) -> bool {
        false
    }
}

/// Runs every law, one after the other.
///
/// # Panics
/// If the store breaks a law, or gives an error instead of an answer.
pub async fn run<H: Harness>(harness: &H) {
    for law in laws() {
        law.check(harness).await;
    }
}

/// Runs the law called `name` on a runtime of its own: the body of a test that
/// [`conformance_tests!`](crate::conformance_tests) writes.
///
/// # Panics
/// If the store breaks the law, or there is none of that name.
#[doc(hidden)]
pub fn run_law<H: Harness>(name: &str, harness: &H) {
    let law = laws().into_iter().find(|law| law.name == name);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    match (law, runtime) {
        (Some(law), Ok(runtime)) => runtime.block_on(law.check(harness)),
        (None, _) => panic!("there is no law called {name}"),
        (_, Err(error)) => panic!("no runtime for the law {name}: {error}"),
    }
}

type Trying<'a> = Pin<Box<dyn Future<Output = Tried> + Send + 'a>>;

struct Law<H: Harness> {
    name: &'static str,
    body: for<'a> fn(&'a Trial<'a, H>) -> Trying<'a>,
}

impl<H: Harness> Law<H> {
    /// Tries the law until it was quick enough for its own leases.
    async fn check(&self, harness: &H) {
        const TRIES: u32 = 6;
        for slower in 0..TRIES {
            let trial = Trial::new(self.name, harness, harness.pace() * 2_u32.pow(slower)).await;
            match (self.body)(&trial).await {
                Ok(()) => return,
                Err(Stop::TooSlow) => {}
                Err(Stop::Store(error)) => {
                    panic!("{}: the store gave no answer: {error:?}", self.name)
                }
            }
        }
        panic!(
            "{}: after {TRIES} tries the store still answers too slowly, or as if it did",
            self.name
        );
    }
}

/// Writes a module of tests for each group of laws, one test a law.
///
/// The argument is an expression that gives a [`Harness`]; it is evaluated by each test. The modules
/// are named after what they are about (`claims`, `settles`, …): call this in a module of its own
/// for each store.
///
/// # Examples
/// ```
/// # use idem_core::conformance::Harness;
/// # use idem_core::MemoryStore;
/// # struct InMemory;
/// # impl Harness for InMemory {
/// #     type Store = MemoryStore;
/// #     async fn fresh_store(&self) -> MemoryStore { MemoryStore::new() }
/// # }
/// idem_core::conformance_tests!(InMemory);
/// ```
///
/// [`Harness`]: crate::conformance::Harness
#[macro_export]
macro_rules! conformance_tests {
    ($harness:expr) => {
        $crate::__idem_laws! { [$crate::__idem_tests_of_laws] ($harness) }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! __idem_tests_of_laws {
    ($harness:tt $($group:ident { $($law:ident)* })*) => {
        $(
            mod $group {
                #[allow(unused_imports, reason = "the harness may be named by its full path")]
                use super::*;
                $(
                    #[test]
                    fn $law() {
                        let name = concat!(stringify!($group), "::", stringify!($law));
                        $crate::conformance::run_law(name, &$harness);
                    }
                )*
            }
        )*
    };
}

macro_rules! table_of_laws {
    (() $($group:ident { $($law:ident)* })*) => {
        fn laws<H: Harness>() -> Vec<Law<H>> {
            vec![$($(Law {
                name: concat!(stringify!($group), "::", stringify!($law)),
                body: |trial| Box::pin($group::$law(trial)),
            }),*),*]
        }
    };
}

crate::__idem_laws! { [table_of_laws] () }
