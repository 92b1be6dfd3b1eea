//! The stores under test, each behind a relay.

mod redis;
mod sql;
mod unlocked;

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
    /// What fell once, and not again.
    pub(crate) once: Option<String>,
    /// How often its text was sent.
    pub(crate) rewritten: u64,
}

/// Attacks the store of this protocol with a mutant in it. What falls has to fall again, on another
/// server or database.
pub(crate) fn try_out(protocol: Protocol, edit: &Edit, attack: &Attack) -> Trial {
    twice(|only| match only {
        None => try_once(protocol, Some(edit.clone()), attack),
        Some(killer) => try_once(protocol, Some(edit.clone()), &attack.again(killer)),
    })
}

/// Until the same falls twice, or nothing falls: a busy machine can be late for a limit. What falls
/// before the text was sent does not fall by it.
pub(crate) fn twice(attack: impl Fn(Option<&Killer>) -> Trial) -> Trial {
    const ROUNDS: usize = 3;
    let (mut once, mut rewritten) = (None, 0);
    for _ in 0..ROUNDS {
        let trial = attack(None);
        let Some(killer) = &trial.killer else {
            return Trial { once, ..trial };
        };
        let falls = |trial: &Trial| trial.killer.is_some() && trial.rewritten > 0;
        if falls(&trial) && falls(&attack(Some(killer))) {
            return trial;
        }
        once = Some(killer.to_string());
        rewritten = rewritten.max(trial.rewritten);
    }
    Trial {
        killer: None,
        once,
        rewritten,
    }
}

/// Attacks it once, with a mutant in it or as it is.
pub(crate) fn try_once(protocol: Protocol, edit: Option<Edit>, attack: &Attack) -> Trial {
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

async fn the_time_is_told_in_microseconds<S: Store>(store: &S) {
    for _ in 0..20 {
        let now = store.now().await.unwrap();
        if now != now.ceil_millis() {
            return;
        }
    }
    panic!("only whole milliseconds");
}
