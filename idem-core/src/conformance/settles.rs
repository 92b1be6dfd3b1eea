//! Finishing an attempt.

use std::time::Duration;

use bytes::Bytes;

use super::Harness;
use super::caller::{other_result, outcomes, result, success};
use super::claims::attempt_of;
use super::trial::{Trial, Tried};
use crate::record::{
    ClaimReply, Current, OnAbandoned, Outcome, Record, RenewReply, Settle, SettleReply, State,
    Status, StoreTime, Terms,
};

pub(super) fn superseded(current: Current) -> SettleReply {
    SettleReply::Superseded { current }
}

/// What everybody sees after an attempt that was not in doubt has ended so.
fn status_after(outcome: &Outcome) -> Option<Status> {
    match outcome {
        Outcome::Success(_) => Some(Status::Success),
        Outcome::Failed | Outcome::FailedWith(_) => Some(Status::Failed),
        Outcome::SuccessForget | Outcome::Release | Outcome::GiveUp => None,
        Outcome::Abandon => Some(Status::Processing),
    }
}

/// What an owner that comes too late is told of an attempt that has ended so.
fn current_after(outcome: &Outcome) -> Current {
    match outcome {
        Outcome::Success(result) => Current::Success {
            result: result.clone(),
        },
        Outcome::Failed | Outcome::FailedWith(_) => Current::Failed,
        Outcome::SuccessForget | Outcome::Release | Outcome::GiveUp => Current::Nothing,
        Outcome::Abandon => Current::Processing,
    }
}

/// The stored bytes of a finished record, and when it was finished.
pub(super) fn stored(record: &Record) -> (Option<Bytes>, StoreTime) {
    match &record.state {
        State::Success { at, result } => (result.clone(), *at),
        State::Failed { at, error } => (error.clone(), *at),
        other => panic!("a finished record was expected, not {other:?}"),
    }
}

pub(super) async fn an_owner_ends_its_attempt_in_each_way<H: Harness>(t: &Trial<'_, H>) -> Tried {
    for outcome in outcomes() {
        let mut a = t.caller(&t.key());
        let grant = a.granted().await?;
        a.settled(outcome.clone()).await?;
        let now = t.heard();
        let status = t.status(&a.key).await?;
        assert_eq!(status, status_after(&outcome), "after {outcome:?}");
        if status.is_none() || outcome == Outcome::Abandon {
            continue;
        }
        let record = t.record(&a.key).await?;
        let bytes = match outcome {
            Outcome::Success(result) => result,
            Outcome::FailedWith(error) => Some(error),
            _ => None,
        };
        assert_eq!(stored(&record), (bytes, now));
        assert_eq!(
            record.expires_at,
            now.after(a.claim.terms.expire).ceil_millis()
        );
        assert_eq!((record.owner, record.fence), (a.claim.owner, grant.fence));
        assert_eq!(record.attempt, 1);
    }
    Ok(())
}

pub(super) async fn a_lapsed_lease_does_not_end_ownership<H: Harness>(t: &Trial<'_, H>) -> Tried {
    for checkpoint in [false, true] {
        let mut a = t.caller(&t.key()).with(|claim| {
            claim.checkpoint = checkpoint;
            claim.terms = t.short_lease();
        });
        a.granted().await?;
        a.lapse().await?;
        a.settled(success()).await?;
        let mut b = t.caller(&a.key);
        let result = Some(result());
        assert_eq!(b.claim().await?, ClaimReply::Completed { result });
    }
    Ok(())
}

// N01
pub(super) async fn nobody_ends_the_attempt_of_another<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let mut a = t.caller(&t.key());
    a.granted().await?;
    let before = t.record(&a.key).await?;
    let mut b = t.caller(&t.key());
    b.granted().await?;
    let mut b = b.moved_to(&a.key);
    for outcome in outcomes() {
        let reply = b.settle(outcome).await?;
        assert_eq!(reply, superseded(Current::Processing));
    }
    assert_eq!(t.record(&a.key).await?, before);
    Ok(())
}

// Law 2
pub(super) async fn nobody_changes_what_another_has_ended<H: Harness>(t: &Trial<'_, H>) -> Tried {
    for ended in outcomes() {
        let mut a = t.caller(&t.key());
        a.granted().await?;
        a.settled(ended.clone()).await?;
        let before = t.peek(&a.key).await?;
        let mut b = t.caller(&t.key());
        b.granted().await?;
        let mut b = b.moved_to(&a.key);
        for outcome in outcomes() {
            let reply = b.settle(outcome).await?;
            assert_eq!(reply, superseded(current_after(&ended)));
        }
        assert_eq!(t.peek(&a.key).await?, before);
    }
    Ok(())
}

// Law 9, N23
pub(super) async fn a_settle_delivered_again_is_settled_and_changes_nothing<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    for outcome in outcomes() {
        let mut a = t.caller(&t.key());
        a.granted().await?;
        a.settled(outcome.clone()).await?;
        let before = t.peek(&a.key).await?;
        t.until_past(t.heard()).await?;
        for _ in 0..3 {
            a.settled(outcome.clone()).await?;
        }
        assert_eq!(t.peek(&a.key).await?, before, "after {outcome:?}");
    }
    Ok(())
}

pub(super) async fn a_settle_with_another_end_is_superseded<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let ends = [
        success(),
        Outcome::Success(None),
        Outcome::Failed,
        Outcome::FailedWith(result()),
    ];
    for first in ends {
        let mut a = t.caller(&t.key());
        a.granted().await?;
        a.settled(first.clone()).await?;
        let before = t.record(&a.key).await?;
        let mut others = outcomes();
        others.push(Outcome::Success(Some(other_result())));
        others.push(Outcome::Success(Some(Bytes::new())));
        others.push(Outcome::FailedWith(other_result()));
        for second in others.into_iter().filter(|second| *second != first) {
            let reply = a.settle(second.clone()).await?;
            let expected = superseded(current_after(&first));
            assert_eq!(reply, expected, "{second:?} after {first:?}");
        }
        assert_eq!(t.record(&a.key).await?, before);
    }
    Ok(())
}

pub(super) async fn an_owner_hears_settled_from_its_own_closed_mark<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    for end in [Outcome::Release, Outcome::GiveUp, Outcome::SuccessForget] {
        let mut a = t.caller(&t.key());
        a.granted().await?;
        a.settled(end).await?;
        for outcome in outcomes() {
            a.settled(outcome).await?;
            assert_eq!(t.status(&a.key).await?, None);
        }
    }
    Ok(())
}

pub(super) async fn an_abandoned_attempt_is_closed_to_its_owner_but_for_a_success<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    for end in [success(), Outcome::Success(None), Outcome::SuccessForget] {
        let mut a = t.caller(&t.key());
        a.granted().await?;
        a.settled(Outcome::Abandon).await?;
        let record = t.record(&a.key).await?;
        let attempt = attempt_of(&record);
        assert!(attempt.given_up && attempt.lease_until <= t.heard());

        let mut b = t.caller(&a.key);
        assert_eq!(b.claim().await?, ClaimReply::OutcomeUnknown);
        assert_eq!(a.claim().await?, ClaimReply::Closed);
        assert_eq!(a.renew().await?, RenewReply::Lost);
        assert_eq!(a.checkpoint().await?, RenewReply::Lost);
        for refused in [
            Outcome::Failed,
            Outcome::FailedWith(result()),
            Outcome::Release,
        ] {
            let reply = a.settle(refused).await?;
            assert_eq!(reply, superseded(Current::Processing));
        }
        assert_eq!(t.record(&a.key).await?, record);

        a.settled(end.clone()).await?;
        assert_eq!(t.status(&a.key).await?, status_after(&end));
    }
    Ok(())
}

pub(super) async fn an_abandoned_attempt_before_its_checkpoint_is_free_at_once<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut a = t.caller(&t.key()).with(|claim| claim.checkpoint = false);
    a.granted().await?;
    a.settled(Outcome::Abandon).await?;
    let mut b = t.caller(&a.key);
    let grant = b.granted().await?;
    assert_eq!(
        (grant.number, grant.takeover, grant.doubt),
        (2, true, false)
    );
    Ok(())
}

// E15
pub(super) async fn an_owner_that_was_taken_over_ends_nothing<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    for abandoned in [true, false] {
        let mut a = t.caller(&t.key()).with(|claim| {
            claim.policy = OnAbandoned::Rerun;
            claim.terms = t.short_lease();
        });
        a.granted().await?;
        if abandoned {
            a.settled(Outcome::Abandon).await?;
        } else {
            a.lapse().await?;
        }
        let mut b = t
            .caller(&a.key)
            .with(|claim| claim.policy = OnAbandoned::Rerun);
        b.granted().await?;
        for outcome in outcomes() {
            let reply = a.settle(outcome).await?;
            assert_eq!(reply, superseded(Current::Processing));
        }
        b.settled(Outcome::Success(Some(other_result()))).await?;
        let before = t.record(&a.key).await?;
        let result = Some(other_result());
        for outcome in outcomes() {
            let result = result.clone();
            let reply = a.settle(outcome).await?;
            assert_eq!(reply, superseded(Current::Success { result }));
        }
        assert_eq!(a.claim().await?, ClaimReply::Completed { result });
        assert_eq!(t.record(&a.key).await?, before);
    }
    Ok(())
}

// Law 10
pub(super) async fn a_claim_that_is_given_up_leaves_a_free_key<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    for checkpoint in [false, true] {
        let mut a = t
            .caller(&t.key())
            .with(|claim| claim.checkpoint = checkpoint);
        let old = a.granted().await?;
        a.settled(Outcome::GiveUp).await?;
        assert_eq!(t.status(&a.key).await?, None);
        let mut b = t.caller(&a.key);
        let new = b.granted().await?;
        assert!(new.fence > old.fence);
        assert_eq!((new.number, new.takeover, new.doubt), (1, false, false));
    }
    Ok(())
}

// N37
pub(super) async fn a_takeover_in_doubt_that_is_given_up_stays_in_doubt<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    for policy in [OnAbandoned::Hold, OnAbandoned::Rerun] {
        let mut dead = t.caller(&t.key()).with(|claim| claim.policy = policy);
        dead.granted().await?;
        dead.settled(Outcome::Abandon).await?;
        let mut b = t.caller(&dead.key).with(|claim| {
            claim.policy = policy;
            claim.checkpoint = false;
            claim.recover = policy == OnAbandoned::Hold;
        });
        assert!(b.granted().await?.doubt);
        b.settled(Outcome::GiveUp).await?;
        assert_eq!(b.claim().await?, ClaimReply::Closed);

        let mut c = t.caller(&dead.key);
        assert_eq!(c.claim().await?, ClaimReply::OutcomeUnknown);
        c.claim.recover = true;
        assert!(c.granted().await?.doubt);
    }
    Ok(())
}

pub(super) async fn a_closed_mark_stays_as_long_as_a_packet_can_be_under_way<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let lease_rules = Terms {
        lease: t.pace * 2,
        limit: t.pace / 2,
        ..t.short()
    };
    let limit_rules = Terms {
        lease: t.pace,
        limit: t.pace,
        ..t.short()
    };
    for terms in [lease_rules, limit_rules] {
        let mut a = t.caller(&t.key()).with(|claim| {
            claim.terms = Terms {
                expire: Duration::from_mins(10),
                ..terms
            }
        });
        a.granted().await?;
        a.settled(Outcome::Release).await?;
        let until = t.heard().after(t.pace * 2);

        // Not a wait for its own sake: the mark has to be there shortly before its end.
        t.until_past(until.before(t.pace / 2)).await?;
        let reply = a.settle(success()).await?;
        t.in_time_for(until)?;
        assert_eq!(reply, SettleReply::Settled);

        t.until_past(until.ceil_millis()).await?;
        let reply = a.settle(Outcome::Failed).await?;
        assert_eq!(reply, superseded(Current::Nothing));
    }
    Ok(())
}

pub(super) async fn a_settle_that_was_under_way_for_too_long_writes_nothing<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut a = t.caller(&t.key());
    a.granted().await?;
    let before = t.record(&a.key).await?;
    for outcome in outcomes() {
        let late = Settle {
            not_after: t.heard(),
            ..a.settlement(outcome)
        };
        t.until_past(late.not_after).await?;
        assert_eq!(t.settle(&a.key, &late).await?, SettleReply::Late);
        let nowhere = t.key();
        assert_eq!(t.settle(&nowhere, &late).await?, SettleReply::Late);
        assert_eq!(t.status(&nowhere).await?, None);
    }
    assert_eq!(t.record(&a.key).await?, before);
    Ok(())
}
