//! A table that nobody has purged for long, and calls that go on while it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use idem_core::store::Store;
use idem_tests::attempt::{TERMS, finish, key};
use idem_tests::database::Aside;
use idem_tests::long::report;
use tokio::task::JoinSet;

const BATCH: u32 = 1000;

const LIVE: &str = "SELECT count(*) FROM idempotent_record WHERE business_type = 'shop:live'";

/// What all but one of a hundred calls take at most.
#[derive(Debug)]
struct Pace {
    /// Before the purge, or after it.
    usual: Duration,
    beside: Duration,
    purge: Duration,
}

impl Pace {
    /// Not where calls wait for as long as the purge lasts. That a machine stands still for a moment
    /// is no fault of it.
    fn is_steady(&self) -> bool {
        const MOMENT: Duration = Duration::from_millis(500);
        self.beside <= self.usual * 10 + MOMENT.min(self.purge / 10)
    }
}

/// Callers of keys that nobody else has.
#[derive(Clone)]
struct Live<S> {
    store: S,
    made: Arc<AtomicU64>,
}

impl<S: Store + Clone> Live<S> {
    /// How long calls take, while they are to go on.
    async fn calls(&self, go_on: impl Fn(usize) -> bool + Clone + Send + 'static) -> Duration {
        const CALLERS: usize = 4;
        let mut callers = JoinSet::new();
        for _ in 0..CALLERS {
            let (live, go_on) = (self.clone(), go_on.clone());
            callers.spawn(async move {
                let mut took = Vec::new();
                while go_on(took.len()) {
                    let begin = Instant::now();
                    live.call().await;
                    took.push(begin.elapsed());
                }
                took
            });
        }
        let mut took = callers.join_all().await.concat();
        took.sort_unstable();
        took[took.len() * 99 / 100]
    }

    async fn call(&self) {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let key = key("live", &number.to_string());
        finish(&self.store, &key, number, TERMS).await;
    }

    /// `purge` is told what calls take without it.
    async fn beside(&self, purge: impl AsyncFnOnce(Duration)) -> Pace {
        const CALLS: usize = 100;
        let usually = async || self.calls(|made| made < CALLS).await;
        let before = usually().await;
        let is_over = Arc::new(AtomicBool::new(false));
        let go_on = {
            let is_over = is_over.clone();
            move |made| made == 0 || !is_over.load(Ordering::Relaxed)
        };
        let purge = async {
            let begin = Instant::now();
            purge(before).await;
            is_over.store(true, Ordering::Relaxed);
            begin.elapsed()
        };
        let (purge, beside) = tokio::join!(purge, self.calls(go_on));
        Pace {
            usual: before.max(usually().await),
            beside,
            purge,
        }
    }
}

/// The first of `stores` is called, the other one purged by `delete`, by two at once; how often they
/// asked. `copies` makes the backlog of a row whose key is `sample`.
pub(crate) async fn goes_in_batches_beside_live_calls<S: Store + Clone>(
    name: &str,
    mut aside: impl Aside,
    [live, purged]: [S; 2],
    delete: impl AsyncFn(&S, u32) -> u64,
    (backlog, copies): (u64, String),
) -> u64 {
    finish(&live, &key("live", "sample"), 0, TERMS).await;
    aside.run(&copies).await;
    let live = Live {
        store: live,
        made: Arc::new(AtomicU64::new(1)),
    };
    let calls = AtomicU64::new(0);
    let purge = async || {
        let mut sum = 0;
        loop {
            calls.fetch_add(1, Ordering::Relaxed);
            match delete(&purged, BATCH).await {
                0 => return sum,
                deleted => {
                    assert!(deleted <= u64::from(BATCH));
                    sum += deleted;
                }
            }
        }
    };
    let pace = live.beside(async |_| {
        let (first, second) = tokio::join!(purge(), purge());
        assert_eq!(first + second, backlog);
    });
    let pace = pace.await;
    report(
        "differential",
        format_args!("{name}, {backlog} rows purged: {pace:.0?}"),
    );
    assert!(pace.is_steady(), "{pace:?}");
    let made = live.made.load(Ordering::Relaxed);
    assert_eq!(u64::try_from(aside.count(LIVE).await).unwrap(), made);
    calls.into_inner()
}

/// What could not fail would show nothing: somebody who has the table to himself meanwhile.
pub(crate) async fn a_purge_that_locks_the_table_is_found_out<S: Store + Clone>(
    store: S,
    mut aside: impl Aside,
    [lock, unlock]: [&str; 2],
) {
    let live = Live {
        store,
        made: Arc::new(AtomicU64::new(0)),
    };
    // A machine that is slow of a sudden afterwards can hide it.
    for _ in 0..3 {
        let pace = live.beside(async |usual| {
            aside.run(lock).await;
            // No longer than a call has patience.
            let lasts = (usual * 50).clamp(Duration::from_secs(3), Duration::from_secs(15));
            tokio::time::sleep(lasts).await;
            aside.run(unlock).await;
        });
        let pace = pace.await;
        if !pace.is_steady() {
            return;
        }
        eprintln!("not seen: {pace:?}");
    }
    panic!("calls were as quick as usual beside a table that was locked");
}
