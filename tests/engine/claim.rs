//! What becomes of a claim that is not answered, or answered twice.

use std::time::{Duration, Instant};

use idem_core::engine::Changes;
use idem_core::record::{ClaimReply, Outcome, Reply, Status};
use idem_core::store::MemoryStore;
use idem_core::{
    Attempt, Error, Idempotency, Key, OnError, Policy, Results, StoreErrorKind, observe,
};
use idem_tests::faulty::{Fault, Faulty, Verb};

use crate::rig::{Bodies, Held, LEASE, LIMIT, Rig, failure, is_failure, key};

const RUNS_WITHOUT: Policy = Policy::new().run_on_store_error();

#[tokio::test]
async fn a_first_call_is_one_claim_and_one_settle_and_a_duplicate_one_claim() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    let calls = || {
        let calls = |verb| rig.store.calls(verb);
        (calls(Verb::Claim), calls(Verb::Settle), calls(Verb::Renew))
    };
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
    assert_eq!(calls(), (1, 1, 0));
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
    assert_eq!(calls(), (2, 1, 0));
    let refused = rig.count(Policy::new().reject_duplicates(), &bodies).await;
    assert!(matches!(refused, Err(Error::Duplicate { .. })));
    assert_eq!(calls(), (3, 1, 0));
    // Only the first call of an engine asks for the time.
    assert_eq!(rig.store.calls(Verb::Now), 1);
}

// N23, N27
#[tokio::test]
async fn a_claim_whose_reply_was_lost_is_sent_again_by_the_same_owner() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    rig.store.next(Verb::Claim, [Fault::lose_the_reply()]);
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
    assert_eq!(rig.store.calls(Verb::Claim), 2);
    assert_eq!(rig.record().await.unwrap().attempt, 1);
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
    assert_eq!(bodies.count(), 1);
}

// R08
#[tokio::test]
async fn a_store_that_never_answers_is_an_error_within_the_limit() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    rig.store.all(Fault::hang());
    let begin = Instant::now();
    let calls: Vec<_> = (0..100)
        .map(|_| {
            let (rig, bodies) = (rig.clone(), bodies.clone());
            tokio::spawn(async move { rig.count(Policy::new(), &bodies).await })
        })
        .collect();
    for call in calls {
        let refused = call.await.unwrap();
        assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    }
    assert!(begin.elapsed() >= LIMIT);
    assert!(begin.elapsed() < LIMIT * 10, "{:?}", begin.elapsed());
    assert_eq!(bodies.count(), 0);
}

// N24, X01
#[tokio::test]
async fn a_claim_that_was_granted_without_an_answer_is_given_up() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    rig.store.next(Verb::Claim, [Fault::swallow_the_reply(); 2]);
    let refused = rig.count(Policy::new(), &bodies).await;
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    rig.clock.advance(LIMIT * 2);
    rig.until_idle().await;
    assert_eq!(rig.status().await, None);
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
}

/// Its record is held as unknown for longer than `expire`, although its body never ran.
#[tokio::test]
async fn a_claim_is_given_up_also_after_an_outage_that_was_longer_than_the_retention() {
    const EXPIRE: Duration = Duration::from_millis(500);
    let (rig, bodies) = (Rig::new(), Bodies::default());
    let policy = Policy::new().expire(EXPIRE);
    rig.store.next(Verb::Claim, [Fault::swallow_the_reply(); 2]);
    let away = Fault::fail(StoreErrorKind::Unavailable);
    rig.store.always(Verb::Settle, away);
    let refused = rig.count(policy, &bodies).await;
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    tokio::time::sleep(EXPIRE * 2).await;
    rig.clock.advance(EXPIRE * 2);
    rig.store.always(Verb::Settle, Fault::NONE);
    rig.until_idle().await;
    assert_eq!(rig.count(policy, &bodies).await.unwrap(), 1);
}

// N38
#[tokio::test]
async fn a_give_up_goes_on_until_the_claim_can_no_longer_arrive() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    rig.store.next(Verb::Claim, [Fault::stay_on_the_wire(); 2]);
    let refused = rig.count(Policy::new(), &bodies).await;
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    // The give-up comes first, and then what it was to give up.
    rig.store.until_calls(Verb::Settle, 1).await;
    let granted = rig.store.deliver_copies().await;
    assert!(matches!(granted[0], Reply::Claim(ClaimReply::Claimed(_))));
    rig.clock.advance(LIMIT * 2);
    rig.until_idle().await;
    assert_eq!(rig.status().await, None);
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
}

#[tokio::test]
async fn a_copy_of_a_claim_that_was_answered_by_a_refusal_holds_no_key() {
    let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
    let forgets = Policy::new().forget();
    let first = rig.hold(forgets, &held).await;
    rig.clock.advance(LIMIT);
    rig.store.next(Verb::Claim, [Fault::stay_on_the_wire()]);
    let refused = rig.count(forgets, &bodies).await;
    assert!(
        matches!(refused, Err(Error::InProgress { .. })),
        "{refused:?}"
    );
    held.release();
    assert_eq!(first.await.unwrap().unwrap(), 1);

    // The key is free again when the copy comes, and nobody asks for it any more.
    let granted = rig.store.deliver_copies().await;
    assert!(matches!(granted[0], Reply::Claim(ClaimReply::Claimed(_))));
    rig.clock.advance(LIMIT * 2);
    rig.until_idle().await;
    assert_eq!(rig.status().await, None);
    assert_eq!(bodies.count(), 0);
}

// N39
#[tokio::test]
async fn a_copy_of_the_first_send_is_not_granted_once_the_attempt_has_ended() {
    let rig = Rig::new();
    let policy = Policy::new();
    rig.store.next(Verb::Claim, [Fault::stay_on_the_wire()]);
    let failed = rig.run(policy, async || Err(failure())).await;
    assert!(is_failure(&failed));
    assert_eq!(rig.status().await, Some(Status::Failed));

    let replies = rig.store.deliver_copies().await;
    assert_eq!(replies, [Reply::Claim(ClaimReply::Closed)]);
    assert_eq!(rig.status().await, Some(Status::Failed));
}

// N39
#[tokio::test]
async fn nor_after_the_attempts_mark_has_gone() {
    let rig = Rig::new();
    let results = Results::<u32, Error>::stored().on_error(OnError::Release);
    rig.store.next(Verb::Claim, [Fault::stay_on_the_wire()]);
    let failed = rig
        .idem
        .run_with(key(), Policy::new(), results, None, async || Err(failure()));
    assert!(is_failure(&failed.await));
    rig.clock.advance(LEASE * 60);
    let replies = rig.store.deliver_copies().await;
    assert_eq!(replies, [Reply::Claim(ClaimReply::Late)]);
    assert_eq!(rig.status().await, None);
}

/// Its age is reckoned from its deadline, whose parts below a millisecond no store knows.
#[tokio::test]
async fn a_copy_is_older_than_a_later_attempt_by_less_than_a_millisecond_too() {
    let rig = Rig::with(|builder| builder.limit(LIMIT + Duration::from_micros(900)));
    let policy = Policy::new();
    rig.store.next(Verb::Claim, [Fault::stay_on_the_wire()]);
    for _ in 0..2 {
        let failed = rig.run(policy, async || Err(failure())).await;
        assert!(is_failure(&failed));
        rig.clock.advance(Duration::from_micros(500));
    }
    let replies = rig.store.deliver_copies().await;
    assert_eq!(replies, [Reply::Claim(ClaimReply::Late)]);
    assert_eq!(rig.status().await, Some(Status::Failed));
}

#[tokio::test]
async fn a_claim_that_was_under_way_for_too_long_is_sent_again_with_a_new_deadline() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    rig.store.next(Verb::Claim, [Fault::NONE.gated()]);
    let call = {
        let (rig, bodies) = (rig.clone(), bodies.clone());
        tokio::spawn(async move { rig.count(Policy::new(), &bodies).await })
    };
    rig.store.until_calls(Verb::Claim, 1).await;
    rig.clock.advance(LIMIT * 3);
    rig.store.open();
    assert_eq!(call.await.unwrap().unwrap(), 1);
    assert_eq!(rig.store.calls(Verb::Claim), 2);
}

// N04
#[tokio::test]
async fn a_store_that_answers_gives_no_permission_by_an_error() {
    use StoreErrorKind::{Conflict, Misconfigured, Protocol, Refused};
    // What passes is asked for again.
    for (kind, claims) in [
        (Protocol, 1),
        (Misconfigured, 1),
        (Conflict, 2),
        (Refused, 2),
    ] {
        for policy in [Policy::new(), RUNS_WITHOUT] {
            let (rig, bodies) = (Rig::new(), Bodies::default());
            rig.store.always(Verb::Claim, Fault::fail(kind));
            let refused = rig.count(policy, &bodies).await;
            assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
            assert_eq!(bodies.count(), 0);
            assert_eq!(rig.store.calls(Verb::Claim), claims);
        }
    }
}

// R11
#[tokio::test]
async fn without_a_store_the_body_runs_unguarded_where_that_was_asked_for() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    rig.store.all(Fault::fail(StoreErrorKind::Unavailable));
    let call = rig.run(RUNS_WITHOUT, async || {
        assert!(Attempt::current().is_none());
        Ok(bodies.add())
    });
    let (result, outcome) = observe(call).await;
    assert_eq!(result.unwrap(), 1);
    assert_eq!(outcome, idem_core::Outcome::Unguarded);
    assert_eq!(rig.counts().unguarded, 1);
}

/// What was surely never sent has left nothing to give up or to settle.
#[tokio::test]
async fn a_claim_that_was_never_sent_is_followed_by_nothing() {
    for policy in [Policy::new(), RUNS_WITHOUT] {
        let (rig, bodies) = (Rig::new(), Bodies::default());
        rig.store.always(Verb::Claim, Fault::unsent());
        let result = rig.count(policy, &bodies).await;
        assert_eq!(result.is_ok(), policy == RUNS_WITHOUT, "{result:?}");
        rig.until_idle().await;
        assert_eq!(rig.store.calls(Verb::Settle), 0);
    }
}

#[tokio::test]
async fn an_unguarded_body_that_panics_is_told_to_the_store_too() {
    let rig = Rig::new();
    rig.store.next(Verb::Claim, [Fault::swallow_the_reply(); 2]);
    let running = rig.clone();
    let call = async move {
        let body = async || panic!("of the body");
        running.run(RUNS_WITHOUT, body).await
    };
    assert!(tokio::spawn(call).await.unwrap_err().is_panic());
    rig.clock.advance(LIMIT * 2);
    rig.until_idle().await;
    assert!(rig.is_abandoned().await);
}

// N02, R11
#[tokio::test]
async fn an_unguarded_body_still_settles_what_its_claim_may_have_taken() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    rig.store.next(Verb::Claim, [Fault::swallow_the_reply(); 2]);
    assert_eq!(rig.count(RUNS_WITHOUT, &bodies).await.unwrap(), 1);
    rig.clock.advance(LIMIT * 2);
    rig.until_idle().await;
    assert_eq!(rig.status().await, Some(Status::Success));
    assert_eq!(rig.count(RUNS_WITHOUT, &bodies).await.unwrap(), 1);
    assert_eq!(bodies.count(), 1);
}

#[tokio::test]
async fn an_unguarded_body_that_is_dropped_or_fails_says_so() {
    for (ends, outcome) in [(true, Outcome::Failed), (false, Outcome::Abandon)] {
        let rig = Rig::new();
        rig.store.next(Verb::Claim, [Fault::swallow_the_reply(); 2]);
        let held = Held::new();
        let (running, body) = (rig.clone(), held.clone());
        let call = tokio::spawn(async move {
            let body = async || {
                body.stay().await;
                Err(failure())
            };
            running.run(RUNS_WITHOUT, body).await
        });
        held.entered().await;
        if ends {
            held.release();
            assert!(is_failure(&call.await.unwrap()));
        } else {
            call.abort();
            assert!(call.await.is_err());
        }
        rig.clock.advance(LIMIT * 2);
        rig.until_idle().await;
        assert!(rig.outcomes().contains(&outcome), "{:?}", rig.outcomes());
        assert!(!rig.is_live().await);
    }
}

/// Somebody was seen to run: to run beside them would not be a risk but a certainty.
#[tokio::test]
async fn a_waiter_does_not_run_unguarded_beside_the_attempt_it_waits_for() {
    let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
    let first = rig.hold(Policy::new(), &held).await;
    rig.store.next(Verb::Claim, [Fault::NONE]);
    rig.store
        .always(Verb::Claim, Fault::fail(StoreErrorKind::Unavailable));
    let waits = RUNS_WITHOUT.wait_in_progress();
    let refused = rig.count(waits, &bodies).await;
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    assert_eq!(bodies.count(), 0);
    held.release();
    assert_eq!(first.await.unwrap().unwrap(), 1);
}

#[tokio::test]
async fn a_claim_that_finds_itself_closed_is_made_once_more_as_another_attempt() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    rig.store
        .next(Verb::Claim, [Fault::lose_the_reply(), Fault::NONE.gated()]);
    let call = {
        let (rig, bodies) = (rig.clone(), bodies.clone());
        tokio::spawn(async move { rig.count(Policy::new(), &bodies).await })
    };
    rig.store.until_calls(Verb::Claim, 2).await;
    // An operator ends the attempt that has not heard yet of its own grant.
    let forgotten = rig.idem.forget(&key()).force().await.unwrap();
    assert_eq!(forgotten, Changes::Done);
    rig.store.open();
    assert_eq!(call.await.unwrap().unwrap(), 1);
    assert_eq!(rig.store.calls(Verb::Claim), 3);
    assert_eq!(rig.status().await, Some(Status::Success));
}

#[tokio::test]
async fn a_store_that_is_full_is_an_error_and_no_permission() {
    let store = Faulty::new(MemoryStore::new().capacity(1));
    let idem = Idempotency::builder(store.clone()).build().unwrap();
    let run = async |part: u8| {
        let key = Key::new("test", part).unwrap();
        idem.run(key, RUNS_WITHOUT, async || Ok::<_, Error>(part))
            .await
    };
    assert_eq!(run(1).await.unwrap(), 1);
    let refused = run(2).await;
    let Err(Error::Store { source }) = &refused else {
        panic!("{refused:?}");
    };
    assert_eq!(source.kind(), StoreErrorKind::Refused);
    assert_eq!(run(1).await.unwrap(), 1);
}

/// A store of somebody's own may panic.
#[tokio::test]
async fn a_claim_whose_store_panics_is_given_up() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    rig.store.next(Verb::Claim, [Fault::panic()]);
    let panicking = rig.clone();
    let call = async move { panicking.run(Policy::new(), async || Ok(1)).await };
    assert!(tokio::spawn(call).await.unwrap_err().is_panic());
    rig.clock.advance(LIMIT * 2);
    rig.until_idle().await;
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
}

#[tokio::test]
async fn a_body_that_asks_for_its_own_key_is_refused_and_does_not_wait_for_itself() {
    let rig = Rig::new();
    let outer = rig.run(Policy::new(), async || {
        for policy in [Policy::new(), Policy::new().wait_in_progress().wait(LIMIT)] {
            let inner = rig.run(policy, async || Ok(2)).await;
            assert!(matches!(inner, Err(Error::InProgress { .. })), "{inner:?}");
        }
        Ok(1)
    });
    assert_eq!(outer.await.unwrap(), 1);
}
