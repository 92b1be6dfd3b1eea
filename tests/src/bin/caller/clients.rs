//! Clients: each makes one call after another, on keys that the others call too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use fastrand::Rng;
use idem_tests::history::{Answer, Journal, What};
use tokio::task::JoinSet;

use crate::body::{Call, Failed, Plan};
use crate::service::Service;
use crate::unconfirmed::is_confirmed;

/// How far back a key is still called: for a few leases, so that abandoned ones are taken over
/// while the faults go on.
const COOL: u64 = 100;
/// In how much time a key has to be answered when the faults are over.
const AT_LAST: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub(crate) struct Clients {
    pub(crate) service: Service,
    pub(crate) journal: Arc<Journal>,
    pub(crate) seed: u64,
    pub(crate) count: usize,
    /// The longest rest between two calls.
    pub(crate) rest: Duration,
    pub(crate) keys: Keys,
}

/// Which keys are called.
#[derive(Clone, Copy)]
pub(crate) struct Keys {
    /// How many are called most.
    pub(crate) hot: u64,
    /// How many operations it takes until the next one is new.
    pub(crate) operations: u64,
}

impl Clients {
    /// Calls until `stop`, and what is left behind is settled.
    pub(crate) async fn call(&self, stop: &Arc<AtomicBool>) -> Result<()> {
        let mut dice = Rng::with_seed(self.seed);
        let mut clients = JoinSet::new();
        for _ in 0..self.count {
            let (this, stop, dice) = (self.clone(), Arc::clone(stop), dice.fork());
            clients.spawn(async move { this.calls(&stop, dice).await });
        }
        for client in clients.join_all().await {
            client?;
        }
        self.service.drain().await
    }

    async fn calls(&self, stop: &AtomicBool, mut dice: Rng) -> Result<()> {
        while !stop.load(Ordering::Relaxed) {
            let (number, before) = self.journal.count()?;
            let key = self.keys.draw(&mut dice, before);
            let plan = self.service.plan(&mut dice);
            self.one(key, number, plan).await?;
            tokio::time::sleep(self.rest.mul_f64(dice.f64())).await;
        }
        Ok(())
    }

    /// Asks each key until it has an answer, but not for ever.
    pub(crate) async fn sweep(&self, keys: Vec<u64>) -> Result<()> {
        let keys = Arc::new(std::sync::Mutex::new(keys));
        let mut clients = JoinSet::new();
        for _ in 0..self.count {
            let (this, keys) = (self.clone(), Arc::clone(&keys));
            clients.spawn(async move {
                while let Some(key) = keys.lock().ok().and_then(|mut keys| keys.pop()) {
                    this.insist(key).await?;
                }
                anyhow::Ok(())
            });
        }
        for client in clients.join_all().await {
            client?;
        }
        self.service.drain().await
    }

    async fn insist(&self, key: u64) -> Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < AT_LAST {
            let (number, _) = self.journal.count()?;
            let answer = self.one(key, number, Plan::SIMPLE).await?;
            let is_held = self.service.may_hold() && answer == held();
            if is_held || matches!(answer, Answer::Ok { .. }) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Makes a call, and writes down what came of it.
    async fn one(&self, key: u64, number: u64, plan: Plan) -> Result<Answer> {
        let journal = Arc::clone(&self.journal);
        let call = Call {
            key,
            number,
            plan,
            journal,
        };
        call.note(What::Invoked);
        let answer = self.answer(call).await;
        let returned = What::Returned(answer.clone());
        self.journal.note(key, number, returned)?;
        Ok(answer)
    }

    async fn answer(&self, call: Call) -> Answer {
        let (service, patience) = (self.service.clone(), call.plan.patience);
        let mut task = tokio::spawn(is_confirmed(async move { service.call(&call).await }));
        let ended = if let Ok(ended) = tokio::time::timeout(patience, &mut task).await {
            ended
        } else {
            task.abort();
            task.await
        };
        match ended {
            Ok((Ok(value), confirmed)) => Answer::Ok { value, confirmed },
            Ok((Err(Failed::Declined | Failed::Broken), _)) => Answer::Failed,
            Ok((Err(Failed::Guard(error)), _)) => Answer::Refused(error.code().to_owned()),
            Ok((Err(Failed::Database), _)) => Answer::Refused("database".to_owned()),
            Err(ended) if ended.is_panic() => Answer::Panicked,
            Err(_) => Answer::Dropped,
        }
    }
}

fn held() -> Answer {
    Answer::Refused("outcome_unknown".to_owned())
}

impl Keys {
    /// A key near the newest one, or one that was new a while ago.
    fn draw(self, dice: &mut Rng, before: u64) -> u64 {
        let newest = before / self.operations;
        if dice.u8(..4) == 0 {
            newest.saturating_sub(dice.u64(..COOL))
        } else {
            newest + dice.u64(..self.hot)
        }
    }
}
