//! Many mutants against one kind of store.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use idem_tests::long::{self, is_long};

use crate::known::{Why, reason};
use crate::mutant::{Edit, Mutant};
use crate::stores::Trial;

/// More would wait for each other's processor time.
const AT_ONCE: usize = 3;

/// What was learnt of a mutant.
struct Verdict {
    mutant: Mutant,
    said: String,
    is_expected: bool,
}

/// Tries out all of `mutants`; fails if one survives that is not known to do no harm, or if one is
/// killed that is, or if there are none.
pub(crate) fn run(name: &str, mutants: Vec<Mutant>, try_out: impl Fn(&Edit) -> Trial + Sync) {
    assert!(!mutants.is_empty(), "{name}: no mutants");
    let begin = Instant::now();
    let waiting = Mutex::new(mutants.into_iter().enumerate());
    let done = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = waiting
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .next();
                    let Some((number, mutant)) = next else { break };
                    let begin = Instant::now();
                    let trial = try_out(&mutant.edit);
                    let verdict = judge(mutant, &trial);
                    let time = begin.elapsed();
                    println!("{name}: {} {} ({time:.1?})", verdict.mutant, verdict.said);
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    done.push((number, verdict));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(number, _)| *number);
    let verdicts: Vec<_> = done.into_iter().map(|(_, verdict)| verdict).collect();
    if is_long() && only().is_none() {
        write_list(name, &verdicts);
    }
    report(name, &verdicts, begin.elapsed());
    let mut unexpected = String::new();
    for verdict in verdicts.iter().filter(|verdict| !verdict.is_expected) {
        let Mutant { before, after, .. } = &verdict.mutant;
        let (mutant, said) = (&verdict.mutant, &verdict.said);
        write!(unexpected, "\n{mutant} {said}\n  - {before}\n  + {after}").unwrap();
    }
    assert!(unexpected.is_empty(), "{unexpected}");
}

/// What the names of those begin with that are wanted.
pub(crate) fn only() -> Option<String> {
    std::env::var("IDEM_MUTANTS").ok()
}

fn judge(mutant: Mutant, trial: &Trial) -> Verdict {
    let (said, is_expected) = match (&trial.killer, reason(&mutant)) {
        _ if trial.rewritten == 0 => ("NEVER SENT".to_owned(), false),
        (Some(killer), None) => (format!("killed by {killer}"), true),
        (Some(killer), Some((Why::Equivalent, _))) => {
            (format!("LISTED as equivalent, killed by {killer}"), false)
        }
        (Some(killer), Some((Why::Survivor, _))) => {
            (format!("LISTED as a survivor, killed by {killer}"), false)
        }
        (None, Some((Why::Equivalent, reason))) => (format!("equivalent: {reason}"), true),
        (None, Some((Why::Survivor, reason))) => (format!("survives: {reason}"), true),
        (None, None) => match &trial.once {
            Some(once) => (format!("SURVIVED, but for {once}, once"), false),
            None => ("SURVIVED".to_owned(), false),
        },
    };
    Verdict {
        mutant,
        said,
        is_expected,
    }
}

/// How many there were, and what became of them.
fn report(name: &str, verdicts: &[Verdict], time: Duration) {
    let count = |by: &str| {
        verdicts
            .iter()
            .filter(|one| one.said.starts_with(by))
            .count()
    };
    let unexpected = verdicts.iter().filter(|one| !one.is_expected);
    long::report(
        "mutants",
        format_args!(
            "{name}: {} mutants: {} killed by a random history, {} by a scene, {} by a law, {} by a test; \
             {} equivalent and {} that survive, as listed; {} unexpected; in {time:.0?}",
            verdicts.len(),
            count("killed by a random history"),
            count("killed by the scene"),
            count("killed by the law"),
            count("killed by the test"),
            count("equivalent"),
            count("survives"),
            unexpected.clone().count(),
        ),
    );
    for Verdict { mutant, said, .. } in unexpected {
        long::report("mutants", format_args!("{name}: {mutant} {said}"));
    }
}

/// The list that the page about proofs points to.
fn write_list(name: &str, verdicts: &[Verdict]) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/proof/mutants");
    let killed = verdicts
        .iter()
        .filter(|verdict| verdict.said.starts_with("killed"));
    let mut text = format!("{} mutants, {} killed\n\n", verdicts.len(), killed.count());
    for verdict in verdicts {
        writeln!(text, "{} {}", verdict.mutant, verdict.said).unwrap();
    }
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(format!("{name}.txt")), text).unwrap();
}

/// About so many of them, from everywhere, but for those that are known to do no harm.
pub(crate) fn sample(mutants: Vec<Mutant>, count: usize) -> Vec<Mutant> {
    let step = mutants.len().div_ceil(count).max(1);
    let mut sample: Vec<_> = mutants.into_iter().step_by(step).collect();
    sample.retain(|mutant| reason(mutant).is_none());
    sample
}
