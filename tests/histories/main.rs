//! Histories under faults: processes call guarded functions on the same keys while their store,
//! the wire to it and they themselves are broken in every way; a checker judges, key by key, what
//! all of them saw by what is promised at their level.
//!
//! A few thousand operations and tens of faults; where `IDEM_LONG` is set, half a million and more
//! than a thousand.

mod campaign;
mod checker;
mod crew;
mod fault;
mod ground;
mod postgres;
mod size;
mod tally;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use idem_tests::cluster::Cluster;
use idem_tests::history::Level;
use idem_tests::long::{is_long, report};
use idem_tests::redis::RedisOptions;
use idem_tests::sentinel::Sentinels;

use crate::campaign::{Campaign, Outcome};
use crate::fault::OF_WORKERS;
use crate::ground::{Ground, Kind, OnePostgres, OneRedis};
use crate::size::{Size, seed};

fn campaign(what: &'static str, level: Level, percent: u64) -> Campaign {
    Campaign {
        what,
        level,
        size: Size::part(percent),
        seed: seed(),
        overtakes: false,
    }
}

/// One that goes on until a body was overtaken and has ended late, unless it is short: under locks
/// about one in a thousand calls does, and elsewhere far fewer.
fn overtaking(what: &'static str, level: Level, percent: u64) -> Campaign {
    let campaign = campaign(what, level, percent);
    Campaign {
        overtakes: campaign.size.operations >= 10_000,
        ..campaign
    }
}

/// A campaign of requests that lasts until each fault took place at least once.
fn outcome<G: Ground>(campaign: &Campaign, ground: &G) -> Outcome {
    let outcome = campaign.run(ground, BTreeMap::new).unwrap();
    is_told(&outcome, ground);
    assert!(outcome.tally.replays > 0, "nothing was asked for twice");
    assert!(
        outcome.left.records > 0,
        "no record is left to be looked at"
    );
    outcome
}

fn is_told<G: Ground>(outcome: &Outcome, ground: &G) {
    report("histories", outcome.line());
    for fault in ground.faults().into_iter().chain(OF_WORKERS) {
        assert!(outcome.faults.contains_key(&fault), "no {fault}");
    }
    assert!(outcome.tally.attempts > 0, "nothing happened");
}

// E13, L02
#[track_caller]
fn assert_kept(outcome: &Outcome) {
    assert!(outcome.violations.is_empty(), "{:#?}", outcome.violations);
    for left in [outcome.abandoned, outcome.left] {
        assert_eq!(left.endless, 0, "records without an end");
    }
    assert!(
        outcome.is_quiet,
        "somebody works on when all calls have ended"
    );
}

/// What is called lossy has to have something left to be judged.
#[track_caller]
fn assert_lost_nothing_else(outcome: &Outcome) {
    let whole = outcome.whole;
    assert!(whole >= 5, "only {whole} keys before the first loss");
    assert_kept(outcome);
}

// E01, E02, E04, E06, E07, R01, R06, R08, R11, X01, X04
#[test]
fn at_hold_on_redis_no_history_breaks_a_promise() {
    let redis = OneRedis::start(Kind::Durable).unwrap();
    assert_kept(&outcome(&campaign("hold", Level::Hold, 19), &redis));
}

// E01, E04, E06, E07, E15, X01, X04
#[test]
fn at_rerun_on_redis_a_second_effect_comes_only_after_an_abandoned_attempt() {
    let redis = OneRedis::start(Kind::Durable).unwrap();
    assert_kept(&outcome(&overtaking("rerun", Level::Rerun, 17), &redis));
}

// E02, E06, E09, E15
#[test]
fn with_recover_on_redis_every_key_ends_with_one_effect_and_its_result() {
    let redis = OneRedis::start(Kind::Durable).unwrap();
    assert_kept(&outcome(&overtaking("recover", Level::Recover, 17), &redis));
}

// C01, C02
#[test]
fn a_crowd_on_one_key_ends_with_one_effect_whoever_of_it_is_killed() {
    let redis = OneRedis::start(Kind::Durable).unwrap();
    let mut campaign = campaign("recover", Level::Recover, 3);
    campaign.size = campaign.size.crowded();
    assert_kept(&outcome(&campaign, &redis));
}

#[test]
fn at_hold_on_postgres_no_history_breaks_a_promise() {
    let postgres = OnePostgres::start().unwrap();
    postgres::lay_out(&postgres);
    assert_kept(&outcome(&campaign("hold", Level::Hold, 5), &postgres));
}

// E09
#[test]
fn in_transaction_mode_every_effect_is_there_exactly_once() {
    let postgres = OnePostgres::start().unwrap();
    postgres::lay_out(&postgres);
    let campaign = campaign("transaction", Level::Transaction, 14);
    let outcome = campaign.run(&postgres, || postgres::rows(&postgres));
    let outcome = outcome.unwrap();
    is_told(&outcome, &postgres);
    assert_kept(&outcome);
}

/// What a store has lost it can not hold. What is left to be judged are the promises that need no
/// record, and the others up to the first loss that a key could have had a record at.
#[test]
fn a_redis_that_comes_back_empty_loses_what_it_had_and_nothing_else() {
    let redis = OneRedis::start(Kind::Forgetful).unwrap();
    assert_lost_nothing_else(&outcome(&campaign("hold", Level::Hold, 5), &redis));
}

// L01, L02, L04, L06, L08, N21
#[test]
fn a_lock_on_redis_has_one_holder_and_nothing_is_written_behind_a_later_one() {
    has_one_holder(&OneRedis::start(Kind::Durable).unwrap(), 6);
}

#[test]
fn a_lock_on_postgres_has_one_holder_and_nothing_is_written_behind_a_later_one() {
    let postgres = OnePostgres::start().unwrap();
    postgres::lay_out(&postgres);
    has_one_holder(&postgres, 2);
}

fn has_one_holder<G: Ground>(ground: &G, percent: u64) {
    let campaign = overtaking("lock", Level::Lock, percent);
    let outcome = campaign.run(ground, BTreeMap::new).unwrap();
    is_told(&outcome, ground);
    assert_kept(&outcome);
}

// R03
#[test]
fn a_slot_that_moves_takes_the_promises_with_it() {
    let cluster = Cluster::start(&RedisOptions::new()).unwrap();
    for node in cluster.nodes() {
        // A busy machine is no reason for a fail-over, which may lose something.
        node.cli(&["CONFIG", "SET", "cluster-node-timeout", "60000"])
            .unwrap();
    }
    assert_kept(&outcome(&campaign("hold", Level::Hold, 7), &cluster));
}

#[test]
fn a_fail_over_loses_what_the_replica_had_not_and_nothing_else() {
    if !is_long() {
        println!("not run: fail-overs are left to the long run (IDEM_LONG)");
        return;
    }
    let sentinels = Sentinels::start(&RedisOptions::new()).unwrap();
    assert_lost_nothing_else(&outcome(&campaign("hold", Level::Hold, 2), &sentinels));
}

/// A checker that can not fail proves nothing. It is judged by the weakest level; what it does wrong
/// takes two to meet at a bad moment.
#[test]
fn the_protocol_of_the_textbooks_is_caught() {
    for what in ["slow textbook", "textbook"] {
        until_caught(|| {
            let redis = OneRedis::start(Kind::OfTheTextbook).unwrap();
            outcome(&campaign(what, Level::Rerun, 1), &redis)
        });
    }
}

/// What transaction mode is for.
#[test]
fn a_record_in_another_transaction_than_its_effect_is_caught() {
    until_caught(|| {
        let postgres = OnePostgres::start().unwrap();
        postgres::lay_out(&postgres);
        let campaign = campaign("apart", Level::Transaction, 1);
        let outcome = campaign.run(&postgres, || postgres::rows(&postgres));
        let outcome = outcome.unwrap();
        is_told(&outcome, &postgres);
        outcome
    });
}

/// Goes on until something that is wrong was seen.
fn until_caught(campaign: impl Fn() -> Outcome) {
    const SOON: Duration = Duration::from_mins(2);
    let begin = Instant::now();
    while campaign().violations.is_empty() {
        assert!(begin.elapsed() < SOON, "nothing wrong was seen");
    }
}
