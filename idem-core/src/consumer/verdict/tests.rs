use super::*;
use crate::error::{Context, StoreError, StoreErrorKind};
use crate::key::Key;

const RULES: Rules = Rules::new()
    .retries(3)
    .backoff(Duration::from_secs(1), Duration::from_secs(3))
    .pause(Duration::from_secs(7));
const PATIENT: Rules = RULES
    .retries(5)
    .backoff(Duration::from_secs(1), Duration::from_mins(5));
const PAUSE: Action = Action::Pause {
    by: Duration::from_secs(7),
};
const RETRIES: u32 = 1;
/// Waits without keeping the others, and is not counted.
const ALONE: Action = Action::Delay {
    by: Duration::from_secs(7),
    retries: RETRIES,
};

/// The same, and is counted.
const COUNTED: Action = Action::Delay {
    by: Duration::from_secs(7),
    retries: RETRIES + 1,
};

fn context() -> Context {
    Context::new(Key::new("test", "A").unwrap(), None)
}

fn in_progress(left: Duration) -> Error {
    Error::InProgress {
        context: context(),
        running_for: Duration::from_secs(1),
        retry_after: left,
    }
}

fn refused(error: &Error, outcome: Outcome) -> Action {
    let meaning = Meaning::Refusal(error);
    RULES.verdict(Answer::Failed { meaning, outcome }, RETRIES)
}

fn failed(meaning: Meaning<'_>, retries: u32) -> Action {
    let outcome = Outcome::Executed;
    RULES.verdict(Answer::Failed { meaning, outcome }, retries)
}

fn seconds(by: u64, retries: u32) -> Action {
    Action::Delay {
        by: Duration::from_secs(by),
        retries,
    }
}

fn store(kind: StoreErrorKind) -> Error {
    StoreError::new(kind, "away").into()
}

// V01, V02
#[test]
fn every_refusal_has_its_action() {
    let lease_left = Duration::from_secs(12);
    let conflict = Error::PrefixConflict {
        prefix: "test".into(),
        first: "a".into(),
        second: "b".into(),
    };
    let table = [
        (Error::Duplicate { context: context() }, Action::Ack),
        (
            Error::ResultUnavailable {
                context: context(),
                reason: "too large".into(),
            },
            Action::Ack,
        ),
        (
            in_progress(lease_left),
            Action::Delay {
                by: lease_left,
                retries: RETRIES,
            },
        ),
        (store(StoreErrorKind::Unavailable), PAUSE),
        (store(StoreErrorKind::Refused), PAUSE),
        (store(StoreErrorKind::Conflict), ALONE),
        (store(StoreErrorKind::Protocol), COUNTED),
        (store(StoreErrorKind::Misconfigured), PAUSE),
        (Error::LeaseLost { context: context() }, PAUSE),
        (Error::NotInstalled, PAUSE),
        (Error::InvalidPolicy { reason: "x".into() }, PAUSE),
        (conflict, PAUSE),
        (Error::OutcomeUnknown { context: context() }, Action::Park),
        (
            Error::Mismatch { context: context() },
            dead(Reason::Mismatch),
        ),
        (
            Error::MissingKey { part: "id".into() },
            dead(Reason::MissingKey),
        ),
        (
            Error::InvalidKey { reason: "x".into() },
            dead(Reason::InvalidKey),
        ),
        (Error::Damaged { context: context() }, dead(Reason::Damaged)),
        (
            Error::TokenRejected { context: context() },
            dead(Reason::TokenRejected),
        ),
        (Error::Refused { context: context() }, dead(Reason::Refused)),
    ];
    for (error, action) in &table {
        assert_eq!(refused(error, Outcome::Refused), *action, "{error:?}");
        let code = action.reason_code().unwrap_or(error.code());
        assert_eq!(code, error.code(), "one name for one refusal");
    }
}

#[test]
fn what_was_done_inside_a_body_that_failed_does_not_acknowledge_its_message() {
    let inner = Error::Duplicate { context: context() };
    let action = refused(&inner, Outcome::Executed);
    assert!(
        matches!(action, Action::Delay { retries, .. } if retries == RETRIES + 1),
        "{action:?}"
    );
}

#[test]
fn a_stored_error_that_can_not_be_read_is_no_success() {
    let unreadable = Error::ResultUnavailable {
        context: context(),
        reason: "it has failed".into(),
    };
    let stored = refused(&unreadable, Outcome::Replayed);
    assert_eq!(stored, dead(Reason::StoredError));
}

// N20
#[test]
fn a_lease_that_is_about_to_end_is_not_asked_for_in_a_hot_loop() {
    let action = refused(&in_progress(Duration::ZERO), Outcome::Refused);
    assert_eq!(
        action,
        Action::Delay {
            by: LEAST_DELAY,
            retries: RETRIES
        }
    );
}

#[test]
fn failures_back_off_are_counted_and_end() {
    assert_eq!(failed(Meaning::Retry, 0), seconds(1, 1));
    assert_eq!(failed(Meaning::Retry, 1), seconds(2, 2));
    assert_eq!(failed(Meaning::Retry, 2), seconds(3, 3));
    let exhausted = dead(Reason::RetriesExhausted);
    assert_eq!(failed(Meaning::Retry, 3), exhausted);
    assert_eq!(failed(Meaning::Retry, u32::MAX), exhausted);
    assert_eq!(RULES.verdict(Answer::Panicked, 0), seconds(1, 1));
    assert_eq!(RULES.verdict(Answer::Panicked, 3), exhausted);
    let long = Rules::new().retries(u32::MAX);
    let longest = Action::Delay {
        by: Duration::from_mins(5),
        retries: 1001,
    };
    assert_eq!(long.verdict(Answer::Panicked, 1000), longest);
}

#[test]
fn an_answer_that_nobody_understands_is_waited_for_patiently_but_not_for_ever() {
    let error = store(StoreErrorKind::Protocol);
    let after = |retries| {
        let meaning = Meaning::Refusal(&error);
        let outcome = Outcome::Executed;
        PATIENT.verdict(Answer::Failed { meaning, outcome }, retries)
    };
    assert_eq!(after(0), seconds(7, 1));
    assert_eq!(after(4), seconds(16, 5));
    assert_eq!(after(5), dead(Reason::Store));
    assert_eq!(after(u32::MAX), dead(Reason::Store));
}

/// Never dead: something may have happened. Never delayed for ever: the record is not, either.
#[test]
fn what_recover_could_not_tell_is_asked_again_counted_and_at_last_parked() {
    let context = context().asked_again();
    let error = Error::OutcomeUnknown { context };
    let after = |retries| {
        let meaning = Meaning::Refusal(&error);
        let outcome = Outcome::Refused;
        RULES.verdict(Answer::Failed { meaning, outcome }, retries)
    };
    assert_eq!(after(0), seconds(1, 1));
    assert_eq!(after(2), seconds(3, 3));
    assert_eq!(after(3), Action::Park);
    assert_eq!(after(u32::MAX), Action::Park);
}

#[test]
fn an_outage_of_what_every_message_needs_counts_against_none() {
    assert_eq!(failed(Meaning::Away, u32::MAX), PAUSE);
    let (meaning, outcome) = (Meaning::Away, Outcome::Replayed);
    let commit = RULES.verdict(Answer::Failed { meaning, outcome }, 0);
    assert_eq!(commit, PAUSE, "the commit after a replay has failed");
}

#[test]
fn what_no_retry_helps_is_dead_at_once() {
    assert_eq!(failed(Meaning::Dead, 0), dead(Reason::Rejected));
    assert_eq!(failed(Meaning::Unreadable, 0), dead(Reason::Unreadable));
    let missing = RULES.verdict(Answer::MissingId, 0);
    assert_eq!(missing, dead(Reason::MissingId));
    for outcome in [Outcome::Replayed, Outcome::Waited] {
        let meaning = Meaning::Retry;
        let stored = RULES.verdict(Answer::Failed { meaning, outcome }, 0);
        assert_eq!(stored, dead(Reason::StoredError));
    }
}

// V01
#[test]
fn whatever_is_done_is_acknowledged() {
    assert_eq!(RULES.verdict(Answer::Done, u32::MAX), Action::Ack);
}
