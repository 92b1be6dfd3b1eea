//! One key, and a body on it that says how far it has come.

use std::future::Future;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_lite::FutureExt;
use idem_core::record::{Claim, ClaimReply, Terms};
use idem_core::store::{Store, StoreKey};
use idem_core::{Attempt, Error, Fingerprint, Key, OnError, Policy, Results};
use idem_tests::attempt::{TERMS, claim};
use idem_tests::body::{Bodies, until};
use idem_tests::faulty::Faulty;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

use crate::ground::{Ground, fresh_number};

/// How far a body has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reached {
    Nothing,
    Body,
    /// The mark is set, or may be.
    Checkpoint,
    Effect,
    End,
}

/// How it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    Well,
    /// With its word that nothing happened.
    Failing,
    /// The same, and nothing is kept.
    Releasing,
    /// With an error that is kept, and given to every other caller. It had no effect either.
    ForGood,
    /// With an error that says nothing about its effect.
    InDoubt,
    Panicking,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Failure {
    /// The body's own.
    Declined,
    /// No error: the body's panic, which came through.
    Panicked,
    /// Of the guard: its code.
    Guard(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Guard(error.code().to_owned())
    }
}

pub(crate) type Said = Result<u32, Failure>;

/// What a body panics with.
struct OfTheBody;

impl Ends {
    /// What the caller of the body is given.
    pub(crate) fn said(self) -> Said {
        match self {
            Self::Well => Ok(1),
            Self::Failing | Self::Releasing | Self::ForGood | Self::InDoubt => {
                Err(Failure::Declined)
            }
            Self::Panicking => Err(Failure::Panicked),
        }
    }

    fn has_an_effect(self) -> bool {
        matches!(self, Self::Well | Self::InDoubt | Self::Panicking)
    }
}

/// Whether the guard said this.
pub(crate) fn is(said: &Said, code: &str) -> bool {
    matches!(said, Err(Failure::Guard(guard)) if guard == code)
}

/// Clones share everything.
#[derive(Clone)]
pub(crate) struct Scene<G> {
    ground: G,
    pub(crate) number: u64,
    pub(crate) key: Key,
    pub(crate) policy: Policy,
    pub(crate) ends: Ends,
    /// How long things may take to be gone when the call is over.
    pub(crate) patience: Duration,
    /// How often a body has begun, and had its effect.
    pub(crate) bodies: Bodies,
    pub(crate) effects: Bodies,
    reached: Arc<Mutex<Reached>>,
    /// Calls in tasks of their own.
    beside: Arc<Mutex<Vec<JoinHandle<Said>>>>,
    is_over: Arc<AtomicBool>,
}

impl<G: Ground> Scene<G> {
    pub(crate) async fn new(policy: Policy, ends: Ends) -> Self {
        Self::on(G::new().await, policy, ends)
    }

    fn on(ground: G, policy: Policy, ends: Ends) -> Self {
        let number = fresh_number();
        Self {
            ground,
            number,
            key: Key::new("swept", number).unwrap(),
            policy,
            ends,
            patience: Duration::from_secs(10),
            bodies: Bodies::default(),
            effects: Bodies::default(),
            reached: Arc::new(Mutex::new(Reached::Nothing)),
            beside: Arc::default(),
            is_over: Arc::default(),
        }
    }

    /// The usual body at hold.
    pub(crate) async fn at_hold() -> Self {
        Self::new(Policy::new(), Ends::Well).await
    }

    /// The same, with another body.
    pub(crate) fn ending(&self, ends: Ends) -> Self {
        Self {
            ends,
            ..self.clone()
        }
    }

    /// The same on another key, with counts of its own.
    pub(crate) fn with_another_key(&self) -> Self {
        Self {
            beside: self.beside.clone(),
            is_over: self.is_over.clone(),
            ..Self::on(self.ground.clone(), self.policy, self.ends)
        }
    }

    pub(crate) fn ground(&self) -> &G {
        &self.ground
    }

    pub(crate) fn store(&self) -> &Faulty<G::Store> {
        self.ground.store()
    }

    /// Guarded, the body.
    pub(crate) async fn call(&self) -> Said {
        self.call_with(self.policy, None).await
    }

    pub(crate) async fn call_with(&self, policy: Policy, payload: Option<Fingerprint>) -> Said {
        let results = self.results();
        let (idem, key) = (self.ground.idem(), self.key.clone());
        let call = idem.run_with(key, policy, results, payload, || self.body());
        if self.ends != Ends::Panicking {
            return call.await;
        }
        let unwound = AssertUnwindSafe(call).catch_unwind().await;
        unwound.unwrap_or_else(|payload| {
            let own = payload.downcast::<OfTheBody>();
            own.map_or_else(|other| resume_unwind(other), |_| Err(Failure::Panicked))
        })
    }

    pub(crate) fn results(&self) -> Results<u32, Failure> {
        let results = Results::stored().replay_errors();
        match self.ends {
            Ends::ForGood => results.classify(|error| match error {
                Failure::Declined => OnError::Replay,
                Failure::Panicked | Failure::Guard(_) => OnError::Fail,
            }),
            Ends::Releasing => results.on_error(OnError::Release),
            Ends::InDoubt => results.on_error(OnError::Abandon),
            Ends::Well | Ends::Failing | Ends::Panicking => results.on_error(OnError::Fail),
        }
    }

    pub(crate) async fn body(&self) -> Said {
        self.bodies.add();
        self.reach(Reached::Body);
        tokio::task::yield_now().await;
        self.reach(Reached::Checkpoint);
        if self.marks() {
            let attempt = Attempt::current().ok_or(Failure::Declined)?;
            attempt.checkpoint().await?;
        }
        self.reach(Reached::Effect);
        if self.ends.has_an_effect() {
            self.effects.add();
        }
        tokio::task::yield_now().await;
        self.reach(Reached::End);
        if self.ends == Ends::Panicking {
            // Without the message that a test would print.
            resume_unwind(Box::new(OfTheBody));
        }
        self.ends.said()
    }

    fn marks(&self) -> bool {
        self.policy == self.policy.own_checkpoint()
    }

    pub(crate) fn reruns(&self) -> bool {
        self.policy == self.policy.rerun_abandoned()
    }

    /// Whether a success leaves no result.
    pub(crate) fn forgets(&self) -> bool {
        self.policy == self.policy.forget()
    }

    pub(crate) fn reached(&self) -> Reached {
        *self.reached.lock().unwrap()
    }

    pub(crate) fn reach(&self, place: Reached) {
        *self.reached.lock().unwrap() = place;
    }

    /// Makes a call in a task of its own, which ends before the sweep looks at what is left.
    pub(crate) fn beside(&self, call: impl Future<Output = Said> + Send + 'static) {
        self.beside.lock().unwrap().push(tokio::spawn(call));
    }

    /// Whether the call that is swept was dropped, or has ended.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::SeqCst)
    }

    /// Calls beside need not wait for that any more.
    pub(crate) fn lets_go(&self) {
        self.is_over.store(true, Ordering::SeqCst);
    }

    /// The store is well, and calls beside and the background have come to their end. What the
    /// calls beside were given, in their order.
    pub(crate) async fn comes_to_rest(&self) -> Vec<Said> {
        self.store().heal();
        self.lets_go();
        let beside = std::mem::take(&mut *self.beside.lock().unwrap());
        let mut said = Vec::new();
        for call in beside {
            said.push(call.await.unwrap());
        }
        self.ground.until_idle().await;
        said
    }

    /// Somebody takes the key, and dies: in his body, which may have begun its effects.
    pub(crate) async fn dies(&self, in_doubt: bool) {
        let store = self.store().inner();
        let now = store.now().await.unwrap();
        let terms = Terms {
            lease: Duration::from_millis(1),
            ..TERMS
        };
        let claim = Claim {
            checkpoint: in_doubt,
            ..claim(7, now, terms)
        };
        let key = StoreKey::new(self.ground.idem().namespace(), &self.key).unwrap();
        let claimed = store.claim(&key, &claim).await.unwrap().reply;
        assert!(matches!(claimed, ClaimReply::Claimed(_)), "{claimed:?}");
        self.ground.let_time_pass();
        until("the lease is over", async || !self.is_live().await).await;
    }

    /// Whether somebody has the key who was not given up.
    pub(crate) async fn is_live(&self) -> bool {
        let record = self.ground.idem().peek(&self.key).await.unwrap();
        let running = record.and_then(|record| record.running);
        running.is_some_and(|running| !running.is_abandoned)
    }

    /// Whether somebody waits for whoever has it.
    pub(crate) async fn has_waiters(&self) -> bool {
        let record = self.ground.idem().peek(&self.key).await.unwrap();
        let running = record.and_then(|record| record.running);
        running.is_some_and(|running| running.waiters)
    }

    /// What the next caller hears of a call that was dropped as far as it had
    /// [reached](Self::reached): what its level promises, and at hold never of a second effect.
    pub(crate) async fn next_hears_what_is_promised(&self) {
        assert!(!self.is_live().await, "the key is stuck");
        let (reached, before) = (self.reached(), self.bodies.count());
        let said = self.call().await;
        let ran = self.bodies.count() > before;
        let is_unknown = is(&said, "outcome_unknown") && !ran;
        let is_as_promised = match reached {
            Reached::Nothing => ran,
            Reached::End => match self.ends {
                Ends::Well if self.forgets() => ran,
                Ends::Well | Ends::ForGood => !ran && said == self.ends.said(),
                Ends::Failing | Ends::Releasing => ran,
                Ends::InDoubt | Ends::Panicking if self.reruns() => ran,
                Ends::InDoubt | Ends::Panicking => is_unknown,
            },
            _ if self.reruns() => ran,
            Reached::Body => self.marks() == ran && self.marks() != is_unknown,
            // The mark was under way: it was set, or it was not.
            Reached::Checkpoint => ran != is_unknown,
            Reached::Effect => is_unknown,
        };
        assert!(is_as_promised, "{reached:?}: {said:?}, ran: {ran}");
        // What is forgotten may be done again.
        if !(self.forgets() && reached == Reached::End) {
            self.has_no_second_effect();
        }
    }

    pub(crate) fn has_no_second_effect(&self) {
        let effects = self.effects.count();
        assert!(self.reruns() || effects <= 1, "{effects} effects");
    }
}
