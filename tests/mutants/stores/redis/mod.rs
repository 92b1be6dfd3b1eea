//! Scripts: a server for each mutant, which starts in a few milliseconds and knows no script.

mod any_record;
#[allow(dead_code, reason = "shared with the suite of this store")]
#[path = "../../../redis/attempt.rs"]
mod attempt;
#[allow(dead_code, reason = "shared with the suite of this store")]
#[path = "../../../redis/dice.rs"]
mod dice;
mod ends;
#[path = "../../../redis/expiry.rs"]
mod expiry;
mod scenes;

use std::sync::Arc;
use std::time::Duration;

use idem_core::conformance::Harness;
use idem_core::store::redis::RedisBuilder;
use idem_core::store::{RedisStore, StoreKey};
use idem_tests::redis::{RedisOptions, RedisServer};

use super::Trial;
use crate::kill::{Attack, Killer};
use crate::mutant::Edit;
use crate::relay::Relay;
use crate::wire::Protocol;

struct Relayed {
    relay: Relay,
    server: RedisServer,
}

impl Harness for Relayed {
    type Store = RedisStore;

    async fn fresh_store(&self) -> RedisStore {
        let url = format!("redis://{}/", self.relay.address());
        let patient = RedisBuilder::server(url).limit(Duration::from_secs(10));
        patient.connect().await.unwrap()
    }

    async fn corrupt(&self, _: &RedisStore, key: &StoreKey) -> bool {
        self.server.cli(&["SET", key.as_str(), "foreign"]).unwrap();
        true
    }

    async fn time_to_live(&self, _: &RedisStore, key: &StoreKey) -> Option<Duration> {
        match self.server.cli(&["PTTL", key.as_str()]).unwrap().parse() {
            Ok(-1_i64) => Some(Duration::MAX),
            Ok(left) => u64::try_from(left).ok().map(Duration::from_millis),
            Err(_) => None,
        }
    }

    fn pushes(&self) -> bool {
        true
    }
}

pub(super) fn try_out(edit: Option<Edit>, attack: &Attack) -> Trial {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let relay = Relay::start(server.address(), Protocol::Redis, edit).unwrap();
    let harness = Arc::new(Relayed { relay, server });
    let killer = attack
        .by_short_history(&harness)
        .or_else(|| by_scenes(&harness, attack))
        .or_else(|| attack.by_history(&harness))
        .or_else(|| attack.by_laws(&harness));
    Trial {
        killer,
        once: None,
        rewritten: harness.relay.rewritten(),
    }
}

fn by_scenes(harness: &Arc<Relayed>, attack: &Attack) -> Option<Killer> {
    macro_rules! scenes {
        ($($name:ident),*) => {
            None$(.or_else(|| attack.by_scene(stringify!($name), async || {
                let store = harness.fresh_store().await;
                scenes::$name(&store, &harness.server).await;
            })))*
        };
    }
    let killer = scenes![
        what_is_nearly_a_record,
        a_value_of_another_type,
        nobody_is_told_who_did_not_ask,
        a_permanent_record,
        no_memory,
        rights_are_missing
    ];
    let time = || {
        attack.by_scene("the_time_is_the_machines", async || {
            let store = harness.fresh_store().await;
            super::the_time_is_the_machines(&store).await;
            super::the_time_is_told_in_microseconds(&store).await;
        })
    };
    let any_record = || {
        attack.by_scene("every_verb_on_any_record", async || {
            let store = harness.fresh_store().await;
            any_record::every_verb_on_any_record(&store, &harness.server).await;
        })
    };
    let expiry = || {
        attack.by_scene("redis_6_2_tells_an_end", async || {
            expiry::is_told_exactly(harness.relay.address());
        })
    };
    let ends = || {
        attack.by_scene("every_end_to_the_microsecond", async || {
            let Relayed { relay, server } = &**harness;
            let store = harness.fresh_store().await;
            ends::every_end_to_the_microsecond(&store, server, relay).await;
        })
    };
    let killer = killer.or_else(time).or_else(expiry);
    killer.or_else(any_record).or_else(ends)
}

#[test]
fn every_script_has_mutants() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../lua");
    let mutants = crate::lua::mutants();
    for script in std::fs::read_dir(folder).unwrap() {
        let name = script.unwrap().file_name();
        assert!(mutants.iter().any(|one| name == one.file), "{name:?}");
    }
}
