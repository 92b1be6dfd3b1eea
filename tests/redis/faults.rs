//! A server that forgets, refuses, freezes, dies and comes back.

use std::time::{Duration, Instant};

use idem_core::record::{Claim, ClaimReply, Outcome, RenewReply, SettleReply, Slot, State};
use idem_core::store::redis::RedisBuilder;
use idem_core::store::{Answer, RedisStore, Store};
use idem_core::{StoreError, StoreErrorKind};
use idem_tests::proxy::{Mode, Then};
use idem_tests::redis::{RedisOptions, RedisServer};
use tokio::task::JoinSet;

use crate::attempt::{TERMS, claim, echo, first_call, order, proxy, renew, result, settle};

const LIMIT: Duration = Duration::from_millis(500);

/// Limits are kept by timers; a busy machine fires them late.
const LATE: Duration = Duration::from_millis(400);

fn plain() -> RedisServer {
    RedisServer::start(RedisOptions::new()).unwrap()
}

async fn quick(url: &str) -> RedisStore {
    RedisBuilder::server(url)
        .limit(LIMIT)
        .connect()
        .await
        .unwrap()
}

/// The error of a call, which has to come within the limit.
async fn refused_in_time<R: std::fmt::Debug>(
    call: impl Future<Output = Result<R, StoreError>>,
) -> StoreError {
    let begin = Instant::now();
    let error = call.await.unwrap_err();
    let took = begin.elapsed();
    assert!(took < LIMIT + LATE, "an answer took {took:?}");
    error
}

/// Calls until one is answered; each has to be answered in time.
async fn until_answered(store: &RedisStore, number: u64) -> Answer<ClaimReply> {
    let begin = Instant::now();
    loop {
        let now = store.now().await;
        let answer = match now {
            Ok(now) => store.claim(&order(number), &claim(number, now)).await,
            Err(error) => Err(error),
        };
        match answer {
            Ok(answer) => return answer,
            Err(error) => assert!(begin.elapsed() < Duration::from_secs(10), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

// CASES R01
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_that_are_flushed_during_load_are_sent_again_unseen() {
    let server = plain();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let mut tasks = JoinSet::new();
    for lane in 0..8 {
        let store = store.clone();
        tasks.spawn(async move {
            for number in 0..200 {
                let now = store.now().await.unwrap();
                first_call(&store, lane * 1000 + number, now).await;
            }
        });
    }
    let mut flushes = 0;
    while !tasks.is_empty() {
        server.cli(&["SCRIPT", "FLUSH"]).unwrap();
        flushes += 1;
        let rest = tokio::time::timeout(Duration::from_millis(10), tasks.join_next());
        if let Ok(Some(ended)) = rest.await {
            ended.unwrap();
        }
    }
    assert!(flushes > 2, "{flushes} flushes");
    assert!(
        server.calls("eval").unwrap() > 2,
        "nothing was flushed in time"
    );
}

// CASES R01
#[tokio::test]
async fn a_batch_of_renewals_survives_a_flush() {
    let server = plain();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let mut batch = Vec::new();
    for number in 0..20 {
        let now = store.now().await.unwrap();
        let claim = claim(number, now);
        let answer = store.claim(&order(number), &claim).await.unwrap();
        let ClaimReply::Claimed(grant) = answer.reply else {
            panic!("{answer:?}")
        };
        batch.push((
            order(number),
            renew(&claim, echo(&claim, grant, answer.now)),
        ));
    }
    server.cli(&["SCRIPT", "FLUSH"]).unwrap();
    for answer in store.renew_all(&batch).await {
        let rebuilt = false;
        assert_eq!(answer.unwrap().reply, RenewReply::Renewed { rebuilt });
    }
    let before = server.calls("evalsha").unwrap();
    store.renew_all(&batch).await;
    assert_eq!(server.calls("evalsha").unwrap() - before, 20);
    // Lost records are built again by the same batch, those that are there only renewed.
    server
        .cli(&["DEL", order(3).as_str(), order(7).as_str()])
        .unwrap();
    for ((key, _), answer) in batch.iter().zip(store.renew_all(&batch).await) {
        let rebuilt = *key == order(3) || *key == order(7);
        assert_eq!(answer.unwrap().reply, RenewReply::Renewed { rebuilt });
    }
}

// CASES R06
#[tokio::test]
async fn out_of_memory_begins_nothing_and_lets_an_attempt_finish() {
    let server = plain();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let now = store.now().await.unwrap();
    first_call(&store, 1, now).await;
    let running = claim(2, now);
    let answer = store.claim(&order(2), &running).await.unwrap();
    let ClaimReply::Claimed(grant) = answer.reply else {
        panic!("{answer:?}")
    };
    server.cli(&["CONFIG", "SET", "maxmemory", "1"]).unwrap();

    let error = store.claim(&order(3), &claim(3, now)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused, "{error}");
    assert_eq!(store.peek(&order(3)).await.unwrap().reply, Slot::Absent);
    let answer = store.claim(&order(1), &claim(4, now)).await.unwrap();
    assert!(matches!(answer.reply, ClaimReply::Completed { .. }));
    let waiting = Claim {
        wait: true,
        ..claim(5, now)
    };
    let answer = store.claim(&order(2), &waiting).await.unwrap();
    assert!(matches!(answer.reply, ClaimReply::InProgress { .. }));

    let echo = echo(&running, grant, answer.now);
    store
        .renew(&order(2), &renew(&running, echo.clone()))
        .await
        .unwrap();
    let settle = settle(&running, result(), echo);
    let answer = store.settle(&order(2), &settle).await.unwrap();
    assert_eq!(answer.reply, SettleReply::Settled);
    let Slot::Record(record) = store.peek(&order(2)).await.unwrap().reply else {
        panic!("no record")
    };
    assert!(matches!(
        record.state,
        State::Success {
            result: Some(_),
            ..
        }
    ));
}

// CASES R08
#[tokio::test]
async fn a_frozen_server_is_an_error_within_the_limit_also_the_tenth_time() {
    let server = plain();
    let store = quick(&server.url()).await;
    let now = store.now().await.unwrap();
    server.freeze().unwrap();
    for number in 0..10 {
        let (key, claim) = (order(number), claim(number, now));
        let error = refused_in_time(store.claim(&key, &claim)).await;
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        // The first claim is on its way; later ones do not get as far as a connection.
        assert_eq!(error.is_before_sending(), number > 0, "{error}");
    }
    server.thaw().unwrap();
    let answer = until_answered(&store, 99).await;
    assert!(matches!(answer.reply, ClaimReply::Claimed(_)));
}

// CASES R08
#[tokio::test]
async fn a_claim_that_was_frozen_for_longer_than_its_limit_is_refused_as_late() {
    let server = plain();
    let store = quick(&server.url()).await;
    let now = store.now().await.unwrap();
    let mut impatient = claim(1, now);
    impatient.terms.limit = LIMIT;
    impatient.not_after = now.after(LIMIT);
    server.freeze().unwrap();
    refused_in_time(store.claim(&order(1), &impatient)).await;
    server.thaw().unwrap();
    let later = until_answered(&store, 99).await.now;
    assert_eq!(store.peek(&order(1)).await.unwrap().reply, Slot::Absent);
    let answer = store.claim(&order(1), &claim(2, later)).await.unwrap();
    assert!(matches!(answer.reply, ClaimReply::Claimed(_)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_down_is_an_error_at_once_and_that_is_back_is_found_at_once() {
    let server = plain();
    let store = quick(&server.url()).await;
    let now = store.now().await.unwrap();
    server.kill().unwrap();
    let mut calls = JoinSet::new();
    for number in 0..100 {
        let store = store.clone();
        calls.spawn(async move {
            let (key, claim) = (order(number), claim(number, now));
            let error = refused_in_time(store.claim(&key, &claim)).await;
            assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        });
    }
    calls.join_all().await;
    // Those may all have been told by the connection that broke.
    let error = refused_in_time(store.claim(&order(100), &claim(100, now))).await;
    let address = server.address().to_string();
    assert!(error.to_string().contains(&address), "{error}");
    server.restart_empty().unwrap();
    let now = store.now().await.unwrap();
    first_call(&store, 1, now).await;
}

// CASES N23
#[tokio::test]
async fn a_lost_reply_is_an_error_and_the_same_claim_again_is_the_same_grant() {
    let server = plain();
    let proxy = proxy(server.address());
    let store = quick(&proxy.url()).await;
    let now = store.now().await.unwrap();
    first_call(&store, 1, now).await;
    for (number, then) in [(2, Then::Cut), (3, Then::Hang)] {
        let claim = claim(number, now);
        proxy.drop_reply_to("EVALSHA", then);
        let error = refused_in_time(store.claim(&order(number), &claim)).await;
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        assert!(!error.is_before_sending());
        let Slot::Record(record) = RedisStore::connect(&server.url())
            .await
            .unwrap()
            .peek(&order(number))
            .await
            .unwrap()
            .reply
        else {
            panic!("the server did not run it")
        };
        let answer = store.claim(&order(number), &claim).await.unwrap();
        let ClaimReply::Claimed(grant) = answer.reply else {
            panic!("{answer:?}")
        };
        assert_eq!(grant.fence, record.fence);
        assert_eq!(grant.number, 1);
    }
    // One send a call: the client does not resend by itself.
    assert_eq!(proxy.commands_called("EVALSHA"), 2 + 4);
}

// CASES N24
#[tokio::test]
async fn a_cancelled_call_disturbs_no_other() {
    let server = plain();
    let store = RedisStore::connect(&server.url()).await.unwrap();
    let now = store.now().await.unwrap();
    for number in 0..300 {
        let task = tokio::spawn({
            let store = store.clone();
            async move { store.claim(&order(number), &claim(number, now)).await }
        });
        tokio::task::yield_now().await;
        task.abort();
        let other = order(10_000 + number);
        let answer = store
            .claim(&other, &claim(10_000 + number, now))
            .await
            .unwrap();
        assert!(matches!(answer.reply, ClaimReply::Claimed(grant) if grant.number == 1));
    }
}

#[tokio::test]
async fn a_link_that_swallows_everything_is_replaced_at_the_second_call() {
    let server = plain();
    let proxy = proxy(server.address());
    let store = quick(&proxy.url()).await;
    let now = store.now().await.unwrap();
    proxy.drop_next_reply(Then::Hang);
    refused_in_time(store.claim(&order(1), &claim(1, now))).await;
    let answer = store.claim(&order(2), &claim(2, now)).await.unwrap();
    assert!(matches!(answer.reply, ClaimReply::Claimed(_)));
}

/// Each call may be sent twice, and none waits as long as the server stands still.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stands_still_is_asked_for_few_connections() {
    const AWAY: Duration = Duration::from_secs(3);
    let server = plain();
    let proxy = proxy(server.address());
    let builder = RedisBuilder::server(proxy.url()).limit(Duration::from_millis(100));
    let store = builder.connect().await.unwrap();
    let now = store.now().await.unwrap();
    let before = proxy.connections();
    server.freeze().unwrap();
    let begin = Instant::now();
    let mut calls = JoinSet::new();
    for number in 0..8 {
        let store = store.clone();
        calls.spawn(async move {
            while begin.elapsed() < AWAY {
                let answer = store.claim(&order(number), &claim(number, now)).await;
                assert!(answer.is_err(), "{answer:?}");
            }
        });
    }
    calls.join_all().await;
    let opened = proxy.connections() - before;
    server.thaw().unwrap();
    until_answered(&store, 99).await;
    // One a second, and one for the beginning and the end.
    assert!(opened <= AWAY.as_secs() + 2, "{opened} connections");
}

#[tokio::test]
async fn a_partition_that_heals_is_forgotten() {
    let server = plain();
    let proxy = proxy(server.address());
    let store = quick(&proxy.url()).await;
    let now = store.now().await.unwrap();
    for mode in [Mode::BlackHole, Mode::Cut, Mode::Hold] {
        proxy.set(mode);
        for number in 0..3 {
            refused_in_time(store.claim(&order(number), &claim(number, now))).await;
        }
        proxy.set(Mode::Pass);
        until_answered(&store, 99).await;
    }
}

#[tokio::test]
async fn a_master_that_was_demoted_refuses_and_is_dialled_again() {
    let first = plain();
    let second = plain();
    let store = quick(&first.url()).await;
    let now = store.now().await.unwrap();
    first_call(&store, 1, now).await;
    let port = second.port().to_string();
    first.cli(&["REPLICAOF", "127.0.0.1", &port]).unwrap();
    let error = refused_in_time(store.claim(&order(2), &claim(2, now))).await;
    assert_eq!(error.kind(), StoreErrorKind::Refused, "{error}");
    let error = refused_in_time(store.claim(&order(3), &claim(3, now))).await;
    assert_eq!(error.kind(), StoreErrorKind::Refused, "{error}");
    assert!(error.to_string().contains("replica"), "{error}");
    first.cli(&["REPLICAOF", "NO", "ONE"]).unwrap();
    until_answered(&store, 4).await;
}

#[tokio::test]
async fn a_server_that_is_loading_refuses_until_it_has_loaded() {
    let options = RedisOptions::new()
        .line("key-load-delay 100")
        .line("loading-process-events-interval-bytes 1024")
        .line("enable-debug-command yes");
    let server = RedisServer::start(options).unwrap();
    let store = quick(&server.url()).await;
    let now = store.now().await.unwrap();
    first_call(&store, 1, now).await;
    server.cli(&["DEBUG", "POPULATE", "20000"]).unwrap();
    server.cli(&["SAVE"]).unwrap();
    let loading = std::thread::spawn(move || {
        _ = server.cli(&["DEBUG", "RELOAD", "NOSAVE"]);
        server
    });
    let begin = Instant::now();
    let error = loop {
        assert!(begin.elapsed() < Duration::from_secs(10), "it never loaded");
        match store.claim(&order(1), &claim(2, now)).await {
            Err(error) if error.kind() == StoreErrorKind::Refused => break error,
            _ => tokio::time::sleep(Duration::from_millis(1)).await,
        }
    };
    assert!(
        error.to_string().to_lowercase().contains("loading"),
        "{error}"
    );
    let _server = tokio::task::spawn_blocking(|| loading.join())
        .await
        .unwrap()
        .unwrap();
    let answer = until_answered(&store, 1).await;
    assert!(
        matches!(answer.reply, ClaimReply::Completed { .. }),
        "{answer:?}"
    );
}

#[tokio::test]
async fn a_success_survives_the_servers_empty_restart_only_by_its_owner() {
    let server = plain();
    let store = quick(&server.url()).await;
    let now = store.now().await.unwrap();
    let claim = claim(1, now);
    let answer = store.claim(&order(1), &claim).await.unwrap();
    let ClaimReply::Claimed(grant) = answer.reply else {
        panic!("{answer:?}")
    };
    server.restart_empty().unwrap();
    until_answered(&store, 99).await;
    let mut settle = settle(
        &claim,
        Outcome::Success(None),
        echo(&claim, grant, answer.now),
    );
    settle.not_after = store.now().await.unwrap().after(TERMS.limit);
    let answer = store.settle(&order(1), &settle).await.unwrap();
    assert_eq!(answer.reply, SettleReply::Adopted);
}
