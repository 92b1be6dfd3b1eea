//! A campaign: workers under faults, until there were enough of both; then every key is asked, and
//! what all of them saw is judged.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use fastrand::Rng;
use idem_tests::history::{
    self, Broken, LEASE, Law, Level, Span, Terms, judge, keys, now, operations,
};
use tempfile::TempDir;

use crate::crew::{Crew, Orders, sweep};
use crate::fault::{self, Fault, OF_WORKERS};
use crate::ground::{Ground, Left};
use crate::size::Size;
use crate::tally::{Tally, overtaken};

/// For how long workers and stores are left alone before the first fault.
const WARM_UP: Duration = Duration::from_millis(200);

/// What is called, how it is judged, and how much of it there is.
pub(crate) struct Campaign {
    pub(crate) what: &'static str,
    pub(crate) level: Level,
    pub(crate) size: Size,
    pub(crate) seed: u64,
    /// It also goes on until a body has ended after a later one had begun.
    pub(crate) overtakes: bool,
}

/// What came of it.
pub(crate) struct Outcome {
    title: String,
    operations: u64,
    pub(crate) tally: Tally,
    pub(crate) faults: BTreeMap<Fault, usize>,
    pub(crate) violations: BTreeMap<Law, Vec<String>>,
    pub(crate) losses: BTreeMap<Law, Vec<String>>,
    /// Keys that everything that is promised was judged at.
    pub(crate) whole: usize,
    /// What the store had when all callers had gone.
    pub(crate) abandoned: Left,
    /// What it has when every key was asked, which writes anew what nobody had ended.
    pub(crate) left: Left,
    /// Nobody told it to do anything any more when all calls had ended.
    pub(crate) is_quiet: bool,
    took: Duration,
}

/// What lanes of faults share.
struct Course {
    applied: Mutex<Vec<Applied>>,
    is_over: AtomicBool,
    pause: Range<u64>,
}

/// A fault, and when it was.
struct Applied {
    fault: Fault,
    time: Span,
    took_place: bool,
}

impl Campaign {
    /// `rows` gives what a database has of each key, in transaction mode.
    pub(crate) fn run<G: Ground>(
        &self,
        ground: &G,
        rows: impl FnOnce() -> BTreeMap<u64, Vec<u64>>,
    ) -> Result<Outcome> {
        let begin = Instant::now();
        let folder = tempfile::Builder::new().prefix("idem-history-").tempdir()?;
        println!("{} on {}: IDEM_SEED={}", self.what, G::NAME, self.seed);
        let course = Course {
            applied: Mutex::default(),
            is_over: AtomicBool::new(false),
            pause: self.size.pause.clone(),
        };
        let mut dice = Rng::with_seed(self.seed);
        let orders = self.orders(ground.url(), &folder, self.size.clients);
        let crew = Crew::start(self.size.workers, orders, &mut dice)?;
        thread::sleep(WARM_UP);
        self.break_things(ground, &crew, &folder, &course, &mut dice)?;
        crew.rest()?;
        let is_quiet = is_quiet(ground)?;
        crew.leave()?;
        let (counted, abandoned) = (operations(folder.path())?, ground.left()?);
        sweep(&self.orders(ground.direct_url(), &folder, 16))?;
        let mut outcome = Outcome {
            title: self.title(G::NAME),
            operations: counted,
            tally: Tally::default(),
            faults: BTreeMap::new(),
            violations: BTreeMap::new(),
            losses: BTreeMap::new(),
            whole: 0,
            abandoned,
            left: ground.left()?,
            is_quiet,
            took: Duration::ZERO,
        };
        let applied = course.applied.into_inner().unwrap();
        for Applied { fault, .. } in applied.iter().filter(|applied| applied.took_place) {
            *outcome.faults.entry(*fault).or_insert(0) += 1;
        }
        self.judge(&folder, &rows(), &applied, &mut outcome)?;
        outcome.took = begin.elapsed();
        Ok(outcome)
    }

    fn title(&self, ground: &str) -> String {
        let Self {
            what, size, seed, ..
        } = self;
        let clients = size.workers * size.clients;
        format!("{what} on {ground}, {clients} clients, seed {seed}")
    }

    fn orders<'a>(&'a self, url: String, folder: &'a TempDir, clients: usize) -> Orders<'a> {
        Orders {
            what: self.what,
            url,
            folder: folder.path(),
            clients,
            size: &self.size,
        }
    }

    /// Two lanes, so that a worker may be stopped while its store is away.
    fn break_things<G: Ground>(
        &self,
        ground: &G,
        crew: &Crew<'_>,
        folder: &TempDir,
        course: &Course,
        dice: &mut Rng,
    ) -> Result<()> {
        let (stores, workers) = (dice.fork(), dice.fork());
        let faults = ground.faults();
        thread::scope(|scope| {
            let lanes = [
                scope.spawn(|| {
                    course.lane(&faults, stores, |fault, dice| {
                        let newest = operations(folder.path())? / self.size.per_key;
                        ground.suffer(fault, &format!("idem:history::{newest}"), dice)
                    })
                }),
                scope.spawn(|| {
                    course.lane(&OF_WORKERS, workers, |fault, dice| {
                        crew.suffer(fault, dice)?;
                        Ok(true)
                    })
                }),
            ];
            let all: Vec<Fault> = faults.iter().copied().chain(OF_WORKERS).collect();
            let waited = self.wait_for_enough(&all, folder, course, || {
                lanes.iter().any(thread::ScopedJoinHandle::is_finished)
            });
            course.is_over.store(true, Ordering::Relaxed);
            for lane in lanes {
                lane.join().unwrap()?;
            }
            waited
        })
    }

    /// Waits for as many operations and faults as there are to be, for each of `faults` and for
    /// whatever else there has to be, but not for ever, nor when a lane `has_failed`.
    fn wait_for_enough(
        &self,
        faults: &[Fault],
        folder: &TempDir,
        course: &Course,
        has_failed: impl Fn() -> bool,
    ) -> Result<()> {
        let (begin, too_long) = (Instant::now(), self.size.too_long());
        while !has_failed() {
            let operations = operations(folder.path())?;
            let (count, missing) = course.had(faults);
            let are_enough = operations >= self.size.operations
                && count >= self.size.faults
                && missing.is_empty();
            if are_enough && (!self.overtakes || is_overtaken(folder)?) {
                break;
            }
            ensure!(
                begin.elapsed() < too_long,
                "after {too_long:?} there were {operations} operations and {count} faults, none of \
                 them {missing:?}, or nobody was overtaken"
            );
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn judge(
        &self,
        folder: &TempDir,
        rows: &BTreeMap<u64, Vec<u64>>,
        applied: &[Applied],
        outcome: &mut Outcome,
    ) -> Result<()> {
        let faults: Vec<Span> = applied.iter().map(|applied| applied.time).collect();
        let losses = applied.iter().filter(|applied| applied.fault.loses());
        let losses: Vec<Span> = losses.map(|applied| applied.time).collect();
        let terms = Terms {
            level: self.level,
            lease: LEASE,
        };
        let with_history = keys(folder.path())?;
        let all: BTreeSet<u64> = with_history
            .into_iter()
            .chain(rows.keys().copied())
            .collect();
        for key in all {
            let events = history::read(folder.path(), key)?;
            let rows = rows.get(&key).map_or(&[][..], Vec::as_slice);
            let verdict = judge(terms, &events, rows, &losses);
            if !verdict.violations.is_empty() {
                outcome.show(key, &events, &verdict.violations);
            }
            add(&mut outcome.violations, key, verdict.violations);
            add(&mut outcome.losses, key, verdict.losses);
            outcome.whole += usize::from(verdict.is_whole);
            outcome.tally.add(&events, rows.len(), &faults);
        }
        Ok(())
    }
}

/// Whether somebody was, on any key.
fn is_overtaken(folder: &TempDir) -> Result<bool> {
    for key in keys(folder.path())? {
        if overtaken(&history::read(folder.path(), key)?) > 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

/// For a lease, in which every attempt that somebody thinks alive would be renewed.
fn is_quiet<G: Ground>(ground: &G) -> Result<bool> {
    let before = ground.pulse()?;
    thread::sleep(LEASE);
    Ok(ground.pulse()? == before)
}

fn add(to: &mut BTreeMap<Law, Vec<String>>, key: u64, broken: Vec<Broken>) {
    for Broken { law, why } in broken {
        to.entry(law).or_default().push(format!("key {key}: {why}"));
    }
}

impl Course {
    /// How many faults there were, and which of `all` were not among them.
    fn had(&self, all: &[Fault]) -> (usize, Vec<Fault>) {
        let applied = self.applied.lock().unwrap();
        let taken_place = applied.iter().filter(|applied| applied.took_place);
        let had: Vec<Fault> = taken_place.map(|applied| applied.fault).collect();
        let missing = all.iter().filter(|fault| !had.contains(fault));
        (had.len(), missing.copied().collect())
    }

    /// Every fault once, in any order, again and again, until it is over.
    fn lane(
        &self,
        faults: &[Fault],
        mut dice: Rng,
        suffer: impl Fn(Fault, &mut Rng) -> Result<bool>,
    ) -> Result<()> {
        let mut round = Vec::new();
        while !self.is_over.load(Ordering::Relaxed) {
            if round.is_empty() {
                round = faults.to_vec();
                dice.shuffle(&mut round);
            }
            let Some(fault) = round.pop() else { break };
            let from = now();
            let took_place = suffer(fault, &mut dice)?;
            let until = now();
            self.applied.lock().unwrap().push(Applied {
                fault,
                time: Span { from, until },
                took_place,
            });
            if !took_place {
                round.insert(0, fault);
            }
            fault::pass(&mut dice, self.pause.clone());
        }
        Ok(())
    }
}

impl Outcome {
    /// The histories of the first keys that broke their promises.
    fn show(&self, key: u64, events: &[history::Event], broken: &[Broken]) {
        if self.violations.values().map(Vec::len).sum::<usize>() > 3 {
            return;
        }
        println!("{}, key {key}: {broken:?}", self.title);
        for event in events {
            println!("    {}", event.line());
        }
    }

    pub(crate) fn line(&self) -> String {
        let Self {
            title,
            operations,
            tally,
            whole,
            left,
            took,
            ..
        } = self;
        let Left { records, endless } = left;
        let all: usize = self.faults.values().sum();
        let faults: Vec<String> = self
            .faults
            .iter()
            .map(|(fault, count)| format!("{fault} {count}"))
            .collect();
        format!(
            "{title}: {operations} operations on {tally}, {all} faults ({}), {} violations{}, {} \
             losses{} ({whole} keys judged before the first one), {records} records left, {endless} of \
             them without an end, {} s",
            faults.join(", "),
            count(&self.violations),
            by_law(&self.violations),
            count(&self.losses),
            by_law(&self.losses),
            took.as_secs()
        )
    }
}

fn count(broken: &BTreeMap<Law, Vec<String>>) -> usize {
    broken.values().map(Vec::len).sum()
}

fn by_law(broken: &BTreeMap<Law, Vec<String>>) -> String {
    if broken.is_empty() {
        return String::new();
    }
    let laws: Vec<String> = broken
        .iter()
        .map(|(law, keys)| format!("{law:?} {}", keys.len()))
        .collect();
    format!(" ({})", laws.join(", "))
}
