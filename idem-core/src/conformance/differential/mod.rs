//! Long random histories, on a store and on the specification at once.
//!
//! A store has to answer each operation as [`step`] does at the time that the store itself names,
//! and to show the same record afterwards. Operations are drawn so that few owners meet on few
//! keys, with leases and retentions that run out in between, old packets that come again, and
//! operators who read before they write.

mod draw;
mod model;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use fastrand::Rng;
use tokio::task::JoinSet;

use self::draw::Hand;
use self::model::Model;
use super::Harness;
use super::trial::differential_key;
use crate::error::StoreError;
use crate::record::{Op, Reply, StoreTime};
use crate::store::{Answer, Store, StoreKey};

/// How far a random history goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Course {
    /// What the history is drawn from: with the same seed the same is drawn again, as far as the
    /// store's clock allows.
    pub seed: u64,
    /// How many operations there are, over all lanes.
    pub operations: usize,
    /// How many histories, each on keys of its own, run at once.
    pub lanes: usize,
    /// The length of a short lease; other times are small multiples of it.
    pub pace: Duration,
}

impl Course {
    /// One lane of `operations`, or as many as `IDEM_OPERATIONS` says, from a random seed, or that
    /// in `IDEM_SEED`; with short leases of 20 ms.
    #[must_use]
    pub fn of(operations: usize) -> Self {
        fn from_env<T: std::str::FromStr>(name: &str) -> Option<T> {
            std::env::var(name).ok()?.parse().ok()
        }
        Self {
            seed: from_env("IDEM_SEED").unwrap_or_else(|| fastrand::u64(..)),
            operations: from_env("IDEM_OPERATIONS").unwrap_or(operations),
            lanes: 1,
            pace: Duration::from_millis(20),
        }
    }
}

/// What a random history met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// How many operations were answered as the specification says.
    pub operations: usize,
    /// How many of them came within 2 ms of a record's deadline and saw it on the other side of
    /// it: a server expires by its own, coarser clock.
    pub near_deadline: usize,
    /// How often each reply was given, by its name.
    pub replies: BTreeMap<String, usize>,
}

impl Report {
    fn add(&mut self, other: Self) {
        self.operations += other.operations;
        self.near_deadline += other.near_deadline;
        for (reply, count) in other.replies {
            *self.replies.entry(reply).or_default() += count;
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} operations, {} of them across a deadline",
            self.operations, self.near_deadline
        )?;
        for (reply, count) in &self.replies {
            write!(f, "\n{count:>9} {reply}")?;
        }
        Ok(())
    }
}

/// Runs a random history on a store and on [`step`](crate::record::step()), and compares each
/// reply and each record. Prints its seed.
///
/// # Panics
/// If the store answers or shows anything else than the specification, with the seed and the last
/// operations on that key; or if it gives no answer.
pub async fn differential<H: Harness>(harness: &Arc<H>, course: Course) -> Report {
    println!(
        "random history: IDEM_SEED={} IDEM_OPERATIONS={}",
        course.seed, course.operations
    );
    let lanes = course.lanes.max(1);
    let store = Arc::new(harness.fresh_store().await);
    let mut running = JoinSet::new();
    for lane in 0..lanes {
        let share = course.operations / lanes + usize::from(lane < course.operations % lanes);
        let lane = Lane::new(harness.clone(), store.clone(), &course, lane);
        running.spawn(lane.run(share));
    }
    let mut report = Report::default();
    while let Some(lane) = running.join_next().await {
        match lane {
            Ok(part) => report.add(part),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => panic!("a lane ended early: {error}"),
            },
        }
    }
    report
}

/// One history, on a few keys.
struct Lane<H: Harness> {
    harness: Arc<H>,
    store: Arc<H::Store>,
    seed: u64,
    pace: Duration,
    random: Rng,
    keys: Vec<Place>,
    now: StoreTime,
    report: Report,
}

/// One key: what may be there, and who acts on it.
struct Place {
    key: StoreKey,
    model: Model,
    hand: Hand,
    history: VecDeque<String>,
}

impl<H: Harness> Lane<H> {
    const KEYS: usize = 4;
    const REMEMBERED: usize = 40;

    fn new(harness: Arc<H>, store: Arc<H::Store>, course: &Course, lane: usize) -> Self {
        // Keys are new in each run: the server may still hold those of the run before.
        let run = fastrand::u64(..);
        let place = |number| Place {
            key: differential_key(run, number),
            model: Model::default(),
            hand: Hand::default(),
            history: VecDeque::new(),
        };
        Self {
            harness,
            store,
            seed: course.seed,
            pace: course.pace,
            random: Rng::with_seed(course.seed.wrapping_add(lane as u64)),
            keys: (0..Self::KEYS).map(place).collect(),
            now: StoreTime::default(),
            report: Report::default(),
        }
    }

    async fn run(mut self, operations: usize) -> Report {
        self.now = match self.store.now().await {
            Ok(now) => now,
            Err(error) => self.no_answer(0, &error),
        };
        for _ in 0..operations {
            if self.random.u32(0..100) < 12 {
                self.pass_time().await;
            }
            let place = self.random.usize(0..self.keys.len());
            if self.random.u32(0..1000) < 3 {
                self.corrupt(place).await;
            }
            self.operate(place).await;
        }
        self.report
    }

    async fn pass_time(&mut self) {
        let longest = self.pace * if self.random.bool() { 1 } else { 4 };
        let longest = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
        let time = Duration::from_micros(self.random.u64(1..=longest.max(1)));
        self.harness.pass_time(time).await;
        self.now = self.now.after(time);
    }

    async fn corrupt(&mut self, place: usize) {
        let key = self.keys[place].key.clone();
        if self.harness.corrupt(&self.store, &key).await {
            self.keys[place].model = Model::damaged();
            self.note(place, "corrupt".to_owned());
        }
    }

    async fn operate(&mut self, index: usize) {
        let place = &mut self.keys[index];
        let best_guess = place.model.best_guess();
        let op = place
            .hand
            .draw(&mut self.random, best_guess, self.now, self.pace);
        let begin = Instant::now();
        let Answer { now, reply } = match send(&*self.store, &place.key, &op).await {
            Ok(answer) => answer,
            Err(error) => self.no_answer(index, &error),
        };
        let took = begin.elapsed();
        self.now = now;
        self.note(
            index,
            format!("{} {op:?}\n      -> {reply:?}", now.as_micros()),
        );

        let place = &mut self.keys[index];
        let expected = place.model.expected(&op, now);
        let Ok(across) = place.model.apply(&op, now, took, &reply) else {
            self.differs(index, &format!("to hear {expected:?}"))
        };
        self.report.near_deadline += usize::from(across);
        self.keys[index].hand.learn(&op, &reply, now);
        *self.report.replies.entry(name_of(&reply)).or_default() += 1;
        self.look(index).await;
        self.report.operations += 1;
    }

    /// Compares what the store shows with what the specification holds.
    async fn look(&mut self, index: usize) {
        let place = &mut self.keys[index];
        let begin = Instant::now();
        let Answer { now, reply } = match self.store.peek(&place.key).await {
            Ok(answer) => answer,
            Err(error) => self.no_answer(index, &error),
        };
        let took = begin.elapsed();
        self.now = now;
        self.note(index, format!("{} peek -> {reply:?}", now.as_micros()));
        let place = &mut self.keys[index];
        let Ok(across) = place.model.observe(&reply, now, took) else {
            let expected = format!("to see {:?}", place.model.best_guess());
            self.differs(index, &expected)
        };
        self.report.near_deadline += usize::from(across);
    }

    fn note(&mut self, place: usize, line: String) {
        let history = &mut self.keys[place].history;
        if history.len() == Self::REMEMBERED {
            history.pop_front();
        }
        history.push_back(line);
    }

    fn differs(&self, place: usize, expected: &str) -> ! {
        let Place { key, history, .. } = &self.keys[place];
        let mut lines = String::new();
        for line in history {
            // Writing to a string can not fail.
            let _ = write!(lines, "\n  {line}");
        }
        panic!(
            "the store differs from the specification after {} operations at {} with IDEM_SEED={}\nexpected {expected}\nhistory:{lines}",
            self.report.operations,
            key.as_str(),
            self.seed
        )
    }

    fn no_answer(&self, place: usize, error: &StoreError) -> ! {
        panic!(
            "the store gave no answer at {} with IDEM_SEED={}: {error:?}",
            self.keys[place].key.as_str(),
            self.seed
        )
    }
}

async fn send<S: Store>(store: &S, key: &StoreKey, op: &Op) -> Result<Answer<Reply>, StoreError> {
    fn wrap<R>(answer: Answer<R>, kind: fn(R) -> Reply) -> Answer<Reply> {
        Answer {
            now: answer.now,
            reply: kind(answer.reply),
        }
    }
    Ok(match op {
        Op::Claim(op) => wrap(store.claim(key, op).await?, Reply::Claim),
        Op::Renew(op) => wrap(store.renew(key, op).await?, Reply::Renew),
        Op::Settle(op) => wrap(store.settle(key, op).await?, Reply::Settle),
        Op::Issue(op) => wrap(store.issue(key, op).await?, Reply::Issue),
        Op::Forget(op) => wrap(store.forget(key, op).await?, Reply::Forget),
        Op::Resolve(op) => wrap(store.resolve(key, op).await?, Reply::Resolve),
        Op::Refuse(op) => wrap(store.refuse(key, op).await?, Reply::Refuse),
    })
}

/// `Claim Completed`, `Settle Superseded`: the verb and what it was answered.
fn name_of(reply: &Reply) -> String {
    let text = format!("{reply:?}");
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    let verb = words.next().unwrap_or_default();
    let answer = words.next().unwrap_or_default();
    format!("{verb} {answer}")
}
