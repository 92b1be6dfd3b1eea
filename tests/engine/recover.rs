//! `recover`: asked by the holder of a takeover in doubt, and by nobody else.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use idem_core::engine::{Changes, Done, NotDone};
use idem_core::record::Status;
use idem_core::{Attempt, Error, Outcome, Policy, Recovered, idempotent, observe};
use idem_tests::faulty::{Fault, Verb};
use tokio::task::JoinHandle;
use tracing::Level;

use crate::rig::{Bodies, Held, LEASE, LIMIT, Rig};
use crate::saying::Said;

/// What a lookup finds.
#[derive(Clone)]
enum Lookup {
    Done(u32),
    NotDone,
    Unknown,
    Fails,
    Panics,
    Stays(Held),
}

#[derive(Clone)]
struct Bank {
    rig: Rig,
    bodies: Bodies,
    /// Where the first body stays, so that it can be dropped there.
    held: Held,
    lookups: Arc<Mutex<VecDeque<Lookup>>>,
}

impl Bank {
    fn new(lookups: impl IntoIterator<Item = Lookup>) -> Self {
        Self {
            rig: Rig::new(),
            bodies: Bodies::default(),
            held: Held::new(),
            lookups: Arc::new(Mutex::new(lookups.into_iter().collect())),
        }
    }

    async fn lookup(&self) -> Result<Recovered<u32>, fmt::Error> {
        let lookup = self.lookups.lock().unwrap().pop_front();
        match lookup.expect("nobody should have asked") {
            Lookup::Done(value) => Ok(Recovered::Done(value)),
            Lookup::NotDone => Ok(Recovered::NotDone),
            Lookup::Unknown => Ok(Recovered::Unknown),
            Lookup::Fails => Err(fmt::Error),
            Lookup::Panics => panic!("of the lookup"),
            Lookup::Stays(held) => {
                assert!(Attempt::current().unwrap().is_takeover());
                held.stay().await;
                Ok(Recovered::NotDone)
            }
        }
    }

    fn left(&self) -> usize {
        self.lookups.lock().unwrap().len()
    }

    #[idempotent(prefix = "test", key = "order", engine = self.rig.idem, lease = 1, recover = self.lookup())]
    async fn pay(&self, order: &str) -> Result<u32, Error> {
        assert_eq!(order, "A");
        self.body().await
    }

    #[idempotent(prefix = "test", key = "order", engine = self.rig.idem, lease = 1, recover = self.lookup(), on_abandoned = "rerun")]
    async fn pay_again(&self, order: &str) -> Result<u32, Error> {
        assert_eq!(order, "A");
        self.body().await
    }

    #[idempotent(prefix = "test", key = "order", engine = self.rig.idem, lease = 1, recover = self.lookup(), checkpoint = true)]
    async fn pay_marked(&self, order: &str, marks: bool) -> Result<u32, Error> {
        assert_eq!(order, "A");
        if marks {
            Attempt::current().unwrap().checkpoint().await?;
        }
        self.body().await
    }

    async fn body(&self) -> Result<u32, Error> {
        let number = self.bodies.add();
        if number == 1 {
            self.held.stay().await;
        }
        Ok(number)
    }

    /// A first attempt that is dropped in its body.
    async fn dies(&self) {
        let bank = self.clone();
        self.drop_in_body(tokio::spawn(async move { bank.pay("A").await }))
            .await;
    }

    async fn drop_in_body(&self, call: JoinHandle<Result<u32, Error>>) {
        self.held.entered().await;
        call.abort();
        assert!(call.await.is_err());
        self.rig.until_idle().await;
    }
}

fn is_unknown(result: &Result<u32, Error>) -> bool {
    matches!(result, Err(Error::OutcomeUnknown { .. }))
}

#[tokio::test]
async fn what_was_done_is_settled_without_the_body() {
    let bank = Bank::new([Lookup::Done(7)]);
    bank.dies().await;
    let (result, outcome) = observe(bank.pay("A")).await;
    assert_eq!(result.unwrap(), 7);
    assert_eq!(outcome, Outcome::Recovered);
    assert_eq!(bank.rig.status().await, Some(Status::Success));
    assert_eq!(bank.pay("A").await.unwrap(), 7);
    assert_eq!(bank.bodies.count(), 1);
}

#[tokio::test]
async fn what_was_not_done_is_run() {
    let bank = Bank::new([Lookup::NotDone]);
    bank.dies().await;
    let (result, outcome) = observe(bank.pay("A")).await;
    assert_eq!(result.unwrap(), 2);
    assert_eq!(outcome, Outcome::Executed);
    assert_eq!(bank.pay("A").await.unwrap(), 2);
}

// E02
#[tokio::test]
async fn what_nobody_can_say_stays_unknown_and_is_asked_again() {
    let bank = Bank::new([Lookup::Unknown, Lookup::Fails, Lookup::Done(7)]);
    bank.dies().await;
    for _ in 0..2 {
        let (result, outcome) = observe(bank.pay("A")).await;
        assert!(is_unknown(&result), "{result:?}");
        assert_eq!(outcome, Outcome::Refused);
        assert!(bank.rig.is_abandoned().await);
    }
    assert_eq!(bank.pay("A").await.unwrap(), 7);
    assert_eq!(bank.bodies.count(), 1);
}

/// Whoever goes by the error comes back, and is answered.
#[tokio::test]
async fn what_the_next_call_asks_again_is_worth_a_retry() {
    let bank = Bank::new([Lookup::Unknown, Lookup::Fails]);
    bank.dies().await;
    for _ in 0..2 {
        let unknown = bank.pay("A").await.unwrap_err();
        assert_eq!(
            (unknown.code(), unknown.http_status()),
            ("outcome_unknown", 409)
        );
        assert!(unknown.is_retryable());
        assert_eq!(unknown.retry_after(), Some(Duration::from_secs(1)));
        assert!(unknown.to_string().contains("asks it again"), "{unknown}");
    }
}

/// The same doubt, told to a function that has nobody to ask.
#[tokio::test]
async fn what_nobody_will_ask_is_not() {
    let bank = Bank::new([]);
    bank.dies().await;
    let unknown = bank.rig.count(Policy::new(), &bank.bodies).await;
    let unknown = unknown.unwrap_err();
    assert_eq!(unknown.code(), "outcome_unknown");
    assert!(!unknown.is_retryable());
    assert_eq!(unknown.retry_after(), None);
    assert!(unknown.to_string().contains("resolve the key"), "{unknown}");
}

#[tokio::test]
async fn a_lookup_that_fails_is_said_and_one_that_can_not_tell_is_not() {
    let bank = Bank::new([Lookup::Unknown, Lookup::Fails]);
    bank.dies().await;
    let said = Said::default();
    let listens = said.listens(Level::WARN);
    for _ in 0..2 {
        assert!(is_unknown(&bank.pay("A").await));
    }
    drop(listens);
    let only = said.only();
    assert!(only.contains("`recover` gave an error"), "{only}");
}

#[tokio::test]
async fn a_lookup_that_panics_or_is_dropped_leaves_the_doubt() {
    let stays = Held::new();
    let bank = Bank::new([
        Lookup::Panics,
        Lookup::Stays(stays.clone()),
        Lookup::Unknown,
    ]);
    bank.dies().await;
    for panics in [true, false] {
        let asking = bank.clone();
        let call = tokio::spawn(async move { asking.pay("A").await });
        if !panics {
            stays.entered().await;
            call.abort();
        }
        assert_eq!(call.await.unwrap_err().is_panic(), panics);
        bank.rig.until_idle().await;
        assert!(bank.rig.is_abandoned().await);
    }
    let result = bank.pay("A").await;
    assert!(is_unknown(&result), "{result:?}");
    assert_eq!(bank.bodies.count(), 1);
}

// N26
#[tokio::test]
async fn of_two_takers_only_the_holder_asks() {
    let stays = Held::new();
    let bank = Bank::new([Lookup::Stays(stays.clone())]);
    bank.dies().await;
    let asking = bank.clone();
    let holder = tokio::spawn(async move { asking.pay("A").await });
    stays.entered().await;
    let refused = bank.pay("A").await;
    assert!(
        matches!(refused, Err(Error::InProgress { .. })),
        "{refused:?}"
    );
    stays.release();
    assert_eq!(holder.await.unwrap().unwrap(), 2);
    assert_eq!(bank.bodies.count(), 2);
}

// N27
#[tokio::test]
async fn a_takeover_whose_reply_was_lost_still_asks() {
    let bank = Bank::new([Lookup::Done(7)]);
    bank.dies().await;
    bank.rig.store.next(Verb::Claim, [Fault::lose_the_reply()]);
    assert_eq!(bank.pay("A").await.unwrap(), 7);
}

// N37
#[tokio::test]
async fn a_takeover_that_nobody_heard_of_leaves_the_doubt() {
    let bank = Bank::new([Lookup::Done(7)]);
    bank.dies().await;
    bank.rig
        .store
        .next(Verb::Claim, [Fault::swallow_the_reply(); 2]);
    let refused = bank.pay("A").await;
    assert!(matches!(refused, Err(Error::Store { .. })), "{refused:?}");
    bank.rig.clock.advance(LIMIT * 2);
    bank.rig.until_idle().await;
    assert!(bank.rig.is_abandoned().await);
    assert_eq!(bank.left(), 1);
    assert_eq!(bank.pay("A").await.unwrap(), 7);
    assert_eq!(bank.bodies.count(), 1);
}

#[tokio::test]
async fn at_rerun_it_is_asked_too() {
    let bank = Bank::new([Lookup::Done(7)]);
    let dying = bank.clone();
    bank.drop_in_body(tokio::spawn(async move { dying.pay_again("A").await }))
        .await;
    assert_eq!(bank.pay_again("A").await.unwrap(), 7);
    assert_eq!(bank.bodies.count(), 1);
}

#[tokio::test]
async fn it_is_asked_only_about_an_attempt_that_had_passed_its_checkpoint() {
    for (marks, lookups, expected) in [(false, vec![], 2), (true, vec![Lookup::Done(7)], 7)] {
        let bank = Bank::new(lookups);
        let dying = bank.clone();
        let call = tokio::spawn(async move { dying.pay_marked("A", marks).await });
        bank.drop_in_body(call).await;
        assert_eq!(bank.pay_marked("A", marks).await.unwrap(), expected);
        assert_eq!(bank.left(), 0);
    }
}

#[tokio::test]
async fn it_is_not_asked_after_a_failure() {
    let bank = Bank::new([]);
    let failed = bank
        .rig
        .run(Policy::new(), async || Err(Error::NotInstalled))
        .await;
    assert!(failed.is_err());
    bank.held.release();
    assert_eq!(bank.pay("A").await.unwrap(), 1);
}

/// With `recover` somebody else may take over: even at hold the lost one has to go.
#[tokio::test]
async fn a_body_that_loses_its_lease_is_dropped_where_somebody_may_recover() {
    let bank = Bank::new([Lookup::Done(7)]);
    bank.rig.store.always(Verb::Renew, Fault::hang());
    let lost = bank.pay("A").await;
    assert!(matches!(lost, Err(Error::LeaseLost { .. })), "{lost:?}");
    bank.rig.until_idle().await;
    assert_eq!(bank.pay("A").await.unwrap(), 7);
}

#[tokio::test]
async fn a_lookup_that_loses_its_lease_is_dropped_and_leaves_the_doubt() {
    let stays = Held::new();
    let bank = Bank::new([Lookup::Stays(stays), Lookup::Done(7)]);
    bank.dies().await;
    bank.rig.store.always(Verb::Renew, Fault::hang());
    let (lost, outcome) = observe(bank.pay("A")).await;
    assert!(matches!(lost, Err(Error::LeaseLost { .. })), "{lost:?}");
    assert_eq!(outcome, Outcome::Refused);
    bank.rig.until_idle().await;
    assert_eq!(bank.pay("A").await.unwrap(), 7);
    assert_eq!(bank.bodies.count(), 1);
}

#[tokio::test]
async fn the_form_for_programs_takes_no_promise_to_recover() {
    let rig = Rig::new();
    let refused = rig
        .count(Policy::new().with_recover(), &Bodies::default())
        .await;
    assert!(
        matches!(refused, Err(Error::InvalidPolicy { .. })),
        "{refused:?}"
    );
    assert_eq!(rig.store.calls(Verb::Claim), 0);
}

// E02
#[tokio::test]
async fn an_operator_says_what_nobody_could_look_up() {
    let key = crate::rig::key();
    for done in [true, false] {
        let bank = Bank::new([Lookup::Unknown]);
        assert_eq!(
            bank.rig.idem.resolve(&key, NotDone).await.unwrap(),
            Changes::Absent
        );
        bank.dies().await;
        assert!(is_unknown(&bank.pay("A").await));
        let word = if done {
            bank.rig.idem.resolve(&key, Done(&7)).await
        } else {
            bank.rig.idem.resolve(&key, NotDone).await
        };
        assert_eq!(word.unwrap(), Changes::Done);
        assert_eq!(bank.pay("A").await.unwrap(), if done { 7 } else { 2 });
    }
}

#[tokio::test]
async fn an_operators_result_is_bounded_as_a_bodys_is() {
    let bank = Bank {
        rig: Rig::with(|builder| builder.max_result_bytes(10)),
        ..Bank::new([Lookup::Unknown, Lookup::Unknown])
    };
    let key = crate::rig::key();
    bank.dies().await;
    assert!(is_unknown(&bank.pay("A").await));
    let word = bank.rig.idem.resolve(&key, Done(&"ten letters")).await;
    let Err(Error::ResultUnavailable { reason, .. }) = word else {
        panic!("{word:?}");
    };
    assert_eq!(reason, "it takes 13 bytes, the limit is 10");
    assert!(is_unknown(&bank.pay("A").await), "nothing was changed");
}

#[tokio::test]
async fn an_operator_does_not_speak_over_a_live_attempt() {
    let bank = Bank::new([]);
    let running = bank.clone();
    let call = tokio::spawn(async move { running.pay("A").await });
    bank.held.entered().await;
    let word = bank.rig.idem.resolve(&crate::rig::key(), Done(&7)).await;
    assert_eq!(word.unwrap(), Changes::Changed);
    bank.held.release();
    assert_eq!(call.await.unwrap().unwrap(), 1);
    assert_eq!(LEASE.as_secs(), 1, "the functions above say so");
}
