//! The same attribute over a cluster, and over a master that Sentinels replace.

mod cluster;
mod sentinel;

use crate::payer::{Answer, Payer};
use crate::scene::Scene;
use crate::storm::{TASKS, assert_one_ran, storm};

/// How an attempt that was killed is treated: the function, what its body did before, what a
/// recovery says, and what the next caller is told.
const DEATHS: [(&str, &str, &str, &str); 6] = [
    ("hold", "effect", "-", "outcome_unknown"),
    ("hold:marked", "-", "-", "executed"),
    ("hold:recover", "effect", "done", "recovered"),
    ("hold:marked:recover", "checkpoint", "not_done", "executed"),
    ("rerun", "-", "-", "executed"),
    ("rerun:marked", "checkpoint", "-", "executed"),
];

impl Payer {
    fn call_for(&self, order: &str, function: &str, plan: &str) -> Answer {
        self.answer(self.begin_for(order, function, plan, "unknown"))
    }
}

/// Kills, duplicates, storms and waiters, for orders whose names begin with `name`.
fn assert_attribute_holds<S>(scene: &Scene<S>, name: &str) {
    inherits(scene, &format!("{name}-dead"));
    let payers = [(); 4].map(|()| scene.patient_payer());
    for number in 0..12 {
        let order = format!("{name}-{number}");
        let function = ["hold", "wait", "rerun"][number % 3];
        let tallies = storm(&payers, function, &order);
        assert_one_ran(&tallies, function, payers.len() * TASKS);
        assert_eq!(scene.ledger.count("run", function, &order), 1);
        let again = payers[number % 4].call_for(&order, function, "effect");
        assert_eq!(again.said(), "replayed");
    }
}

/// All at once: kill -9 in the body, and the next caller after the lease.
fn inherits<S>(scene: &Scene<S>, order: &str) {
    let owners = DEATHS.map(|(function, plan, ..)| {
        let owner = scene.payer();
        let plan = format!("{plan},say:here,park:never");
        owner.begin_for(order, function, &plan, "-");
        owner.at("here");
        owner
    });
    for owner in owners {
        owner.kill();
    }
    let heir = scene.payer();
    for (function, before, recovery, said) in DEATHS {
        let done = before.contains("effect");
        let effect = if done { "-" } else { "checkpoint,effect" };
        let answer = heir.insist_for(order, function, effect, recovery);
        assert_eq!(answer.said(), said, "{function}");
        assert_eq!(
            scene.ledger.count("effect", function, order),
            1,
            "{function}"
        );
    }
}
