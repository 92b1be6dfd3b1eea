//! Taking a record: the rows of the table that begin with a claim, and the checks before them.

use bytes::Bytes;

use super::Harness;
use super::caller::{outcomes, result, success};
use super::trial::{Trial, Tried};
use crate::record::{
    ClaimReply, Current, Fence, OnAbandoned, Outcome, Processing, Record, RenewReply, SettleReply,
    State, Status,
};

/// The state of a record that has to be an attempt's.
pub(super) fn attempt_of(record: &Record) -> Processing {
    match record.state {
        State::Processing(attempt) => attempt,
        ref other => panic!("an attempt was expected, not {other:?}"),
    }
}

pub(super) async fn an_absent_key_is_claimed<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let mut a = t.caller(&t.key());
    let grant = a.granted().await?;
    assert_eq!(grant.since, t.heard());
    assert_eq!(grant.fence, Fence::from_u64(grant.since.as_micros()));
    assert_eq!(
        (grant.number, grant.takeover, grant.doubt),
        (1, false, false)
    );
    assert_eq!(grant.token, None);

    let record = t.record(&a.key).await?;
    let attempt = attempt_of(&record);
    assert_eq!((record.owner, record.fence), (a.claim.owner, grant.fence));
    assert_eq!((record.attempt, attempt.since), (1, grant.since));
    assert_eq!(attempt.lease_until, grant.since.after(a.claim.terms.lease));
    assert_eq!(attempt.expire, a.claim.terms.expire);
    assert!(attempt.checkpoint && !attempt.given_up && !attempt.waiters);
    Ok(())
}

pub(super) async fn a_live_attempt_is_in_progress_and_untouched<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut a = t.caller(&t.key());
    let grant = a.granted().await?;
    let before = t.record(&a.key).await?;

    for policy in [OnAbandoned::Hold, OnAbandoned::Rerun] {
        let mut b = t.caller(&a.key).with(|claim| {
            claim.policy = policy;
            claim.recover = true;
        });
        let reply = b.claim().await?;
        let lease_left = attempt_of(&before).lease_until.since(t.heard());
        let since = grant.since;
        assert_eq!(reply, ClaimReply::InProgress { since, lease_left });
    }
    assert_eq!(t.record(&a.key).await?, before);
    Ok(())
}

pub(super) async fn a_claim_that_will_wait_sets_the_waiters_bit_and_nothing_else<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut a = t.caller(&t.key());
    a.granted().await?;
    let mut expected = t.record(&a.key).await?;

    let mut b = t.caller(&a.key).with(|claim| claim.wait = true);
    assert!(matches!(b.claim().await?, ClaimReply::InProgress { .. }));
    if let State::Processing(attempt) = &mut expected.state {
        attempt.waiters = true;
    }
    assert_eq!(t.record(&a.key).await?, expected);
    Ok(())
}

// N27
pub(super) async fn a_claim_sent_again_hears_its_first_reply_again<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let key = t.key();
    let mut first = t.caller(&key).with(|claim| claim.terms = t.short_lease());
    let grant = first.granted().await?;
    assert_eq!(first.granted().await?, grant);
    first.lapse().await?;
    assert_eq!(
        first.granted().await?,
        grant,
        "only a takeover ends ownership"
    );
    first.lapse().await?;

    let mut second = t.caller(&key).with(|claim| {
        claim.terms = t.short_lease();
        claim.policy = OnAbandoned::Rerun;
    });
    let grant = second.granted().await?;
    assert_eq!((grant.takeover, grant.doubt), (true, true));
    assert_eq!(second.granted().await?, grant);
    second.renew().await?;
    assert_eq!(second.granted().await?, grant);
    Ok(())
}

pub(super) async fn a_claim_sent_again_renews_lease_and_retention<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut a = t.caller(&t.key());
    a.granted().await?;
    let before = t.record(&a.key).await?;
    t.until_past(t.heard()).await?;
    a.granted().await?;
    let now = t.heard();

    let after = t.record(&a.key).await?;
    let terms = a.claim.terms;
    assert_eq!(attempt_of(&after).lease_until, now.after(terms.lease));
    assert_eq!(after.expires_at, now.after(terms.doubt).ceil_millis());
    assert!(after.expires_at > before.expires_at);
    Ok(())
}

pub(super) async fn a_claim_of_an_ended_attempt_is_closed<H: Harness>(t: &Trial<'_, H>) -> Tried {
    for outcome in outcomes() {
        let mut a = t.caller(&t.key());
        a.granted().await?;
        a.settled(outcome.clone()).await?;
        let expected = match outcome.clone() {
            Outcome::Success(result) => ClaimReply::Completed { result },
            _ => ClaimReply::Closed,
        };
        assert_eq!(a.claim().await?, expected, "after {outcome:?}");
    }
    Ok(())
}

pub(super) async fn an_attempt_that_died_before_its_checkpoint_is_taken_over<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    for policy in [OnAbandoned::Hold, OnAbandoned::Rerun] {
        let mut dead = t.caller(&t.key()).with(|claim| {
            claim.checkpoint = false;
            claim.policy = policy;
            claim.terms = t.short_lease();
        });
        let old = dead.granted().await?;
        dead.lapse().await?;

        let mut b = t.caller(&dead.key).with(|claim| claim.policy = policy);
        let new = b.granted().await?;
        assert_eq!((new.number, new.takeover, new.doubt), (2, true, false));
        assert!(new.fence > old.fence);

        // Law 1: the old owner is out, and does not disturb the new one.
        let before = t.record(&b.key).await?;
        assert_eq!(dead.checkpoint().await?, RenewReply::Lost);
        assert_eq!(dead.renew().await?, RenewReply::Lost);
        let current = Current::Processing;
        for outcome in outcomes() {
            let superseded = SettleReply::Superseded {
                current: current.clone(),
            };
            assert_eq!(dead.settle(outcome).await?, superseded);
        }
        assert!(matches!(dead.claim().await?, ClaimReply::InProgress { .. }));
        assert_eq!(t.record(&b.key).await?, before);
    }
    Ok(())
}

// E02
pub(super) async fn at_hold_an_attempt_that_died_past_its_checkpoint_stays_unknown<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    for by_claim in [true, false] {
        let mut dead = t.caller(&t.key()).with(|claim| {
            claim.checkpoint = by_claim;
            claim.terms = t.short_lease();
        });
        dead.granted().await?;
        if !by_claim {
            dead.checkpoint().await?;
        }
        dead.lapse().await?;

        let before = t.record(&dead.key).await?;
        for wait in [false, true] {
            let mut b = t.caller(&dead.key).with(|claim| claim.wait = wait);
            assert_eq!(b.claim().await?, ClaimReply::OutcomeUnknown);
        }
        assert_eq!(t.record(&dead.key).await?, before);
        dead.settled(success()).await?;
    }
    Ok(())
}

pub(super) async fn at_rerun_an_attempt_that_died_past_its_checkpoint_is_taken_over_in_doubt<
    H: Harness,
>(
    t: &Trial<'_, H>,
) -> Tried {
    for checkpoint in [true, false] {
        let mut dead = t.caller(&t.key()).with(|claim| {
            claim.policy = OnAbandoned::Rerun;
            claim.terms = t.short_lease();
        });
        let old = dead.granted().await?;
        dead.lapse().await?;

        let mut b = t.caller(&dead.key).with(|claim| {
            claim.policy = OnAbandoned::Rerun;
            claim.checkpoint = checkpoint;
        });
        let new = b.granted().await?;
        assert_eq!((new.number, new.takeover, new.doubt), (2, true, true));
        assert!(new.fence > old.fence);
        let attempt = attempt_of(&t.record(&b.key).await?);
        assert_eq!(attempt.checkpoint, checkpoint);
    }
    Ok(())
}

pub(super) async fn a_claim_that_can_recover_takes_over_and_the_checkpoint_stays_passed<
    H: Harness,
>(
    t: &Trial<'_, H>,
) -> Tried {
    for policy in [OnAbandoned::Hold, OnAbandoned::Rerun] {
        let mut dead = t.caller(&t.key()).with(|claim| {
            claim.policy = policy;
            claim.terms = t.short_lease();
        });
        dead.granted().await?;
        dead.lapse().await?;

        let mut b = t.caller(&dead.key).with(|claim| {
            claim.policy = policy;
            claim.checkpoint = false;
            claim.recover = true;
        });
        let grant = b.granted().await?;
        assert_eq!((grant.takeover, grant.doubt), (true, true));
        let attempt = attempt_of(&t.record(&b.key).await?);
        assert!(attempt.checkpoint, "at {policy:?}");
    }
    Ok(())
}

// S01, E12
pub(super) async fn a_success_is_replayed_byte_for_byte<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let large: Vec<u8> = (0..=u8::MAX).cycle().take(70_000).collect();
    let results = [None, Some(Bytes::new()), Some(result()), Some(large.into())];
    for result in results {
        let mut a = t.caller(&t.key());
        a.granted().await?;
        a.settled(Outcome::Success(result.clone())).await?;
        let before = t.record(&a.key).await?;

        for policy in [OnAbandoned::Hold, OnAbandoned::Rerun] {
            let mut b = t.caller(&a.key).with(|claim| {
                claim.policy = policy;
                claim.recover = true;
                claim.wait = true;
            });
            let result = result.clone();
            assert_eq!(b.claim().await?, ClaimReply::Completed { result });
        }
        assert_eq!(t.record(&a.key).await?, before);
    }
    Ok(())
}

// E07
pub(super) async fn a_failure_is_run_again<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let mut a = t.caller(&t.key());
    let old = a.granted().await?;
    a.settled(Outcome::Failed).await?;
    assert_eq!(t.status(&a.key).await?, Some(Status::Failed));

    let mut b = t.caller(&a.key);
    t.until_past(t.heard()).await?;
    let new = b.granted().await?;
    assert_eq!((new.number, new.takeover, new.doubt), (2, false, false));
    assert!(new.fence > old.fence);
    Ok(())
}

// E18
pub(super) async fn a_stored_error_is_replayed<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let mut a = t.caller(&t.key());
    a.granted().await?;
    a.settled(Outcome::FailedWith(result())).await?;
    let before = t.record(&a.key).await?;
    let mut b = t.caller(&a.key);
    assert_eq!(b.claim().await?, ClaimReply::FailedWith(result()));
    assert_eq!(t.record(&a.key).await?, before);
    Ok(())
}
