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
    /// The law of this name fell.
    Law(&'static str),
    /// What only this kind of store has to stand.
    Scene(&'static str),
}

impl fmt::Display for Killer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::History => f.write_str("a random history"),
            Self::Law(name) => write!(f, "the law {name}"),
            Self::Scene(name) => write!(f, "the scene {name}"),
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
}

/// Most of a law's time is waiting.
const LAWS_AT_ONCE: usize = 27;

impl Attack {
    pub(crate) fn new(operations: usize) -> Self {
        Self {
            operations,
            order: Mutex::new(LAWS.to_vec()),
        }
    }

    /// Runs a random history, as long as finds most.
    pub(crate) fn by_short_history<H: Harness>(&self, harness: &Arc<H>) -> Option<Killer> {
        falls(|| history(harness, self.operations / 10)).then_some(Killer::History)
    }

    /// Runs a random history.
    pub(crate) fn by_history<H: Harness>(&self, harness: &Arc<H>) -> Option<Killer> {
        falls(|| history(harness, self.operations)).then_some(Killer::History)
    }

    /// Runs the laws until one falls.
    pub(crate) fn by_laws<H: Harness>(&self, harness: &Arc<H>) -> Option<Killer> {
        let laws = self.order().clone();
        let fallen = laws.chunks(LAWS_AT_ONCE).find_map(|some| {
            thread::scope(|scope| {
                let run = |law: &'static str| (law, scope.spawn(move || run_law(law, &**harness)));
                let running: Vec<_> = some.iter().copied().map(run).collect();
                let mut ended = running.into_iter().map(|(law, run)| (law, run.join()));
                ended.find_map(|(law, end)| end.is_err().then_some(law))
            })
        })?;
        let mut order = self.order();
        order.retain(|law| *law != fallen);
        order.insert(0, fallen);
        Some(Killer::Law(fallen))
    }

    /// Runs a scene on a runtime of its own.
    #[expect(clippy::unused_self, reason = "it reads like its siblings")]
    pub(crate) fn by_scene(
        &self,
        name: &'static str,
        run: impl AsyncFnOnce() + Send,
    ) -> Option<Killer> {
        falls(|| in_time(run())).then_some(Killer::Scene(name))
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

/// Whether it panics.
fn falls(run: impl FnOnce() + Send) -> bool {
    thread::scope(|scope| scope.spawn(run).join()).is_err()
}
