//! Keeping a record: renewals and checkpoints.

use super::Harness;
use super::caller::{Caller, outcomes};
use super::claims::attempt_of;
use super::trial::{Trial, Tried};
use crate::record::{ClaimReply, OnAbandoned, Outcome, Renew, RenewReply, Slot, Status};
use crate::store::{Answer, Store};

const KEPT: RenewReply = RenewReply::Renewed { rebuilt: false };

// E14
pub(super) async fn a_renewal_prolongs_lease_and_retention<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let ways = [
        (OnAbandoned::Hold, true, t.long().doubt),
        (OnAbandoned::Hold, false, t.long().expire),
        (OnAbandoned::Rerun, true, t.long().expire),
    ];
    for (policy, checkpoint, keep) in ways {
        let mut a = t.caller(&t.key()).with(|claim| {
            claim.policy = policy;
            claim.checkpoint = checkpoint;
        });
        let grant = a.granted().await?;
        let before = t.record(&a.key).await?;
        t.until_past(t.heard()).await?;
        assert_eq!(a.renew().await?, KEPT);
        let now = t.heard();

        let record = t.record(&a.key).await?;
        let attempt = attempt_of(&record);
        assert_eq!(attempt.lease_until, now.after(a.claim.terms.lease));
        assert_eq!(record.expires_at, now.after(keep).ceil_millis());
        assert_eq!(attempt.since, grant.since);
        assert_eq!(attempt.checkpoint, checkpoint);
        assert!(record.expires_at > before.expires_at);
    }
    Ok(())
}

pub(super) async fn a_checkpoint_is_set_and_prolongs_lease_and_retention<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut a = t.caller(&t.key()).with(|claim| claim.checkpoint = false);
    a.granted().await?;
    assert!(!attempt_of(&t.record(&a.key).await?).checkpoint);
    for _ in 0..2 {
        assert_eq!(a.checkpoint().await?, KEPT);
        let now = t.heard();
        let record = t.record(&a.key).await?;
        assert!(attempt_of(&record).checkpoint);
        let terms = a.claim.terms;
        assert_eq!(attempt_of(&record).lease_until, now.after(terms.lease));
        assert_eq!(record.expires_at, now.after(terms.doubt).ceil_millis());
    }
    assert_eq!(a.renew().await?, KEPT);
    assert!(attempt_of(&t.record(&a.key).await?).checkpoint);
    Ok(())
}

pub(super) async fn a_lapsed_lease_is_renewed_as_long_as_nobody_took_over<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    for checkpoint in [false, true] {
        let mut a = t.caller(&t.key()).with(|claim| {
            claim.checkpoint = false;
            claim.terms = t.short_lease();
        });
        a.granted().await?;
        a.lapse().await?;
        a.claim.terms = t.long();
        let renewal = a.renewal(checkpoint);
        assert_eq!(t.renew(&a.key, &renewal).await?, KEPT);
        let mut b = t.caller(&a.key);
        let reply = b.claim().await?;
        assert!(matches!(reply, ClaimReply::InProgress { .. }));
    }
    Ok(())
}

/// What a renewal and a checkpoint of `caller` hear and leave alone.
pub(super) async fn is_lost<H: Harness>(t: &Trial<'_, H>, caller: &mut Caller<'_, '_, H>) -> Tried {
    let before = t.peek(&caller.key).await?;
    assert_eq!(caller.renew().await?, RenewReply::Lost);
    assert_eq!(caller.checkpoint().await?, RenewReply::Lost);
    assert_eq!(t.peek(&caller.key).await?, before);
    Ok(())
}

// N30
pub(super) async fn an_ended_attempt_can_not_be_renewed<H: Harness>(t: &Trial<'_, H>) -> Tried {
    for outcome in outcomes() {
        let mut a = t.caller(&t.key());
        a.granted().await?;
        a.settled(outcome).await?;
        is_lost(t, &mut a).await?;
    }
    Ok(())
}

pub(super) async fn nobody_renews_the_record_of_another<H: Harness>(t: &Trial<'_, H>) -> Tried {
    for outcome in outcomes().into_iter().map(Some).chain([None]) {
        let mut a = t.caller(&t.key());
        a.granted().await?;
        if let Some(outcome) = outcome {
            a.settled(outcome).await?;
        }
        // An owner whose own record would be young enough to be built again.
        let mut b = t.caller(&t.key());
        b.granted().await?;
        let mut b = b.moved_to(&a.key);
        is_lost(t, &mut b).await?;
    }
    Ok(())
}

pub(super) async fn a_renewal_that_was_under_way_for_too_long_writes_nothing<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut a = t.caller(&t.key()).with(|claim| claim.checkpoint = false);
    a.granted().await?;
    let before = t.record(&a.key).await?;
    for checkpoint in [false, true] {
        let late = Renew {
            not_after: t.heard(),
            ..a.renewal(checkpoint)
        };
        t.until_past(late.not_after).await?;
        assert_eq!(t.renew(&a.key, &late).await?, RenewReply::Late);
        assert_eq!(t.renew(&t.key(), &late).await?, RenewReply::Late);
    }
    assert_eq!(t.record(&a.key).await?, before);
    Ok(())
}

pub(super) async fn many_renewals_are_answered_in_their_order<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut batch = Vec::new();
    let mut expected = Vec::new();
    for number in 0..40 {
        let mut a = t.caller(&t.key()).with(|claim| claim.checkpoint = false);
        a.granted().await?;
        let is_lost = number % 3 == 1;
        if is_lost {
            a.settled(Outcome::Failed).await?;
        }
        batch.push((a.key.clone(), a.renewal(number % 2 == 0)));
        expected.push(if is_lost { RenewReply::Lost } else { KEPT });
    }
    let mut replies = Vec::new();
    for answer in t.store.renew_all(&batch).await {
        let Answer { now, reply } = answer?;
        replies.push(reply);
        assert!(now >= t.heard());
    }
    assert_eq!(replies, expected);
    for ((key, renewal), reply) in batch.iter().zip(&replies) {
        let status = t.status(key).await?;
        if *reply == KEPT {
            let attempt = attempt_of(&t.record(key).await?);
            assert_eq!(attempt.checkpoint, renewal.checkpoint);
        } else {
            assert_eq!(status, Some(Status::Failed));
        }
    }
    assert!(t.store.renew_all(&[]).await.is_empty());
    Ok(())
}

pub(super) async fn a_renewal_of_nothing_by_nobody_leaves_nothing<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut a = t.caller(&t.key());
    is_lost(t, &mut a).await?;
    assert_eq!(t.peek(&a.key).await?, Slot::Absent);
    Ok(())
}
