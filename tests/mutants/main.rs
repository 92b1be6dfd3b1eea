//! Small mistakes in the scripts and the statements, made on the wire between a store and its
//! server: the laws, the random histories and the scenes have to find each of them.
//!
//! A sample, or all of them where `IDEM_LONG` is set; then the lists in `docs/proof/mutants` are
//! written anew. `IDEM_MUTANTS=expiry.lua:16` are those whose names begin so.

mod campaign;
mod equivalents;
mod kill;
mod lua;
mod mutant;
mod pattern;
mod relay;
mod sql;
mod stores;
mod wire;

use std::sync::{Mutex, MutexGuard, PoisonError};

use campaign::sample;
use idem_tests::long::is_long;
use kill::Attack;
use mutant::Mutant;
use wire::Protocol;

const OPERATIONS: usize = 12_000;

/// One campaign at a time: each has workers of its own, and leases that are short.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn all_or(sampled: usize, protocol: Protocol) -> Vec<Mutant> {
    let mut mutants = all(protocol);
    if let Ok(wanted) = std::env::var("IDEM_MUTANTS") {
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

/// A machine that is busy with something else can be late for a limit, and once more; what is wrong
/// with the relay or with what attacks falls every time.
fn passes_unchanged(protocol: Protocol) {
    const TRIES: usize = 3;
    let _turn = turn();
    let passes = (0..TRIES).any(|_| {
        let trial = stores::try_out(protocol, None, &Attack::new(OPERATIONS / 4));
        assert_eq!(trial.rewritten, 0);
        trial
            .killer
            .inspect(|killer| println!("{protocol:?} fell by {killer}"))
            .is_none()
    });
    assert!(passes, "it falls every time");
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

#[test]
fn mutants_of_the_scripts_are_killed() {
    let _turn = turn();
    campaign::run(
        "redis",
        Protocol::Redis,
        all_or(20, Protocol::Redis),
        OPERATIONS,
    );
}

#[test]
fn mutants_of_the_statements_in_postgresql_are_killed() {
    let _turn = turn();
    let mutants = all_or(6, Protocol::Postgres);
    campaign::run("postgresql", Protocol::Postgres, mutants, OPERATIONS);
}

#[test]
fn mutants_of_the_statements_in_mariadb_are_killed() {
    let _turn = turn();
    let mutants = all_or(6, Protocol::MySql);
    campaign::run("mariadb", Protocol::MySql, mutants, OPERATIONS);
}

#[test]
fn what_is_listed_as_harmless_is_there() {
    let protocols = [Protocol::Redis, Protocol::Postgres, Protocol::MySql];
    let mutants: Vec<_> = protocols.into_iter().flat_map(all).collect();
    assert_eq!(equivalents::stale(&mutants), []);
}
