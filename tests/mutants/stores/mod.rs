//! The stores under test, each behind a relay.

mod redis;
mod sql;

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use idem_core::record::StoreTime;
use idem_core::store::Store;
use idem_tests::database::{OnMariaDb, OnPostgres};

use crate::kill::{Attack, Killer};
use crate::mutant::Edit;
use crate::wire::Protocol;

/// What became of a mutant.
#[derive(Debug)]
pub(crate) struct Trial {
    pub(crate) killer: Option<Killer>,
    /// How often its text was sent.
    pub(crate) rewritten: u64,
}

/// Attacks the store of this protocol, with a mutant in it or as it is.
pub(crate) fn try_out(protocol: Protocol, edit: Option<Edit>, attack: &Attack) -> Trial {
    match protocol {
        Protocol::Redis => redis::try_out(edit, attack),
        Protocol::Postgres => sql::try_out::<OnPostgres>(edit, attack),
        Protocol::MySql => sql::try_out::<OnMariaDb>(edit, attack),
    }
}

async fn the_time_is_the_machines<S: Store>(store: &S) {
    let machine = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let machine = StoreTime::default().after(machine);
    let now = store.now().await.unwrap();
    let apart = machine.since(now).max(now.since(machine));
    assert!(apart < Duration::from_secs(10), "{apart:?}");
}
