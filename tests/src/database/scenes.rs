//! What every SQL store has to stand, whatever its database.
#![expect(missing_docs, reason = "the names are sentences")]

use std::collections::BTreeSet;
use std::time::Duration;

use idem_core::record::{ClaimReply, Slot, Terms};
use idem_core::store::{Scan, Store};
use idem_core::{Idempotency, Key, Policy, StoreErrorKind};
use sqlx::Pool;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use crate::attempt::{TERMS, claim, finish, grant, key};
use crate::body::dropped_after;

// CASES N16
pub async fn keys_that_collations_confuse_are_apart<S: Store>(store: &S) {
    let long = "x".repeat(5000);
    let longer = format!("{long}x");
    let parts = [
        "Order-A",
        "order-a",
        "Ordér-A",
        "Orde\u{301}r-A",
        "Order-A ",
        " Order-A",
        "Order-A\t",
        "ß",
        "ss",
        "SS",
        "ﬀ",
        "ff",
        "日本",
        "日 本",
        "\u{1F600}",
        "\u{1F601}",
        &long,
        &longer,
    ];
    for (number, part) in (0..).zip(parts) {
        finish(store, &key("order:pay", part), number, TERMS).await;
    }
    finish(store, &key("order", "pay"), 100, TERMS).await;
    let now = store.now().await.unwrap();
    for (number, part) in (0_u64..).zip(parts) {
        let again = store
            .claim(&key("order:pay", part), &claim(1000, now, TERMS))
            .await;
        let expected = ClaimReply::Completed {
            result: Some(number.to_string().into_bytes().into()),
        };
        assert_eq!(again.unwrap().reply, expected, "{part}");
    }
    let mut seen = BTreeSet::new();
    let mut scan = Scan {
        prefix: "shop:order:pay::".into(),
        cursor: None,
        page_size: 5,
    };
    loop {
        let page = store.scan(&scan).await.unwrap().reply;
        seen.extend(page.entries.into_iter().map(|(text, _)| text));
        scan.cursor = page.next;
        if scan.cursor.is_none() {
            break;
        }
    }
    let text = |part: &&str| key("order:pay", part).as_str().to_owned();
    let all: BTreeSet<_> = parts.iter().map(text).collect();
    assert_eq!(seen, all);
}

// CASES Q11
pub async fn purges_at_once_delete_what_is_over_and_nothing_else<S: Store + Clone>(
    store: &S,
    purge: impl AsyncFn(&S, u32) -> u64,
) {
    const OVER: u64 = 300;
    const BATCH: u32 = 40;
    let brief = Terms {
        lease: Duration::from_millis(1),
        expire: Duration::from_millis(1),
        doubt: Duration::from_millis(1),
        ..TERMS
    };
    for number in 0..OVER {
        finish(store, &key("over", &number.to_string()), number, brief).await;
    }
    for number in 0..50 {
        finish(store, &key("live", &number.to_string()), number, TERMS).await;
    }
    let now = store.now().await.unwrap();
    let held = store
        .claim(&key("live", "held"), &claim(900, now, TERMS))
        .await;
    grant(held.unwrap().reply);

    let all_of = async || {
        let mut sum = 0;
        loop {
            let deleted = purge(store, BATCH).await;
            assert!(deleted <= u64::from(BATCH));
            sum += deleted;
            if deleted == 0 {
                return sum;
            }
        }
    };
    let live_traffic = async {
        for number in 50..100 {
            finish(store, &key("live", &number.to_string()), number, TERMS).await;
        }
    };
    let (first, second, ()) = tokio::join!(all_of(), all_of(), live_traffic);
    assert_eq!(first + second, OVER);
    for number in 0..100_u64 {
        let live = store.peek(&key("live", &number.to_string())).await.unwrap();
        assert!(matches!(live.reply, Slot::Record(_)), "{number}");
    }
    let held = store.peek(&key("live", "held")).await.unwrap();
    assert!(matches!(held.reply, Slot::Record(_)));
}

/// Many processes' worth of claims on few keys: one grant for each key.
pub async fn a_storm_on_few_keys_grants_each_once<S: Store + Clone>(stores: &[S]) {
    const KEYS: u64 = 8;
    const CLAIMS: u64 = 25;
    let mut claims = JoinSet::new();
    for number in 0..KEYS * CLAIMS {
        let store = stores[usize::try_from(number).unwrap() % stores.len()].clone();
        claims.spawn(async move {
            let now = store.now().await.unwrap();
            let key = key("storm", &(number % KEYS).to_string());
            let answer = store.claim(&key, &claim(number, now, TERMS)).await.unwrap();
            matches!(answer.reply, ClaimReply::Claimed(_))
        });
    }
    let granted = claims
        .join_all()
        .await
        .into_iter()
        .filter(|granted| *granted);
    assert_eq!(granted.count() as u64, KEYS);
}

/// As after a switch-over: so many connections lead to a server that only reads by now.
pub async fn connections_that_only_read_are_given_up<S: Store>(store: &S, connections: u32) {
    let (key, now) = (key("switched", "over"), store.now().await.unwrap());
    let claim = claim(1, now, TERMS);
    let mut refusals = 0;
    let granted = loop {
        match store.claim(&key, &claim).await {
            Ok(answer) => break answer.reply,
            Err(refused) => assert_eq!(refused.kind(), StoreErrorKind::Refused, "{refused}"),
        }
        refusals += 1;
        assert!(refusals <= connections, "they are used on and on");
    };
    grant(granted);
    assert!(refusals > 0, "none was used");
}

/// Whose renewals may not wait for what it has itself.
pub async fn a_body_that_has_the_whole_pool_keeps_its_lease<DB: sqlx::Database>(
    pool: Pool<DB>,
    store: impl Store,
) {
    const LEASE: Duration = Duration::from_secs(1);
    let idem = Idempotency::builder(store).build().unwrap();
    let key = Key::new("order", "1").unwrap();
    let body = async || {
        let most = pool.options().get_max_connections();
        let mut all = Vec::new();
        for _ in 0..most {
            all.push(pool.acquire().await?);
        }
        tokio::time::sleep(LEASE * 3).await;
        anyhow::Ok(all.len())
    };
    let kept = idem
        .run(key, Policy::new().lease(LEASE).rerun_abandoned(), body)
        .await;
    assert_eq!(kept.unwrap(), 1);
}

/// A body that blocks its thread does not keep the driver's thread from renewing its lease.
pub fn runtimes_do_not_depend_on_each_other<S: Store + Clone>(made: impl AsyncFn() -> S) {
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let first = runtime();
    let store = first.block_on(async {
        let store = made().await;
        finish(&store, &key("order", "first"), 1, TERMS).await;
        store
    });
    // Nobody drives the first runtime now.
    let second = runtime();
    second.block_on(async {
        for number in 0..20 {
            finish(&store, &key("order", &number.to_string()), number, TERMS).await;
        }
    });
    drop(first);
    second.block_on(finish(&store, &key("order", "second"), 1, TERMS));
    drop(second);
    runtime().block_on(finish(&store, &key("order", "third"), 1, TERMS));
}

/// However often a call was polled: dropped outside of its runtime, before or after that has ended.
pub fn a_call_may_outlive_its_runtime<S: Store + Clone>(
    made: impl AsyncFn() -> S,
    migrate: &impl AsyncFn(&S),
) {
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let home = runtime();
    let store = home.block_on(made());
    for (number, ends_first) in [(1, true), (2, false)] {
        for polls in 1.. {
            let key = key("runtime", &format!("{number}-{polls}"));
            let mut calls = Box::pin(async {
                migrate(&store).await;
                finish(&store, &key, 1, TERMS).await;
            });
            let mut ended = Some(runtime());
            let calling = dropped_after(polls, calls.as_mut());
            let done = ended.as_ref().unwrap().block_on(calling);
            if ends_first {
                ended = None;
            }
            drop(calls);
            drop(ended);
            if done.is_some() {
                break;
            }
        }
        let after = key("runtime", &format!("after {number}"));
        home.block_on(finish(&store, &after, 1, TERMS));
    }
}
