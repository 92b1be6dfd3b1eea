//! Errors of a call that is done, and of what its handler does after it.

use idem_core::consumer::{Action, Consumer, MessageId, Reason};
use idem_core::{Error, Idempotency, Key, OnError, Policy, Results};
use serde::{Deserialize, Serialize};

use crate::rig::{Failure, RULES, is_retried_and_dead, meaning};

fn key(id: &MessageId) -> Result<Key, Error> {
    Key::new("test:stored", id.as_str())
}

/// The commit, say, or an event that follows.
#[tokio::test]
async fn what_fails_after_a_stored_success_is_retried_like_everything() {
    let idem = Idempotency::memory();
    let consumer = Consumer::new(meaning).rules(RULES.retries(2));
    let deliver = async |retries| {
        let call = async |id| {
            let body = async || Ok::<_, Failure>(1);
            idem.run(key(&id)?, Policy::new(), body).await?;
            Err::<(), _>(Failure::Passing)
        };
        consumer.handle(Some("m-1"), retries, call).await
    };
    is_retried_and_dead(2, Reason::RetriesExhausted, deliver).await;
}

#[derive(Debug, Serialize, Deserialize)]
enum Old {
    Declined,
}

/// What it became in a later version.
#[derive(Debug, Serialize, Deserialize)]
enum New {
    Refused,
}

/// Its first consumer may have died before the dead letter was confirmed.
#[tokio::test]
async fn a_stored_error_that_can_not_be_read_any_more_is_dead_and_not_done() {
    let idem = Idempotency::memory();
    let consumer = Consumer::new(meaning).rules(RULES);
    let first = consumer.handle(Some("m-1"), 0, async |id| {
        let body = async || Err::<(), _>(Told::Body(Old::Declined));
        idem.run_with(key(&id)?, Policy::new(), kept(), None, body)
            .await
            .map_err(failure)
    });
    let reason = Reason::Rejected;
    assert_eq!(first.await, Action::Dead { reason });
    let again = consumer.handle(Some("m-1"), 0, async |id| {
        let body = async || -> Result<(), Told<New>> { panic!("a second run") };
        idem.run_with(key(&id)?, Policy::new(), kept(), None, body)
            .await
            .map_err(failure)
    });
    let reason = Reason::StoredError;
    assert_eq!(again.await, Action::Dead { reason });
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Told<B> {
    Body(B),
    #[serde(skip)]
    Guard(Error),
}

impl<B> From<Error> for Told<B> {
    fn from(error: Error) -> Self {
        Self::Guard(error)
    }
}

fn kept<B: Serialize + for<'de> Deserialize<'de>>() -> Results<(), Told<B>> {
    Results::stored().on_error(OnError::Replay).replay_errors()
}

fn failure<B>(told: Told<B>) -> Failure {
    match told {
        Told::Body(_) => Failure::Hopeless,
        Told::Guard(error) => error.into(),
    }
}
