//! The real verbs.

use std::time::{Duration, Instant};

use idem_model::{Action, Heard, Plan, Seen};
use stateright::HasDiscoveries;

use crate::explore;
use crate::long::{is_long, report};

const BASES: [(&str, Plan); 4] = [
    ("at hold", Plan::HOLD),
    ("at hold, bodies mark", Plan::MARKS),
    ("at hold with recover", Plan::RECOVER),
    ("at rerun", Plan::RERUN),
];

pub(crate) const RERUN_MARKS: Plan = Plan {
    own_checkpoint: true,
    ..Plan::RERUN
};

const RECOVER_MARKS: Plan = Plan {
    own_checkpoint: true,
    ..Plan::RECOVER
};

/// Every history of `plan`.
fn stands(name: &str, plan: Plan) -> usize {
    stands_for(None, name, plan)
}

/// Every history of `plan`, or every beginning of one.
fn stands_for(steps: Option<usize>, name: &str, plan: Plan) -> usize {
    let begun = Instant::now();
    // With two threads the order is not that of steps alone.
    let threads = if steps.is_some() { 1 } else { 2 };
    let (fallen, worlds) = explore(plan, threads, steps, HasDiscoveries::AnyFailures);
    let time = begun.elapsed();
    report(
        "model",
        format_args!("{name}: {worlds} worlds in {time:.1?}"),
    );
    assert_eq!(fallen, [], "{name}");
    worlds
}

/// Two attempts, one send of each operation, nothing copied, as long as a lease.
const fn small(base: Plan) -> Plan {
    Plan {
        attempts: 2,
        sends: 1,
        copies: false,
        release: false,
        horizon: 2,
        ..base
    }
}

/// Leases lapse at any time, and what is late after that goes on.
const fn longer(plan: Plan) -> Plan {
    Plan { horizon: 3, ..plan }
}

/// Bodies also say by themselves that nothing happened.
const fn releasing(base: Plan) -> Plan {
    Plan {
        release: true,
        ..copied(base)
    }
}

pub(crate) const fn copied(base: Plan) -> Plan {
    Plan {
        copies: true,
        ..small(base)
    }
}

const fn resent(base: Plan) -> Plan {
    Plan {
        sends: 2,
        ..small(base)
    }
}

const fn three(base: Plan) -> Plan {
    Plan {
        attempts: 3,
        ..small(base)
    }
}

/// An attempt has begun and is silent, another one has taken over from it; what they and a third one
/// come to, all of it.
pub(crate) const fn taken_over(base: Plan) -> Plan {
    Plan {
        beginning: &[
            Action::Begins(0),
            Action::Arrives(0, 0, Heard::Now),
            Action::Polls(0),
            Action::Tick,
            Action::Tick,
            Action::Tick,
            Action::Begins(1),
            Action::Arrives(1, 0, Heard::Now),
        ],
        horizon: 6,
        ..three(base)
    }
}

/// An attempt has passed its checkpoint and is silent, another one has taken over in doubt; what they
/// and a refusal come to.
pub(crate) const fn doubted(base: Plan) -> Plan {
    Plan {
        beginning: &[
            Action::Begins(0),
            Action::Arrives(0, 0, Heard::Now),
            Action::Polls(0),
            Action::Marks(0),
            Action::Arrives(0, 1, Heard::Now),
            Action::Tick,
            Action::Tick,
            Action::Tick,
            Action::Begins(1),
            Action::Arrives(1, 0, Heard::Now),
        ],
        horizon: 6,
        ..refused(base)
    }
}

/// As far as an ordinary check follows what comes after a takeover.
pub(crate) const STEPS: usize = 12;

const fn operated(base: Plan) -> Plan {
    Plan {
        words: 1,
        ..small(base)
    }
}

const fn refused(base: Plan) -> Plan {
    Plan {
        refusals: 1,
        ..small(base)
    }
}

const fn lost(base: Plan) -> Plan {
    Plan {
        losses: 1,
        renewals: 1,
        ..small(base)
    }
}

const fn slow(base: Plan) -> Plan {
    Plan {
        slow_replies: 1,
        ..small(base)
    }
}

/// Records that expire within the run, also twice.
pub(crate) const fn short_lived(plan: Plan) -> Plan {
    Plan {
        expire: Duration::from_secs(2),
        doubt: Duration::from_secs(2),
        horizon: 5,
        ..plan
    }
}

#[test]
fn with_copies_in_any_order_every_law_stands() {
    for (name, base) in BASES {
        let plan = copied(base);
        // Bodies that mark come to ten times as many worlds.
        let plan = if base.own_checkpoint {
            plan
        } else {
            longer(plan)
        };
        stands(&format!("{name}, copies"), plan);
    }
}

#[test]
fn with_releases_every_law_stands() {
    stands("at hold, releases", longer(releasing(Plan::HOLD)));
    stands("at rerun, releases", releasing(Plan::RERUN));
}

#[test]
fn with_own_checkpoints_and_recover_or_rerun_every_law_stands() {
    stands("at hold with recover, bodies mark", small(RECOVER_MARKS));
    stands("at rerun, bodies mark", small(RERUN_MARKS));
}

#[test]
fn with_resends_every_law_stands() {
    stands("at hold, resends", resent(Plan::HOLD));
}

#[test]
fn with_a_second_takeover_every_law_stands() {
    static SEEN: [Seen; 4] = [const { Seen::new() }; 4];
    let bases = [
        ("at hold, bodies mark", Plan::MARKS),
        ("at hold with recover", Plan::RECOVER),
        ("at rerun", Plan::RERUN),
        ("at rerun, bodies mark", RERUN_MARKS),
    ];
    for ((name, base), seen) in bases.into_iter().zip(&SEEN) {
        let name = format!("{name}, taken over");
        let begun = taken_over(Plan { seen, ..base });
        // Bodies that mark can do more, so fewer steps are as many worlds.
        let steps = if base.own_checkpoint {
            STEPS - 3
        } else {
            STEPS
        };
        stands_for(Some(steps), &name, begun);
        let twice = seen.taken_over_twice();
        report(
            "model",
            format_args!("{name}: {twice} steps with two takeovers"),
        );
        assert!(twice > 0, "nobody took over twice");
    }
}

#[test]
fn with_an_operator_and_refusals_every_law_stands() {
    static SEEN: Seen = Seen::new();
    let base = Plan {
        seen: &SEEN,
        ..Plan::HOLD
    };
    stands("at hold, an operator", longer(operated(base)));
    stands("at hold, a refusal", longer(refused(base)));
    stands("at rerun, a refusal", longer(refused(Plan::RERUN)));
    stands_for(
        Some(STEPS - 3),
        "at rerun, bodies mark, a refusal after a takeover",
        doubted(RERUN_MARKS),
    );
    let missing = SEEN.missing();
    for answer in [
        "Forgotten",
        "ForgetChanged",
        "Resolved",
        "ResolveChanged",
        "Refused",
        "RefuseInProgress",
        "RefuseUnknown",
        "RefuseCompleted",
        "LateRefusal",
        "ClaimRefused",
    ] {
        assert!(!missing.contains(&answer), "{answer} never came");
    }
}

#[test]
fn when_the_store_loses_all_what_it_still_promises_stands() {
    static SEEN: Seen = Seen::new();
    let base = Plan {
        seen: &SEEN,
        ..Plan::HOLD
    };
    stands("at hold, a loss", lost(base));
    let missing = SEEN.missing();
    for answer in ["Rebuilt", "Renewed", "Lost", "Adopted"] {
        assert!(!missing.contains(&answer), "{answer} never came");
    }
}

#[test]
fn when_replies_are_slow_every_law_stands() {
    stands("at hold, a slow reply", longer(slow(Plan::HOLD)));
    stands("at hold, bodies mark, a slow reply", slow(Plan::MARKS));
}

#[test]
fn when_records_expire_every_law_stands() {
    stands("at rerun, short-lived", short_lived(small(Plan::RERUN)));
}

/// The same for all set-ups, each to its end.
#[test]
fn in_a_long_run_every_law_stands() {
    static SEEN: Seen = Seen::new();
    if !is_long() {
        return;
    }
    let mut worlds = 0;
    let marking = [
        ("at hold with recover, bodies mark", RECOVER_MARKS),
        ("at rerun, bodies mark", RERUN_MARKS),
    ];
    for (name, base) in BASES.into_iter().chain(marking) {
        let base = Plan {
            seen: &SEEN,
            ..base
        };
        for (what, plan) in [
            ("copies", longer(copied(base))),
            ("releases", longer(releasing(base))),
            ("resends", resent(base)),
            ("an operator", longer(operated(base))),
            ("a refusal", longer(refused(base))),
            ("a loss", lost(base)),
            ("a slow reply", longer(slow(base))),
            ("short-lived", short_lived(small(base))),
            ("three attempts", three(base)),
        ] {
            worlds += stands(&format!("{name}, {what}"), plan);
        }
    }
    report("model", format_args!("{worlds} worlds in all"));
    assert!(worlds >= 50_000_000, "only {worlds} worlds");
    assert_eq!(SEEN.missing(), [""; 0], "these answers never came");
}
