//! Statements: one server of each kind, a database for each mutant.

#[allow(dead_code, reason = "shared with the suite of these stores")]
#[path = "../../../sql/scenes.rs"]
mod common;
mod mysql;
mod postgres;
mod scenes;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use idem_core::conformance::Harness;
use idem_core::store::{Store, StoreKey};

pub(super) use mysql::OnMariaDb;
pub(super) use postgres::OnPostgres;

use super::Trial;
use crate::kill::{Attack, Killer};
use crate::mutant::Edit;
use crate::relay::Relay;

/// As many as a store behind a relay may open.
const CONNECTIONS: u32 = 4;

/// How long a call may take: long, for several mutants run at once.
const LIMIT: Duration = Duration::from_secs(5);

/// A store of records in a database of its own, and what is done behind its back.
pub(super) trait Database: Harness<Store: Store + Clone> {
    type Aside: Aside;

    /// Counts the sessions of this database that wait for a lock.
    const WAITING: &str;
    /// Begins a transaction that locks no more than it names.
    const BEGIN: &str;
    /// The hash of another key.
    const OTHER_HASH: &str;
    /// How long nobody may ask for new figures about waiting sessions.
    const BETWEEN_LOOKS: Duration;

    /// An empty database.
    fn new(edit: Option<Edit>) -> Self;

    fn relay(&self) -> &Relay;

    /// A connection past the relay.
    async fn aside(&self) -> Self::Aside;

    fn limited(store: &Self::Store, limit: Duration) -> Self::Store;

    async fn purge(store: &Self::Store, batch: u32) -> u64;

    /// What only this database has to stand.
    async fn special(&self, store: &Self::Store);
}

pub(super) trait Aside {
    async fn run(&mut self, sql: &str);

    async fn count(&mut self, sql: &str) -> i64;
}

pub(super) fn try_out<D: Database>(edit: Option<Edit>, attack: &Attack) -> Trial {
    let database = Arc::new(D::new(edit));
    let killer = attack
        .by_short_history(&database)
        .or_else(|| by_scenes(&database, attack))
        .or_else(|| attack.by_history(&database))
        .or_else(|| attack.by_laws(&database));
    Trial {
        killer,
        rewritten: database.relay().rewritten(),
    }
}

fn by_scenes<D: Database>(database: &Arc<D>, attack: &Attack) -> Option<Killer> {
    macro_rules! scenes {
        ($($from:ident::$name:ident($store:ident $(, $argument:expr)?);)*) => {
            None$(.or_else(|| attack.by_scene(stringify!($name), async || {
                let $store = database.fresh_store().await;
                $from::$name(&$store $(, $argument)?).await;
            })))*
        };
    }
    let special = || {
        attack.by_scene("what only this database has to stand", async || {
            database.special(&database.fresh_store().await).await;
        })
    };
    let crowd = || {
        attack.by_scene("a_storm_on_few_keys_grants_each_once", async || {
            let stores = [database.fresh_store().await, database.fresh_store().await];
            common::a_storm_on_few_keys_grants_each_once(&stores).await;
        })
    };
    let killer = scenes![
        scenes::migrations_at_once_are_one(store, &**database);
        scenes::the_time_is_the_machines(store);
        scenes::what_changes_nothing_leaves_no_row(store, &**database);
        scenes::a_row_is_told_from_others_by_its_key(store, &**database);
        scenes::a_row_tells_when_it_was_made_and_changed(store, &**database);
        scenes::a_purge_takes_the_oldest_and_what_is_not_locked(store, &**database);
        scenes::a_locked_row_is_an_error_within_the_limit(store, &**database);
        scenes::a_lease_counts_from_its_grant(store, &**database);
        scenes::a_row_inserted_meanwhile_is_seen(store, &**database);
        common::keys_that_collations_confuse_are_apart(store);
    ];
    killer.or_else(special).or_else(crowd).or_else(|| {
        // Rows of others that expire meanwhile would be counted.
        attack.by_scene("purges_at_once", async || {
            let store = database.fresh_store().await;
            while D::purge(&store, 1_000).await > 0 {}
            common::purges_at_once_delete_what_is_over_and_nothing_else(&store, D::purge).await;
        })
    })
}

fn name_of_a_database() -> String {
    static MADE: AtomicU32 = AtomicU32::new(0);
    format!("mutant_{}", MADE.fetch_add(1, Ordering::Relaxed))
}

fn type_of(key: &StoreKey) -> String {
    format!("{}:{}", key.namespace(), key.prefix())
}
