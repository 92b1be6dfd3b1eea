//! Statements: one server of each kind, a database for each mutant.

use std::sync::Arc;

use idem_tests::attempt::{TERMS, finish, key};
use idem_tests::database::{Aside, Database, OnMariaDb, OnPostgres, locked, mariadb, rows, scenes};
use tokio::runtime::Runtime;

use super::{Trial, unlocked};
use crate::kill::{Attack, Killer};
use crate::mutant::Edit;
use crate::relay::Relay;
use crate::wire::Protocol;

/// A database whose statements are changed.
pub(super) trait Mutable: Database {
    const PROTOCOL: Protocol;

    /// How its stores ask for the time, and one second after the epoch.
    const CLOCK: [&str; 2];

    /// What only this database has to stand.
    async fn special(&self, relay: &Relay);
}

impl Mutable for OnPostgres {
    const PROTOCOL: Protocol = Protocol::Postgres;

    const CLOCK: [&str; 2] = [
        "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
        "1000000::bigint",
    ];

    async fn special(&self, relay: &Relay) {
        unlocked::a_row_that_changes_between_two_statements_stays(self, relay).await;
    }
}

impl Mutable for OnMariaDb {
    const PROTOCOL: Protocol = Protocol::MySql;

    const CLOCK: [&str; 2] = [
        "TIMESTAMPDIFF(MICROSECOND, TIMESTAMP'1970-01-01 00:00:00', UTC_TIMESTAMP(6))",
        "CAST(1000000 AS SIGNED)",
    ];

    async fn special(&self, _: &Relay) {
        mariadb::a_migration_is_committed_in_a_session_without_autocommit(self).await;
        mariadb::a_call_that_writes_is_at_read_committed(self).await;
        mariadb::a_session_gets_its_own_patience_back(self).await;
        mariadb::a_connection_that_was_left_in_a_transaction_is_of_use(self).await;
    }
}

pub(super) fn try_out<D: Mutable>(edit: Option<Edit>, attack: &Attack) -> Trial {
    let database = Runtime::new().unwrap().block_on(D::empty());
    let relay = Relay::start(database.address(), D::PROTOCOL, edit).unwrap();
    let database = Arc::new(database.behind(relay.address().port()));
    let killer = attack
        .by_short_history(&database)
        .or_else(|| by_scenes(&database, &relay, attack))
        .or_else(|| attack.by_history(&database))
        .or_else(|| attack.by_laws(&database));
    Trial {
        killer,
        once: None,
        rewritten: relay.rewritten(),
    }
}

fn by_scenes<D: Mutable>(database: &Arc<D>, relay: &Relay, attack: &Attack) -> Option<Killer> {
    macro_rules! killer {
        ($($scene:expr;)*) => {
            None$(.or_else(|| {
                let name = stringify!($scene).split('(').next().unwrap_or_default();
                attack.by_scene(name, async || $scene.await)
            }))*
        };
    }
    let (database, store) = (&**database, async || database.fresh_store().await);
    killer! {
        rows::migrations_at_once_are_one(database);
        rows::a_version_is_written_once(database);
        super::the_time_is_the_machines(&store().await);
        super::the_time_is_told_in_microseconds(&store().await);
        rows::what_changes_nothing_leaves_no_row(database);
        rows::a_row_is_told_from_others_by_its_key(database);
        rows::a_row_tells_when_it_was_made_and_changed(database);
        rows::a_purge_takes_the_oldest_and_what_is_not_locked(database);
        locked::a_locked_row_is_told_as_it_is_committed(database);
        rows::a_lease_counts_from_its_grant(database);
        rows::a_row_inserted_meanwhile_is_seen(database);
        scenes::keys_that_collations_confuse_are_apart(&store().await);
        database.special(relay);
        scenes::a_storm_on_few_keys_grants_each_once(&[store().await, store().await]);
        purges_at_once(database);
        a_purge_takes_what_ends_now(database, relay);
    }
}

/// Without rows of others, which would be counted.
async fn purges_at_once<D: Database>(database: &D) {
    let store = database.fresh_store().await;
    while D::purge(&store, 1_000).await > 0 {}
    scenes::purges_at_once_delete_what_is_over_and_nothing_else(&store, D::purge).await;
}

/// By a clock that stands still.
async fn a_purge_takes_what_ends_now<D: Mutable>(database: &D, relay: &Relay) {
    let [clock, second] = D::CLOCK;
    let store = database.fresh_store().await;
    finish(&store, &key("purge", "now"), 1, TERMS).await;
    let mut aside = database.aside().await;
    let row = "business_type = 'shop:purge' AND business_key = 'now'";
    let end = format!("UPDATE idempotent_record SET expire_at = 1000000 WHERE {row}");
    aside.run(&end).await;
    relay.change_besides(Some(Edit {
        from: clock.into(),
        to: second.into(),
    }));
    // One that has not prepared its statements yet.
    let store = database.fresh_store().await;
    D::purge(&store, 10).await;
    relay.change_besides(None);
    let left = format!("SELECT count(*) FROM idempotent_record WHERE {row}");
    assert_eq!(aside.count(&left).await, 0);
}
