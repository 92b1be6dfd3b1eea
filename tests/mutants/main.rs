//! Small mistakes in the scripts and the statements, made on the wire between a store and its
//! server, or between sqlx and SQLite: the laws, the random histories and the scenes have to find each
//! of them.
//!
//! A sample, or all of them where `IDEM_LONG` is set; then the lists in `docs/proof/mutants` are
//! written anew. `IDEM_MUTANTS=expiry.lua:16` are those whose names begin so.

mod campaign;
mod equivalents;
mod kill;
mod known;
mod lua;
mod mutant;
mod pattern;
mod relay;
mod sql;
mod stores;
mod suite;
mod survivors;
mod wire;

use std::sync::{Mutex, MutexGuard, PoisonError};

use campaign::sample;
use idem_tests::long::is_long;
use kill::Attack;
use mutant::Mutant;
use suite::Suite;
use wire::Protocol;

const OPERATIONS: usize = 12_000;

/// One campaign at a time: each has workers of its own, and leases that are short.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn all_or(sampled: usize, mut mutants: Vec<Mutant>) -> Vec<Mutant> {
    if let Some(wanted) = campaign::only() {
        mutants.retain(|mutant| mutant.to_string().starts_with(&wanted));
        mutants
    } else if is_long() {
        mutants
    } else {
        sample(mutants, sampled)
    }
}

fn all(protocol: Protocol) -> Vec<Mutant> {
    match protocol {
        Protocol::Redis => lua::mutants(),
        Protocol::Postgres | Protocol::MySql => sql::mutants(protocol),
    }
}

/// Each time: what falls by itself would kill any mutant.
fn passes_unchanged(protocol: Protocol) {
    let tries = if is_long() { 3 } else { 1 };
    let _turn = turn();
    for _ in 0..tries {
        let trial = stores::try_once(protocol, None, &Attack::new(OPERATIONS / 4));
        assert_eq!(trial.rewritten, 0);
        assert_eq!(trial.killer, None);
    }
}

#[test]
fn the_scripts_pass_as_they_are() {
    passes_unchanged(Protocol::Redis);
}

#[test]
fn the_statements_in_postgresql_pass_as_they_are() {
    passes_unchanged(Protocol::Postgres);
}

#[test]
fn the_statements_in_mariadb_pass_as_they_are() {
    passes_unchanged(Protocol::MySql);
}

/// A list of those that have to die that has shrunk proves less, and would say so nowhere.
#[track_caller]
fn assert_enough(mutants: &[Mutant], least: usize) {
    let have_to_die = mutants.iter().filter(|one| known::reason(one).is_none());
    let count = have_to_die.count();
    assert!(count >= least, "only {count} have to die, of {least}");
}

fn are_killed(name: &str, protocol: Protocol, sampled: usize, least: usize) {
    let mutants = all(protocol);
    assert_enough(&mutants, least);
    let _turn = turn();
    let attack = Attack::new(OPERATIONS);
    campaign::run(name, all_or(sampled, mutants), |edit| {
        stores::try_out(protocol, edit, &attack)
    });
}

#[test]
fn mutants_of_the_scripts_are_killed() {
    are_killed("redis", Protocol::Redis, 20, 1005);
}

#[test]
fn mutants_of_the_statements_in_postgresql_are_killed() {
    are_killed("postgresql", Protocol::Postgres, 6, 48);
}

#[test]
fn mutants_of_the_statements_in_mariadb_are_killed() {
    are_killed("mariadb", Protocol::MySql, 6, 51);
}

/// By a suite that is built with all others, and not for this one alone.
fn are_killed_by(suite: Suite, name: &str, mutants: Vec<Mutant>, least: usize) {
    assert_enough(&mutants, least);
    if !is_long() && !suite.is_built() {
        return println!("cargo test --test {} --no-run, first", suite.program);
    }
    let _turn = turn();
    if is_long() {
        assert_eq!(suite.try_once(None, None).killer, None, "{name}, unchanged");
    }
    campaign::run(name, all_or(3, mutants), |edit| suite.try_out(edit));
}

const WITHIN_POSTGRES: Suite = Suite {
    program: "transaction",
    tests: "postgres::",
    but: &["cost"],
    protocol: Some(Protocol::Postgres),
};

const WITHIN_MARIADB: Suite = Suite {
    program: "transaction",
    tests: "mysql::",
    but: &["timed_out"],
    protocol: Some(Protocol::MySql),
};

const STATES: Suite = Suite {
    program: "schemes",
    tests: "mariadb",
    but: &[],
    protocol: Some(Protocol::MySql),
};

/// Without the tests that take seconds, and without the same laws once more in a rollback journal.
const SQLITE: Suite = Suite {
    program: "sql",
    tests: "sqlite::",
    but: &[
        "a_long",
        "in_a_rollback_journal",
        "a_purge_that_keeps_the_file",
        "the_only_pool_there_is",
        "the_whole_pool",
        "a_commit_that_was_given_up",
        "owner_and_stranger",
        "an_expired_record_is_absent",
        "fences_grow",
        "a_finished_record_lives",
    ],
    protocol: None,
};

const WITHIN_SQLITE: Suite = Suite {
    program: "transaction",
    tests: "sqlite::",
    but: &[
        "taken_over_when_its_lease_lapsed",
        "longer_than_its_lease",
        "a_cancel_that_comes_after_its_try",
        "before_the_commit",
    ],
    protocol: None,
};

const STATES_SQLITE: Suite = Suite {
    program: "schemes",
    tests: "sqlite::",
    but: &[],
    protocol: None,
};

#[test]
fn mutants_of_the_statements_in_a_transaction_of_postgresql_are_killed() {
    let mutants = sql::within(Protocol::Postgres);
    are_killed_by(WITHIN_POSTGRES, "transaction-postgresql", mutants, 10);
}

#[test]
fn mutants_of_the_statements_in_a_transaction_of_mariadb_are_killed() {
    let mutants = sql::within(Protocol::MySql);
    are_killed_by(WITHIN_MARIADB, "transaction-mariadb", mutants, 6);
}

#[test]
fn mutants_of_the_statements_of_a_transition_are_killed() {
    are_killed_by(STATES, "states-mariadb", sql::of_states(), 13);
}

#[test]
fn mutants_of_the_statements_in_sqlite_are_killed() {
    are_killed_by(SQLITE, "sqlite", sql::in_sqlite(), 62);
}

#[test]
fn mutants_of_the_statements_in_a_transaction_of_sqlite_are_killed() {
    are_killed_by(WITHIN_SQLITE, "transaction-sqlite", sql::within_sqlite(), 8);
}

#[test]
fn mutants_of_the_statements_of_a_transition_in_sqlite_are_killed() {
    let mutants = sql::of_states_in_sqlite();
    are_killed_by(STATES_SQLITE, "states-sqlite", mutants, 16);
}

#[test]
fn what_is_listed_as_harmless_is_there() {
    let protocols = [Protocol::Redis, Protocol::Postgres, Protocol::MySql];
    let mut mutants: Vec<_> = protocols.into_iter().flat_map(all).collect();
    mutants.extend(protocols.into_iter().flat_map(sql::within));
    mutants.extend(sql::in_sqlite());
    mutants.extend(sql::within_sqlite());
    mutants.extend(sql::of_states_in_sqlite());
    assert_eq!(known::stale(&mutants), []);
}
