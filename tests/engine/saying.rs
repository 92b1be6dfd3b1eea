//! What an operator is told: beside each counter one event at the level of errors, without keys;
//! and a warning now and then while calls are refused.

use std::sync::{Arc, Mutex};

use idem_core::{Error, OnError, Policy, Results, StoreErrorKind};
use idem_tests::events::Events;
use idem_tests::faulty::{Fault, Verb};
use tracing::Level;
use tracing::subscriber::DefaultGuard;

use crate::rig::{Bodies, Rig, failure, is_failure, key};

/// The text of what this thread says at a level.
#[derive(Default)]
pub(crate) struct Said(Arc<Mutex<Vec<String>>>);

impl Said {
    /// Listens until the guard is dropped.
    pub(crate) fn listens(&self, level: Level) -> DefaultGuard {
        let said = self.0.clone();
        let keep = move |text: &str| said.lock().unwrap().push(text.to_owned());
        tracing::subscriber::set_default(Events::of(level, keep))
    }

    /// The one event that names the key only by its hash.
    pub(crate) fn only(&self) -> String {
        let said = self.0.lock().unwrap();
        let [only] = &said[..] else {
            panic!("{said:?}");
        };
        assert!(!only.contains(key().as_str()), "{only}");
        only.clone()
    }

    /// Nothing was said.
    pub(crate) fn nothing(&self) {
        let said = self.0.lock().unwrap();
        assert!(said.is_empty(), "{said:?}");
    }
}

#[tokio::test]
async fn a_result_that_the_store_does_not_know_yet_is_said_to_be_unconfirmed() {
    let (rig, bodies, said) = (Rig::new(), Bodies::default(), Said::default());
    let away = Fault::fail(StoreErrorKind::Unavailable);
    rig.store.always(Verb::Settle, away);
    let listens = said.listens(Level::ERROR);
    assert_eq!(rig.count(Policy::new(), &bodies).await.unwrap(), 1);
    drop(listens);
    let only = said.only();
    assert!(only.contains("unconfirmed"), "{only}");
    assert_eq!(rig.counts().unconfirmed, 1);
    rig.store.always(Verb::Settle, Fault::NONE);
    rig.until_idle().await;
}

#[tokio::test]
async fn a_body_that_runs_without_a_guard_is_said_to() {
    let (rig, bodies, said) = (Rig::new(), Bodies::default(), Said::default());
    rig.store.always(Verb::Claim, Fault::unsent());
    let listens = said.listens(Level::ERROR);
    let policy = Policy::new().run_on_store_error();
    assert_eq!(rig.count(policy, &bodies).await.unwrap(), 1);
    drop(listens);
    let only = said.only();
    assert!(only.contains("unguarded"), "{only}");
    assert_eq!(rig.counts().unguarded, 1);
}

#[tokio::test]
async fn a_result_that_is_not_stored_is_said_not_to_be() {
    let (rig, said) = (
        Rig::with(|builder| builder.max_result_bytes(0)),
        Said::default(),
    );
    let listens = said.listens(Level::ERROR);
    rig.run(Policy::new(), async || Ok(1)).await.unwrap();
    drop(listens);
    let only = said.only();
    assert!(only.contains("ResultUnavailable"), "{only}");
    assert_eq!(rig.counts().result_not_stored, 1);
}

#[tokio::test]
async fn an_error_that_is_to_be_replayed_and_can_not_be_stored_is_said() {
    let (rig, said) = (Rig::new(), Said::default());
    let results = Results::<u32, Error>::stored().on_error(OnError::Replay);
    let listens = said.listens(Level::ERROR);
    let fails = async || Err(failure());
    let failed = rig
        .idem
        .run_with(key(), Policy::new(), results, None, fails)
        .await;
    drop(listens);
    assert!(is_failure(&failed));
    let only = said.only();
    assert!(only.contains("replay_errors"), "{only}");
    assert_eq!(rig.counts().result_not_stored, 1);
}

#[tokio::test]
async fn calls_that_are_refused_while_the_store_is_away_are_said_together() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    let said = Said::default();
    rig.store.always(Verb::Claim, Fault::unsent());
    let listens = said.listens(Level::WARN);
    for _ in 0..20 {
        let refused = rig.count(Policy::new(), &bodies).await.unwrap_err();
        assert_eq!(refused.code(), "store");
    }
    drop(listens);
    let only = said.only();
    assert!(only.contains("calls are refused"), "{only}");
    assert!(only.contains("refused=1 "), "{only}");
}
