//! What is done to a mutant until something notices it.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use idem_core::conformance::{Course, Harness, differential, run_law};
use tokio::runtime::Runtime;

/// Who found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Killer {
    /// A random history differed from `step`.
    History,
    /// A random history had no answer, or no end.
    Silence,
    /// The law of this name fell.
    Law(&'static str),
    /// What only this kind of store has to stand.
    Scene(&'static str),
    /// The test of this name in another suite.
    Test(String),
}

impl fmt::Display for Killer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::History => f.write_str("a random history"),
            Self::Silence => f.write_str("a random history that came to no answer"),
            Self::Law(name) => write!(f, "the law {name}"),
            Self::Scene(name) => write!(f, "the scene {name}"),
            Self::Test(name) => write!(f, "the test {name}"),
        }
    }
}

macro_rules! names_of_laws {
    (() $($group:ident { $($law:ident)* })*) => {
        const LAWS: &[&str] = &[$($(concat!(stringify!($group), "::", stringify!($law))),*),*];
    };
}

idem_core::__idem_laws! { [names_of_laws] () }

/// How hard mutants are tried. Laws that killed before come first, over all mutants of a run.
#[derive(Debug)]
pub(crate) struct Attack {
    operations: usize,
    order: Mutex<Vec<&'static str>>,
    /// Nothing else is done.
    only: Option<Killer>,
}

/// Most of a law's time is waiting.
const LAWS_AT_ONCE: usize = 27;

impl Attack {
    pub(crate) fn new(operations: usize) -> Self {
        Self {
            operations,
            order: Mutex::new(LAWS.to_vec()),
            only: None,
        }
    }

    /// The same that has found a mutant, once more: a time-out, or a law that waits, can fall on a
    /// busy machine whatever the mutant does.
    pub(crate) fn again(&self, killer: &Killer) -> Self {
        Self {
            only: Some(killer.clone()),
            ..Self::new(self.operations)
        }
    }

    /// Runs a random history, as long as finds most.
    pub(crate) fn by_short_history<H: Harness>(&self, harness: &Arc<H>) -> Option<Killer> {
        self.by_history_of(self.operations / 10, harness)
    }

    /// Runs a random history.
    pub(crate) fn by_history<H: Harness>(&self, harness: &Arc<H>) -> Option<Killer> {
        self.by_history_of(self.operations, harness)
    }

    fn by_history_of<H: Harness>(&self, operations: usize, harness: &Arc<H>) -> Option<Killer> {
        let is_wanted = |only: &Killer| matches!(only, Killer::History | Killer::Silence);
        if !self.only.as_ref().is_none_or(is_wanted) {
            return None;
        }
        let said = fall(|| history(harness, operations))?;
        let differs = said.contains("differs from the specification");
        Some(if differs {
            Killer::History
        } else {
            Killer::Silence
        })
    }

    /// Runs the laws until one falls.
    pub(crate) fn by_laws<H: Harness>(&self, harness: &Arc<H>) -> Option<Killer> {
        let mut laws = self.order().clone();
        match self.only {
            Some(Killer::Law(law)) => laws.retain(|one| *one == law),
            Some(_) => return None,
            None => {}
        }
        let fallen = laws.chunks(LAWS_AT_ONCE).find_map(|some| {
            thread::scope(|scope| {
                let run = |law: &'static str| (law, scope.spawn(move || run_law(law, &**harness)));
                let running: Vec<_> = some.iter().copied().map(run).collect();
                // All of them, or the scope panics for those that were not asked.
                let ended = running.into_iter().map(|(law, run)| (law, run.join()));
                let ended: Vec<_> = ended.collect();
                let mut fallen = ended.iter().filter(|(_, end)| end.is_err());
                fallen.next().map(|(law, _)| *law)
            })
        })?;
        let mut order = self.order();
        order.retain(|law| *law != fallen);
        order.insert(0, fallen);
        Some(Killer::Law(fallen))
    }

    /// Runs a scene on a runtime of its own.
    pub(crate) fn by_scene(
        &self,
        name: &'static str,
        run: impl AsyncFnOnce() + Send,
    ) -> Option<Killer> {
        let killer = Killer::Scene(name);
        if self.only.as_ref().is_some_and(|only| *only != killer) {
            return None;
        }
        fall(|| in_time(run())).map(|_| killer)
    }

    fn order(&self) -> MutexGuard<'_, Vec<&'static str>> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn history<H: Harness>(harness: &Arc<H>, operations: usize) {
    let course = Course {
        seed: 20_261_129,
        operations,
        lanes: 16,
        pace: Duration::from_millis(20),
    };
    in_time(async { drop(differential(harness, course).await) });
}

/// Runs it on a runtime of its own. Whoever takes this long never ends.
fn in_time(run: impl Future<Output = ()>) {
    const ENDLESS: Duration = Duration::from_secs(100);
    let runtime = Runtime::new().unwrap();
    let ended = runtime.block_on(async { tokio::time::timeout(ENDLESS, run).await });
    runtime.shutdown_background();
    ended.expect("it does not end");
}

/// What it says if it panics.
fn fall(run: impl FnOnce() + Send) -> Option<String> {
    let end = thread::scope(|scope| scope.spawn(run).join());
    end.err().map(|said| match said.downcast::<String>() {
        Ok(said) => *said,
        Err(said) => said
            .downcast_ref::<&str>()
            .map_or_else(String::new, ToString::to_string),
    })
}
