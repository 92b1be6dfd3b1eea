//! Taking a key in the caller's transaction.

use std::time::{Duration, Instant};

use sqlx::Transaction;

use super::Database;
use super::run::{Held, Run};
use super::savepoint;
use crate::attempt::Attempt;
use crate::driver;
use crate::engine::Idempotency;
use crate::engine::Target;
use crate::engine::admit::Request;
use crate::engine::core::BusyToken;
use crate::engine::decide::{Decision, Refusal, decide};
use crate::error::{Error, StoreError, StoreErrorKind};
use crate::fingerprint::Fingerprint;
use crate::key::Key;
use crate::policy::{Policy, Settings};
use crate::random;
use crate::record::{self, Claim, ClaimReply, Owner, Slot};
use crate::results::Results;
use crate::store::StoreKey;
use crate::store::sql::row::{Address, Row};
use crate::store::sql::within::{Entered, Hold, depth};

/// Asks whether the body may run; then the savepoint is for it. `Err` is the caller's answer if
/// not, and the savepoint is taken back.
pub(crate) async fn admit<'t, T, E, D: Database>(
    idem: &Idempotency,
    key: Result<Key, Error>,
    policy: Policy,
    results: Results<T, E>,
    fingerprint: Option<Fingerprint>,
    connection: &'t mut D::Connection,
) -> Result<(Run, Transaction<'t, D>), Result<T, E>> {
    let refused = |error| Err(results.refused(error));
    let request = idem
        .request(key.map(Target::from), policy, fingerprint)
        .map_err(refused)?;
    let begun = savepoint::open::<D>(connection).await;
    let mut savepoint = begun.map_err(|error| refused(D::fault(error).into()))?;
    let depth = depth::<D>(&savepoint);
    let Some(request) = request else {
        return Ok((Run::without_key(depth), savepoint));
    };
    let mut asking = Asking::new(&request, results.keeps_errors());
    match asking.ask::<D>(&mut savepoint).await {
        Ok(Answer::Run(held)) => Ok((Run::of(*held, depth), savepoint)),
        Ok(Answer::Stored(Decision::Replay(result))) => {
            let decoded = results.decode(&result);
            Err(request.replay(results, decoded, asking.waited()))
        }
        Ok(Answer::Stored(Decision::ReplayError(error))) => {
            let decoded = results.decode_error(&error);
            Err(request.replay_error(results, decoded, asking.waited()))
        }
        Ok(Answer::Stored(Decision::Refuse(refusal))) => Err(refused(request.refuse(refusal))),
        // A record that changed while its key was held.
        Ok(Answer::Stored(_)) => Err(refused(changed().into())),
        Err(error) => {
            D::guard(&mut savepoint).await;
            Err(refused(error))
        }
    }
}

/// What the record, and the lock on its key, answer.
enum Answer {
    Run(Box<Held>),
    Stored(Decision),
}

/// A request that asks for its key.
struct Asking<'a> {
    request: &'a Request<'a>,
    key: StoreKey,
    at: Address,
    /// Until when somebody else's transaction is waited for.
    until: Option<Instant>,
    patience: Duration,
    /// Whether a body may be taken back alone, and its error kept.
    may_go_back: bool,
}

impl<'a> Asking<'a> {
    fn new(request: &'a Request<'a>, may_go_back: bool) -> Self {
        let key = StoreKey::within(&request.core.namespace, &request.key);
        Self {
            at: Address::of(&key),
            key,
            until: request.settings.wait.map(driver::moment_in),
            patience: Duration::ZERO,
            may_go_back,
            request,
        }
    }

    fn waited(&self) -> bool {
        !self.patience.is_zero()
    }

    /// First without patience: where the answer is known already, nobody needs to wait.
    async fn ask<D: Database>(&mut self, connection: &mut D::Connection) -> Result<Answer, Error> {
        loop {
            let entered = D::enter(connection, &self.at, self.patience, self.may_go_back).await;
            let is_spoilt = entered.is_err();
            match entered {
                Ok(entered) => {
                    if let Some(answer) = self.judge::<D>(connection, entered).await? {
                        return Ok(answer);
                    }
                }
                // It may have cost the whole transaction: `innodb_rollback_on_timeout`.
                Err(error) if D::is_locked(&error) && !D::guard(connection).await => {}
                Err(error) => return Err(D::fault(error).into()),
            }
            if !self.is_patient() {
                return Ok(Answer::Stored(Decision::Refuse(in_a_transaction())));
            }
            if is_spoilt {
                // PostgreSQL answers nothing else before that.
                D::back_to(connection, depth::<D>(connection)).await;
            }
        }
    }

    /// Whether to ask once more, for as long as is left.
    fn is_patient(&mut self) -> bool {
        if self.waited() {
            return false;
        }
        let left = self
            .until
            .map(|until| until.saturating_duration_since(Instant::now()));
        self.patience = left.unwrap_or_default();
        self.waited()
    }

    /// `None` if the record would let the body run, or has no owner any more, and somebody else's
    /// transaction has the key: that one may be about to say how it ends.
    async fn judge<D: Database>(
        &self,
        connection: &mut D::Connection,
        Entered { found, hold, began }: Entered,
    ) -> Result<Option<Answer>, Error> {
        if hold != Hold::Elsewhere && self.is_within_itself() {
            return Err(within_itself().into());
        }
        let (heard, now) = (Instant::now(), found.now);
        let settings = self.settings();
        let claim = Claim {
            owner: Owner::from_bytes(random::bits()?),
            terms: settings.terms,
            fingerprint: self.request.fingerprint,
            policy: settings.on_abandoned,
            checkpoint: true,
            token: None,
            recover: false,
            wait: false,
            not_after: now.after(settings.terms.limit),
        };
        let (slot, reply) = record::claim(found.slot(), &claim, now);
        let is_for_its_holder =
            matches!(reply, ClaimReply::Claimed(_) | ClaimReply::OutcomeUnknown);
        if hold == Hold::Elsewhere && is_for_its_holder {
            return Ok(None);
        }
        let (grant, record) = match (decide(reply, now, &settings), &slot) {
            (Decision::Run(grant), Slot::Record(record)) => (grant, record),
            (decision, _) => return Ok(Some(Answer::Stored(decision))),
        };
        let at_first = found.row;
        let mut before = at_first.clone();
        if hold == Hold::FirmAfterAWrite {
            let row = Row::of(record);
            let written = D::write(connection, &self.at, began, before.as_ref(), &row, now).await;
            if !written.map_err(D::fault)? {
                return Err(changed().into());
            }
            before = Some(row);
        }
        let attempt = Attempt::in_transaction(
            self.request.core.clone(),
            (self.request.key.clone(), self.key.clone()),
            claim.owner,
            settings,
            self.request.fingerprint,
            (grant, now, heard),
        );
        Ok(Some(Answer::Run(Box::new(Held {
            attempt,
            at: self.at.clone(),
            began,
            before,
            at_first,
            slot,
            now,
            heard,
            _busy: BusyToken::new(self.request.core),
        }))))
    }

    /// Whether the body that calls has the key already, so that the record is not written yet.
    fn is_within_itself(&self) -> bool {
        Attempt::current().is_some_and(|around| {
            around.is_in_transaction() && around.inner().store_key == self.key
        })
    }

    /// Nobody waits for an attempt in lease mode here: the transaction would be open all the while.
    fn settings(&self) -> Settings {
        Settings {
            wait: None,
            ..self.request.settings
        }
    }
}

/// All that is known of somebody else's transaction.
fn in_a_transaction() -> Refusal {
    Refusal::InProgress {
        running_for: Duration::ZERO,
        retry_after: Duration::from_secs(1),
    }
}

/// Not a conflict, and no attempt that ends some time: the same body does it again.
fn within_itself() -> StoreError {
    StoreError::new(
        StoreErrorKind::Protocol,
        "sql: a body calls itself, with its own key in its own transaction",
    )
    .before_sending()
}

fn changed() -> StoreError {
    StoreError::new(
        StoreErrorKind::Conflict,
        "sql: the record changed while its key was held; begin a new transaction",
    )
    .before_sending()
}
