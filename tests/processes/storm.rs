//! Many processes, many tasks, one key.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime};

use crate::payer::Payer;
use crate::scene::{LONG_LEASE, SOON, Scene};

const ROUNDS: usize = 200;
const PROCESSES: usize = 4;
pub(crate) const TASKS: usize = 125;

/// What came of many calls: outcomes by number, and other figures.
pub(crate) struct Tally(HashMap<String, String>);

impl Tally {
    pub(crate) fn read(line: &str) -> Self {
        let pairs = line.split(' ').filter_map(|pair| pair.split_once('='));
        Self(
            pairs
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        )
    }

    pub(crate) fn get(&self, name: &str) -> usize {
        self.0.get(name).map_or(0, |value| value.parse().unwrap())
    }

    pub(crate) fn receipt(&self) -> Option<&str> {
        self.0
            .get("receipt")
            .map(String::as_str)
            .filter(|receipt| !receipt.is_empty())
    }
}

/// One storm: every task of every process calls at the same moment.
pub(crate) fn storm(payers: &[Payer], function: &str, order: &str) -> Vec<Tally> {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    let begin = (now + Duration::from_millis(4)).as_micros();
    let told = format!("{function} {order} effect,sleep:2 {TASKS} {begin}");
    let calls: Vec<_> = payers
        .iter()
        .map(|payer| payer.tell("storm", &told))
        .collect();
    let heard = payers.iter().zip(calls);
    heard
        .map(|(payer, call)| Tally::read(&payer.line(call)))
        .collect()
}

pub(crate) fn sum(tallies: &[Tally], name: &str) -> usize {
    tallies.iter().map(|tally| tally.get(name)).sum()
}

/// One of `calls` ran the body; the others have its result, or were told that it runs.
pub(crate) fn assert_one_ran(tallies: &[Tally], function: &str, calls: usize) {
    assert_eq!(sum(tallies, "executed"), 1);
    let given = sum(tallies, "replayed") + sum(tallies, "waited");
    let refused = match function {
        "wait" => 0,
        _ => sum(tallies, "in_progress"),
    };
    assert_eq!(given + refused, calls - 1);
    let receipts: HashSet<_> = tallies.iter().filter_map(Tally::receipt).collect();
    assert_eq!(receipts.len(), 1, "one result for all");
}

// C01, C02
#[test]
fn of_500_tasks_in_4_processes_one_runs_the_body_and_the_others_get_a_clean_answer() {
    let scene = Scene::new();
    let payers: Vec<Payer> = (0..PROCESSES)
        .map(|_| Payer::start(&scene.server.url(), &scene.ledger, LONG_LEASE, SOON))
        .collect();
    for round in 0..ROUNDS {
        let function = ["hold", "wait"][round % 2];
        let order = format!("round-{round}");
        let tallies = storm(&payers, function, &order);
        assert_one_ran(&tallies, function, PROCESSES * TASKS);
        let runs = scene.ledger.count("run", function, &order);
        assert_eq!(runs, 1, "round {round}");
    }
    assert_eq!(scene.ledger.doubles("effect"), 0);
}
