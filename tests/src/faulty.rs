//! A store whose verbs fail when told to: what a network and a server do to a call, at will.
//!
//! A [`Fault`] says what becomes of one call: how long it is held up, how often it reaches the
//! store, and what the caller hears. Faults are set while the test runs, for all calls of a verb
//! ([`Faulty::always`]) or for its next ones ([`Faulty::next`]).

mod fault;

pub use fault::{Fault, Verb};

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use idem_core::record::{
    Claim, ClaimReply, Forget, Issue, IssueReply, Op, OperatorReply, Refuse, RefuseReply, Renew,
    RenewReply, Reply, Resolve, Settle, SettleReply, Slot, StoreTime,
};
use idem_core::store::{Answer, Answered, Finding, Page, Scan, Store, StoreKey, Watch};
use idem_core::{StoreError, StoreErrorKind};
use tokio::sync::watch;

use self::fault::{Gate, Heard};
use crate::mortal::trap;

/// A [`Store`] with [`Fault`]s. Clones share everything.
pub struct Faulty<S> {
    shared: Arc<Shared<S>>,
}

struct Shared<S> {
    store: S,
    plan: Mutex<Plan>,
    mishear: OnceLock<Mishears>,
    /// How many calls of each verb have come.
    calls: watch::Sender<HashMap<Verb, usize>>,
    is_open: watch::Sender<bool>,
}

#[derive(Default)]
struct Plan {
    next: HashMap<Verb, VecDeque<Fault>>,
    always: HashMap<Verb, Fault>,
    on_key: HashMap<(Verb, StoreKey), Fault>,
    seen: Vec<Op>,
    copies: Vec<(StoreKey, Op)>,
}

/// What a settle becomes on its way; where that is nothing, its sender hears that it was done.
type Mishears = fn(&Settle) -> Option<Settle>;

impl<S> Clone for Faulty<S> {
    fn clone(&self) -> Self {
        Self {
            shared: self.shared.clone(),
        }
    }
}

impl<S> fmt::Debug for Faulty<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faulty").finish_non_exhaustive()
    }
}

impl<S: Store> Faulty<S> {
    /// A store without faults, until some are set.
    #[must_use]
    pub fn new(store: S) -> Self {
        Self {
            shared: Arc::new(Shared {
                store,
                plan: Mutex::default(),
                mishear: OnceLock::new(),
                calls: watch::Sender::default(),
                is_open: watch::Sender::new(false),
            }),
        }
    }

    /// The store below.
    #[must_use]
    pub fn inner(&self) -> &S {
        &self.shared.store
    }

    /// Whether no other clone is left.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }

    /// From now on every call of `verb` has `fault`.
    pub fn always(&self, verb: Verb, fault: Fault) {
        self.plan().always.insert(verb, fault);
    }

    /// The next calls of `verb` have `faults`, one each, before what is [always](Self::always) so.
    pub fn next(&self, verb: Verb, faults: impl IntoIterator<Item = Fault>) {
        self.plan().next.entry(verb).or_default().extend(faults);
    }

    /// From now on every call of `verb` on `key` has `fault`, whatever else was said.
    pub fn on_key(&self, verb: Verb, key: &StoreKey, fault: Fault) {
        self.plan().on_key.insert((verb, key.clone()), fault);
    }

    /// From now on every call of every verb that the engine uses has `fault`.
    pub fn all(&self, fault: Fault) {
        for verb in [
            Verb::Claim,
            Verb::Renew,
            Verb::Settle,
            Verb::Peek,
            Verb::Now,
            Verb::Watch,
        ] {
            self.always(verb, fault);
        }
    }

    /// From now on every settle becomes what `mishear` makes of it, as if the engine had never said
    /// anything else. No fault that heals. Only the first word counts.
    pub fn mishear(&self, mishear: fn(&Settle) -> Option<Settle>) {
        let _ = self.shared.mishear.set(mishear);
    }

    /// Ends all faults, also those that were to come; copies stay on the wire.
    pub fn heal(&self) {
        let mut plan = self.plan();
        plan.next.clear();
        plan.always.clear();
        plan.on_key.clear();
    }

    /// Lets every [gated](Fault::gated) call through, also those to come.
    pub fn open(&self) {
        self.shared.is_open.send_replace(true);
    }

    /// How many calls of `verb` have come.
    #[must_use]
    pub fn calls(&self, verb: Verb) -> usize {
        count(&self.shared.calls.borrow(), verb)
    }

    /// Waits until `number` calls of `verb` have come.
    ///
    /// # Panics
    /// After ten seconds.
    pub async fn until_calls(&self, verb: Verb, number: usize) {
        let mut calls = self.shared.calls.subscribe();
        let come = calls.wait_for(|calls| count(calls, verb) >= number);
        let come = tokio::time::timeout(Duration::from_secs(10), come).await;
        assert!(come.is_ok(), "{number} calls of {verb:?} did not come");
    }

    /// The operations that were sent, in order, whether they reached the store or not.
    #[must_use]
    pub fn seen(&self) -> Vec<Op> {
        self.plan().seen.clone()
    }

    /// Delivers what is still on the wire, and says what the store answered.
    pub async fn deliver_copies(&self) -> Vec<Reply> {
        let copies = std::mem::take(&mut self.plan().copies);
        let mut replies = Vec::with_capacity(copies.len());
        for (key, op) in copies {
            replies.extend(deliver(self.inner(), &key, &op).await);
        }
        replies
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.shared
            .plan
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a call, and says what becomes of it.
    fn call(&self, verb: Verb, op: Option<(&StoreKey, Op)>) -> Fault {
        let mut plan = self.plan();
        let key = op.as_ref().map(|(key, _)| (verb, (*key).clone()));
        let of_key = key.and_then(|key| plan.on_key.get(&key).copied());
        let next = plan.next.get_mut(&verb).and_then(VecDeque::pop_front);
        let fault = of_key
            .or(next)
            .or_else(|| plan.always.get(&verb).copied())
            .unwrap_or(Fault::NONE);
        if let Some((key, op)) = op {
            plan.seen.push(op.clone());
            if fault.keeps_a_copy {
                plan.copies.push((key.clone(), op));
            }
        }
        drop(plan);
        self.shared.calls.send_modify(|calls| {
            *calls.entry(verb).or_default() += 1;
        });
        fault
    }

    async fn until_open(&self) {
        let mut is_open = self.shared.is_open.subscribe();
        // The sender lives in `self`.
        let _ = is_open.wait_for(|is_open| *is_open).await;
    }

    async fn suffer<R, F>(&self, fault: Fault, verb: impl Fn() -> F) -> Result<R, StoreError>
    where
        F: Future<Output = Result<R, StoreError>>,
    {
        if fault.delay > Duration::ZERO {
            tokio::time::sleep(fault.delay).await;
        }
        if fault.gate == Some(Gate::BeforeTheStore) {
            self.until_open().await;
        }
        if fault.yields {
            tokio::task::yield_now().await;
        }
        let mut answer = Err(unavailable(StoreErrorKind::Unavailable));
        for _ in 0..fault.deliveries {
            answer = verb().await;
        }
        if fault.gate == Some(Gate::BehindIt) {
            self.until_open().await;
        }
        if fault.yields {
            tokio::task::yield_now().await;
        }
        match fault.heard {
            Heard::TheAnswer => answer,
            Heard::AnError(kind) => Err(unavailable(kind)),
            Heard::ThatNothingWasSent => {
                Err(unavailable(StoreErrorKind::Unavailable).before_sending())
            }
            Heard::Nothing => std::future::pending().await,
            Heard::APanic => panic!("a panic that the test asked for"),
            Heard::Death => trap::die(),
        }
    }
}

fn count(calls: &HashMap<Verb, usize>, verb: Verb) -> usize {
    calls.get(&verb).copied().unwrap_or_default()
}

fn unavailable(kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, "a fault that the test asked for")
}

/// Delivers a copy; `None` if the store itself gave an error.
async fn deliver<S: Store>(store: &S, key: &StoreKey, op: &Op) -> Option<Reply> {
    let reply = match op {
        Op::Claim(op) => Reply::Claim(store.claim(key, op).await.ok()?.reply),
        Op::Renew(op) => Reply::Renew(store.renew(key, op).await.ok()?.reply),
        Op::Settle(op) => Reply::Settle(store.settle(key, op).await.ok()?.reply),
        Op::Issue(op) => Reply::Issue(store.issue(key, op).await.ok()?.reply),
        Op::Forget(op) => Reply::Forget(store.forget(key, op).await.ok()?.reply),
        Op::Resolve(op) => Reply::Resolve(store.resolve(key, op).await.ok()?.reply),
        Op::Refuse(op) => Reply::Refuse(store.refuse(key, op).await.ok()?.reply),
    };
    Some(reply)
}

macro_rules! verbs {
    ($($verb:ident, $name:ident($op:ty) -> $reply:ty;)*) => {
        $(async fn $verb(&self, key: &StoreKey, op: &$op) -> Answered<$reply> {
            let fault = self.call(Verb::$name, Some((key, Op::$name(op.clone()))));
            self.suffer(fault, || self.inner().$verb(key, op)).await
        })*
    };
}

impl<S: Store> Store for Faulty<S> {
    verbs! {
        claim, Claim(Claim) -> ClaimReply;
        renew, Renew(Renew) -> RenewReply;
        issue, Issue(Issue) -> IssueReply;
        refuse, Refuse(Refuse) -> RefuseReply;
        forget, Forget(Forget) -> OperatorReply;
        resolve, Resolve(Resolve) -> OperatorReply;
    }

    async fn settle(&self, key: &StoreKey, op: &Settle) -> Answered<SettleReply> {
        let fault = self.call(Verb::Settle, Some((key, Op::Settle(op.clone()))));
        let mishear = self.shared.mishear.get();
        let heard = mishear.map_or_else(|| Some(op.clone()), |mishear| mishear(op));
        let settle = async || {
            if let Some(op) = &heard {
                return self.inner().settle(key, op).await;
            }
            Ok(Answer {
                now: self.inner().now().await?,
                reply: SettleReply::Settled,
            })
        };
        self.suffer(fault, settle).await
    }

    async fn peek(&self, key: &StoreKey) -> Answered<Slot> {
        let fault = self.call(Verb::Peek, None);
        self.suffer(fault, || self.inner().peek(key)).await
    }

    async fn scan(&self, scan: &Scan) -> Answered<Page> {
        let fault = self.call(Verb::Scan, None);
        self.suffer(fault, || self.inner().scan(scan)).await
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        let fault = self.call(Verb::Now, None);
        self.suffer(fault, || self.inner().now()).await
    }

    async fn watch(&self, key: &StoreKey) -> Result<Watch, StoreError> {
        let fault = self.call(Verb::Watch, None);
        self.suffer(fault, || self.inner().watch(key)).await
    }

    async fn check(&self) -> Result<Vec<Finding>, StoreError> {
        let fault = self.call(Verb::Check, None);
        self.suffer(fault, || self.inner().check()).await
    }
}
