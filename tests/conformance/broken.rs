//! Stores with one fault each, as they were seen in the field: the laws, and the random histories,
//! have to find each of them. A suite that finds nothing proves nothing.

use std::sync::Arc;
use std::time::Duration;

use idem_core::StoreError;
use idem_core::conformance::{self, Course, Harness, differential};
use idem_core::record::{
    Claim, ClaimReply, Forget, Issue, IssueReply, OperatorReply, Outcome, Refuse, RefuseReply,
    Renew, RenewReply, Resolve, Settle, SettleReply, Slot, StoreTime,
};
use idem_core::store::memory::{ManualClock, MemoryStore};
use idem_core::store::{Answer, Answered, Page, Scan, Store, StoreKey, Watch};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// Settles whatever is there, whoever has it (N01).
    SettlesForAnybody,
    /// Ends a lease at once, so that everybody may take over (N05).
    KeepsNoLease,
    /// Judges no packet late (N38, N39).
    KnowsNoLateness,
    /// Ends live attempts on an operator's plain word (N41).
    ForgetsByForce,
    /// Takes milliseconds for something else (E14).
    MistakesUnits,
    /// A renewal that writes nothing.
    RenewsNothing,
    /// A resent claim hears another reply than the first (N27).
    ForgetsTheDoubt,
    /// One of two code paths does not compare payloads (S11).
    ComparesNoPayload,
    /// Cuts a result at its first zero byte.
    CutsResults,
    /// Answers success without a result as in progress (E12).
    TakesNothingForRunning,
    /// Reads the operator's record again instead of comparing it (N40).
    TrustsOperators,
    /// Shows one page and says that this was all.
    ScansOnePage,
    /// Never wakes anybody.
    TellsNobody,
    /// Answers many renewals in some order.
    ShufflesRenewals,
}

const FAULTS: [Fault; 14] = [
    Fault::SettlesForAnybody,
    Fault::KeepsNoLease,
    Fault::KnowsNoLateness,
    Fault::ForgetsByForce,
    Fault::MistakesUnits,
    Fault::RenewsNothing,
    Fault::ForgetsTheDoubt,
    Fault::ComparesNoPayload,
    Fault::CutsResults,
    Fault::TakesNothingForRunning,
    Fault::TrustsOperators,
    Fault::ScansOnePage,
    Fault::TellsNobody,
    Fault::ShufflesRenewals,
];

/// What the random histories do not ask for.
const NOT_IN_HISTORIES: [Fault; 3] = [
    Fault::ScansOnePage,
    Fault::TellsNobody,
    Fault::ShufflesRenewals,
];

const FOREVER: StoreTime = StoreTime::from_micros(u64::MAX / 2);

struct Broken {
    inner: MemoryStore<ManualClock>,
    fault: Fault,
}

impl Broken {
    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }
}

impl Store for Broken {
    async fn claim(&self, key: &StoreKey, op: &Claim) -> Answered<ClaimReply> {
        let mut op = op.clone();
        if self.has(Fault::KeepsNoLease) {
            op.terms.lease = Duration::ZERO;
        }
        if self.has(Fault::KnowsNoLateness) {
            op.not_after = FOREVER;
        }
        if self.has(Fault::MistakesUnits) {
            op.terms.expire *= 1000;
        }
        let there = self.inner.peek(key).await?.reply;
        if let (true, Slot::Record(record)) = (self.has(Fault::ComparesNoPayload), &there) {
            op.fingerprint = record.fingerprint;
        }
        let mut answer = self.inner.claim(key, &op).await?;
        match &mut answer.reply {
            ClaimReply::Claimed(grant) if self.has(Fault::ForgetsTheDoubt) => {
                let is_resend = matches!(there, Slot::Record(record) if record.owner == op.owner);
                grant.doubt &= !is_resend;
            }
            ClaimReply::Completed { result: None } if self.has(Fault::TakesNothingForRunning) => {
                answer.reply = ClaimReply::InProgress {
                    since: answer.now,
                    lease_left: Duration::ZERO,
                };
            }
            _ => {}
        }
        Ok(answer)
    }

    async fn renew(&self, key: &StoreKey, op: &Renew) -> Answered<RenewReply> {
        if self.has(Fault::RenewsNothing) {
            let now = self.inner.now().await?;
            let reply = RenewReply::Renewed { rebuilt: false };
            return Ok(Answer { now, reply });
        }
        self.inner.renew(key, op).await
    }

    async fn settle(&self, key: &StoreKey, op: &Settle) -> Answered<SettleReply> {
        let mut op = op.clone();
        if self.has(Fault::SettlesForAnybody)
            && let Slot::Record(record) = self.inner.peek(key).await?.reply
        {
            op.owner = record.owner;
        }
        if let (true, Outcome::Success(Some(result))) =
            (self.has(Fault::CutsResults), &mut op.outcome)
        {
            let end = result.iter().position(|byte| *byte == 0);
            result.truncate(end.unwrap_or(result.len()));
        }
        self.inner.settle(key, &op).await
    }

    async fn issue(&self, key: &StoreKey, op: &Issue) -> Answered<IssueReply> {
        self.inner.issue(key, op).await
    }

    async fn refuse(&self, key: &StoreKey, op: &Refuse) -> Answered<RefuseReply> {
        self.inner.refuse(key, op).await
    }

    async fn forget(&self, key: &StoreKey, op: &Forget) -> Answered<OperatorReply> {
        let force = op.force || self.has(Fault::ForgetsByForce);
        self.inner.forget(key, &Forget { force, ..*op }).await
    }

    async fn resolve(&self, key: &StoreKey, op: &Resolve) -> Answered<OperatorReply> {
        let mut op = op.clone();
        if self.has(Fault::TrustsOperators)
            && let Slot::Record(record) = self.inner.peek(key).await?.reply
        {
            op.fence = record.fence;
        }
        self.inner.resolve(key, &op).await
    }

    async fn peek(&self, key: &StoreKey) -> Answered<Slot> {
        self.inner.peek(key).await
    }

    async fn scan(&self, scan: &Scan) -> Answered<Page> {
        let mut answer = self.inner.scan(scan).await?;
        if self.has(Fault::ScansOnePage) {
            answer.reply.next = None;
        }
        Ok(answer)
    }

    async fn now(&self) -> Result<StoreTime, StoreError> {
        self.inner.now().await
    }

    async fn renew_all(&self, batch: &[(StoreKey, Renew)]) -> Vec<Answered<RenewReply>> {
        let mut answers = self.inner.renew_all(batch).await;
        if self.has(Fault::ShufflesRenewals) {
            answers.reverse();
        }
        answers
    }

    async fn watch(&self, key: &StoreKey) -> Result<Watch, StoreError> {
        if self.has(Fault::TellsNobody) {
            return Ok(Watch::never());
        }
        self.inner.watch(key).await
    }
}

struct WithFault {
    clock: ManualClock,
    fault: Fault,
}

impl WithFault {
    fn new(fault: Fault) -> Self {
        let clock = ManualClock::new();
        Self { clock, fault }
    }
}

impl Harness for WithFault {
    type Store = Broken;

    async fn fresh_store(&self) -> Broken {
        let inner = MemoryStore::with_clock(self.clock.clone());
        let fault = self.fault;
        Broken { inner, fault }
    }

    async fn pass_time(&self, time: Duration) {
        self.clock.advance(time);
    }

    fn pushes(&self) -> bool {
        true
    }
}

// The clock of the runtime is paused, so that a wait for a push that never comes takes no time.
#[tokio::test(start_paused = true)]
async fn the_laws_find_every_fault() {
    for fault in FAULTS {
        let laws = tokio::spawn(async move { conformance::run(&WithFault::new(fault)).await });
        let found = laws.await.is_err_and(|error| error.is_panic());
        assert!(found, "no law finds {fault:?}");
    }
}

#[tokio::test]
async fn random_histories_find_every_fault_of_a_verb() {
    for fault in FAULTS {
        if NOT_IN_HISTORIES.contains(&fault) {
            continue;
        }
        let history = tokio::spawn(async move {
            let course = Course {
                operations: 20_000,
                ..Course::of(20_000)
            };
            differential(&Arc::new(WithFault::new(fault)), course).await
        });
        let found = history.await.is_err_and(|error| error.is_panic());
        assert!(found, "no history finds {fault:?}");
    }
}
