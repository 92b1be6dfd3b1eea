//! Results that can not be stored, or not be read again, and errors that are replayed.

use std::fmt::Debug;

use idem_core::record::Status;
use idem_core::{Error, OnError, Policy, Results};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::rig::{Bodies, Rig, key};

type Answer<T> = Result<T, Error>;

/// The first and the second answer of a body that gives `value`, which runs once.
async fn twice<T: Serialize + DeserializeOwned + Clone>(
    rig: &Rig,
    value: T,
) -> (Answer<T>, Answer<T>) {
    let bodies = Bodies::default();
    let call = || {
        rig.idem.run(key(), Policy::new(), async || {
            bodies.add();
            Ok(value.clone())
        })
    };
    let answers = (call().await, call().await);
    assert_eq!(bodies.count(), 1);
    assert_eq!(rig.status().await, Some(Status::Success));
    answers
}

async fn comes_back<T>(value: T)
where
    T: Serialize + DeserializeOwned + Clone + PartialEq + Debug,
{
    let (first, second) = twice(&Rig::new(), value.clone()).await;
    assert_eq!(first.unwrap(), value);
    assert_eq!(second.unwrap(), value);
}

async fn is_not_stored<T: Serialize + DeserializeOwned + Clone + Debug>(rig: Rig, value: T) {
    let (first, second) = twice(&rig, value).await;
    assert!(first.is_ok(), "{first:?}");
    assert!(
        matches!(second, Err(Error::ResultUnavailable { .. })),
        "{second:?}"
    );
    assert_eq!(rig.counts().result_not_stored, 1);
}

// S01, S02
#[tokio::test]
async fn falsy_results_come_back_as_they_were() {
    comes_back(0_u32).await;
    comes_back(false).await;
    comes_back(String::new()).await;
    comes_back(Vec::<u8>::new()).await;
    comes_back(None::<u8>).await;
    comes_back(()).await;
}

// S01, S04
#[tokio::test]
async fn results_that_would_come_back_changed_are_not_stored() {
    is_not_stored(Rig::new(), Some(None::<u8>) as Option<Option<u8>>).await;
    is_not_stored(Rig::new(), Some(())).await;
    is_not_stored(Rig::new(), f64::NAN).await;
}

// S06
#[tokio::test]
async fn a_result_over_the_limit_is_not_stored_and_one_at_the_limit_is() {
    let rig = || Rig::with(|builder| builder.max_result_bytes(10));
    is_not_stored(rig(), "9 letters".to_owned()).await;
    let (first, second) = twice(&rig(), "8 letter".to_owned()).await;
    assert_eq!(first.unwrap(), second.unwrap());
}

// S07
#[tokio::test]
async fn a_result_that_refuses_to_be_written_is_not_stored() {
    let map = std::collections::BTreeMap::from([((1, 2), 3)]);
    is_not_stored(Rig::new(), map).await;
}

// S08
#[tokio::test]
async fn a_result_of_a_type_that_has_changed_is_unavailable_and_never_run_again() {
    #[derive(Debug, Serialize, Deserialize)]
    struct Old {
        number: u32,
    }
    #[derive(Debug, Serialize, Deserialize)]
    struct New {
        number: u32,
        added: String,
    }
    let (rig, bodies) = (Rig::new(), Bodies::default());
    let old = async || Ok::<_, Error>(Old { number: 1 });
    rig.idem.run(key(), Policy::new(), old).await.unwrap();
    let new = async || {
        bodies.add();
        Ok(New {
            number: 1,
            added: String::new(),
        })
    };
    let refused = rig.idem.run(key(), Policy::new(), new).await;
    let Err(Error::ResultUnavailable { reason, .. }) = &refused else {
        panic!("{refused:?}");
    };
    assert!(reason.contains("added"), "{reason}");
    assert_eq!(bodies.count(), 0);
}

// E12
#[tokio::test]
async fn a_success_without_a_result_is_told_apart_from_a_running_one() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    let rejects = Policy::new().reject_duplicates();
    assert_eq!(rig.count(rejects, &bodies).await.unwrap(), 1);
    let refused = rig.count(Policy::new(), &bodies).await;
    assert!(
        matches!(refused, Err(Error::ResultUnavailable { .. })),
        "{refused:?}"
    );
}

// E18
#[tokio::test]
async fn an_error_is_replayed_where_that_was_asked_for_and_run_again_otherwise() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Failed {
        Declined(u32),
        Guard(String),
    }
    impl From<Error> for Failed {
        fn from(error: Error) -> Self {
            Self::Guard(error.to_string())
        }
    }
    for (meaning, expected, status) in [
        (OnError::Replay, 1, Some(Status::Failed)),
        (OnError::Fail, 2, Some(Status::Failed)),
        (OnError::Release, 2, None),
    ] {
        let (rig, bodies) = (Rig::new(), Bodies::default());
        let results = Results::<u32, Failed>::stored()
            .replay_errors()
            .on_error(meaning);
        let call = || {
            let body = async || Err(Failed::Declined(bodies.add()));
            rig.idem.run_with(key(), Policy::new(), results, None, body)
        };
        assert_eq!(call().await, Err(Failed::Declined(1)));
        assert_eq!(rig.status().await, status, "{meaning:?}");
        assert_eq!(call().await, Err(Failed::Declined(expected)), "{meaning:?}");
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Long(String);

impl From<Error> for Long {
    fn from(error: Error) -> Self {
        Self(error.code().to_owned())
    }
}

#[tokio::test]
async fn an_error_that_can_not_be_stored_is_no_final_one_and_leaves_the_outcome_unknown() {
    let (rig, bodies) = (
        Rig::with(|builder| builder.max_result_bytes(1)),
        Bodies::default(),
    );
    let results = Results::<u32, Long>::stored()
        .replay_errors()
        .on_error(OnError::Replay);
    let call = || {
        let body = async || {
            bodies.add();
            Err(Long("too long".into()))
        };
        rig.idem.run_with(key(), Policy::new(), results, None, body)
    };
    assert_eq!(call().await.unwrap_err().0, "too long");
    assert_eq!(call().await.unwrap_err().0, "outcome_unknown");
    assert_eq!(bodies.count(), 1);
}

// E07
#[tokio::test]
async fn a_failed_body_is_run_again_with_a_higher_fence_and_number() {
    let rig = Rig::new();
    let attempt = async || {
        let attempt = idem_core::Attempt::current().unwrap();
        Err::<u32, _>(Error::PrefixConflict {
            prefix: attempt.number().to_string().into(),
            first: attempt.fence().to_string(),
            second: attempt.derive_key("bank"),
        })
    };
    let told = |result: Result<u32, Error>| match result {
        Err(Error::PrefixConflict {
            prefix,
            first,
            second,
        }) => (prefix.into_owned(), first.parse::<u64>().unwrap(), second),
        other => panic!("{other:?}"),
    };
    let first = told(rig.run(Policy::new(), attempt).await);
    let second = told(rig.run(Policy::new(), attempt).await);
    assert_eq!((first.0.as_str(), second.0.as_str()), ("1", "2"));
    assert!(second.1 > first.1);
    assert_eq!(first.2, second.2);
}

// K14
#[tokio::test]
async fn foreign_bytes_at_the_key_are_an_error_and_no_permission() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    rig.damage();
    let refused = rig.count(Policy::new(), &bodies).await;
    assert!(matches!(refused, Err(Error::Damaged { .. })), "{refused:?}");
    assert_eq!(bodies.count(), 0);
}

#[tokio::test]
async fn a_forgotten_success_leaves_no_result_and_may_run_again() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    let forgets = Policy::new().forget();
    assert_eq!(rig.count(forgets, &bodies).await.unwrap(), 1);
    assert_eq!(rig.status().await, None);
    assert_eq!(rig.count(forgets, &bodies).await.unwrap(), 2);
}
