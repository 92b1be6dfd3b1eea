//! The real verbs.

use std::time::{Duration, Instant};

use idem_model::{Plan, Seen};
use stateright::HasDiscoveries;

use crate::explore;
use crate::long::{is_long, report};

const BASES: [(&str, Plan); 4] = [
    ("at hold", Plan::HOLD),
    ("at hold, bodies mark", Plan::MARKS),
    ("at hold with recover", Plan::RECOVER),
    ("at rerun", Plan::RERUN),
];

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

/// Two attempts, one send of each operation, nothing copied, two leases long.
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

const fn copied(base: Plan) -> Plan {
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

const fn taken_over_twice(base: Plan) -> Plan {
    Plan {
        attempts: 3,
        ..small(base)
    }
}

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
        stands(&format!("{name}, copies"), copied(base));
    }
}

#[test]
fn with_resends_every_law_stands() {
    stands("at hold, resends", resent(Plan::HOLD));
}

#[test]
fn with_a_second_takeover_every_law_stands_for_ten_steps() {
    for (name, base) in BASES {
        let name = format!("{name}, three attempts");
        stands_for(Some(10), &name, taken_over_twice(base));
    }
}

#[test]
fn with_an_operator_and_refusals_every_law_stands() {
    static SEEN: Seen = Seen::new();
    let base = Plan {
        seen: &SEEN,
        ..Plan::HOLD
    };
    stands("at hold, an operator", operated(base));
    stands("at hold, a refusal", refused(base));
    stands("at rerun, a refusal", refused(Plan::RERUN));
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
    stands("at hold, a slow reply", slow(Plan::HOLD));
    stands("at hold, bodies mark, a slow reply", slow(Plan::MARKS));
}

#[test]
fn when_records_expire_every_law_stands() {
    stands("at rerun, short-lived", short_lived(small(Plan::RERUN)));
}

/// The same for all set-ups, each to its end: 52 million worlds.
#[test]
fn in_a_long_run_every_law_stands() {
    static SEEN: Seen = Seen::new();
    if !is_long() {
        return;
    }
    let mut worlds = 0;
    for (name, base) in BASES {
        let base = Plan {
            seen: &SEEN,
            ..base
        };
        for (what, plan) in [
            ("copies", copied(base)),
            ("resends", resent(base)),
            ("an operator", operated(base)),
            ("a refusal", refused(base)),
            ("a loss", lost(base)),
            ("a slow reply", slow(base)),
            ("short-lived", short_lived(small(base))),
            ("three attempts", taken_over_twice(base)),
        ] {
            worlds += stands(&format!("{name}, {what}"), plan);
        }
    }
    report("model", format_args!("{worlds} worlds in all"));
    assert!(worlds >= 50_000_000, "only {worlds} worlds");
    assert_eq!(SEEN.missing(), [""; 0], "these answers never came");
}
