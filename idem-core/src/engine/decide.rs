//! What a claim's answer means for the caller: a pure function of reply and settings.

use std::time::Duration;

use bytes::Bytes;

use crate::policy::{OnDuplicate, Settings};
use crate::record::{ClaimReply, Grant, StoreTime};

/// What to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Run the body.
    Run(Grant),
    /// Wait for the live attempt, whose lease has so much left.
    Wait {
        running_for: Duration,
        lease_left: Duration,
    },
    /// Give the stored result.
    Replay(Bytes),
    /// Give the stored error.
    ReplayError(Bytes),
    /// Claim as a new attempt: this one was closed while it was asking.
    ClaimAnew,
    /// Say no.
    Refuse(Refusal),
}

/// Why not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Refusal {
    InProgress {
        running_for: Duration,
        retry_after: Duration,
    },
    Duplicate,
    Mismatch,
    TokenRejected,
    OutcomeUnknown,
    Refused,
    NoResultStored,
    Damaged,
    /// The store went on finding the claim late until the time was over.
    Late,
}

pub(crate) fn decide(reply: ClaimReply, now: StoreTime, settings: &Settings) -> Decision {
    match reply {
        ClaimReply::Claimed(grant) => Decision::Run(grant),
        ClaimReply::InProgress { since, lease_left } if settings.wait.is_some() => Decision::Wait {
            running_for: now.since(since),
            lease_left,
        },
        ClaimReply::InProgress { since, lease_left } => Decision::Refuse(Refusal::InProgress {
            running_for: now.since(since),
            retry_after: lease_left,
        }),
        ClaimReply::Completed { .. } if settings.on_duplicate == OnDuplicate::Reject => {
            Decision::Refuse(Refusal::Duplicate)
        }
        ClaimReply::Completed {
            result: Some(result),
        } => Decision::Replay(result),
        ClaimReply::Completed { result: None } => Decision::Refuse(Refusal::NoResultStored),
        ClaimReply::FailedWith(error) => Decision::ReplayError(error),
        ClaimReply::OutcomeUnknown => Decision::Refuse(Refusal::OutcomeUnknown),
        ClaimReply::Refused => Decision::Refuse(Refusal::Refused),
        ClaimReply::Mismatch => Decision::Refuse(Refusal::Mismatch),
        ClaimReply::TokenRejected => Decision::Refuse(Refusal::TokenRejected),
        ClaimReply::Closed => Decision::ClaimAnew,
        ClaimReply::Late => Decision::Refuse(Refusal::Late),
        ClaimReply::Damaged => Decision::Refuse(Refusal::Damaged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{EngineTimes, Policy};

    const NOW: StoreTime = StoreTime::from_micros(10_000_000);

    fn settings(policy: Policy) -> Settings {
        let times = EngineTimes {
            doubt: Duration::from_mins(1),
            limit: Duration::from_secs(2),
        };
        policy.settings(&Policy::new(), &times).unwrap()
    }

    #[test]
    fn only_a_grant_runs_the_body() {
        let result = || Some(Bytes::from_static(b"1"));
        let lease_left = Duration::from_secs(3);
        let since = NOW.before(Duration::from_secs(1));
        let replies = [
            ClaimReply::InProgress { since, lease_left },
            ClaimReply::OutcomeUnknown,
            ClaimReply::Completed { result: result() },
            ClaimReply::Completed { result: None },
            ClaimReply::FailedWith(Bytes::new()),
            ClaimReply::Refused,
            ClaimReply::Mismatch,
            ClaimReply::TokenRejected,
            ClaimReply::Closed,
            ClaimReply::Late,
            ClaimReply::Damaged,
        ];
        for policy in [
            Policy::new(),
            Policy::new().reject_duplicates().wait_in_progress(),
        ] {
            for reply in &replies {
                let decision = decide(reply.clone(), NOW, &settings(policy));
                assert!(!matches!(decision, Decision::Run(_)), "{reply:?}");
            }
        }
    }

    // E12
    #[test]
    fn done_without_a_result_is_told_apart_from_in_progress() {
        let decision = decide(
            ClaimReply::Completed { result: None },
            NOW,
            &settings(Policy::new()),
        );
        assert_eq!(decision, Decision::Refuse(Refusal::NoResultStored));
    }

    #[test]
    fn a_duplicate_is_replayed_or_refused_as_configured() {
        let completed = ClaimReply::Completed {
            result: Some(Bytes::from_static(b"1")),
        };
        let replay = decide(completed.clone(), NOW, &settings(Policy::new()));
        assert_eq!(replay, Decision::Replay(Bytes::from_static(b"1")));
        let reject = decide(completed, NOW, &settings(Policy::new().reject_duplicates()));
        assert_eq!(reject, Decision::Refuse(Refusal::Duplicate));
    }

    #[test]
    fn a_live_attempt_is_waited_for_or_reported_with_its_lease() {
        let reply = ClaimReply::InProgress {
            since: NOW.before(Duration::from_secs(1)),
            lease_left: Duration::from_secs(3),
        };
        let refused = decide(reply.clone(), NOW, &settings(Policy::new()));
        assert_eq!(
            refused,
            Decision::Refuse(Refusal::InProgress {
                running_for: Duration::from_secs(1),
                retry_after: Duration::from_secs(3),
            })
        );
        let waits = decide(reply, NOW, &settings(Policy::new().wait_in_progress()));
        assert!(matches!(waits, Decision::Wait { .. }));
    }
}
