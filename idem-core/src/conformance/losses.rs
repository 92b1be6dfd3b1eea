//! Records that the store has lost, and owners who still know of them.

use super::Harness;
use super::caller::{Caller, outcomes, result, success};
use super::renewals::is_lost;
use super::settles::{stored, superseded};
use super::trial::{Stop, Trial, Tried};
use crate::fingerprint::Fingerprint;
use crate::record::{
    Claim, ClaimReply, Current, OnAbandoned, Outcome, Record, RenewReply, Settle, SettleReply,
    State,
};

const REBUILT: RenewReply = RenewReply::Renewed { rebuilt: true };

/// An owner whose attempt ran at one key, as if its record had been lost at another; and that
/// record.
async fn bereft<'t, 'a, H: Harness>(
    t: &'t Trial<'a, H>,
    change: impl FnOnce(&mut Claim),
) -> Result<(Caller<'t, 'a, H>, Record), Stop> {
    let mut a = t.caller(&t.key()).with(change);
    a.granted().await?;
    let record = t.record(&a.key).await?;
    Ok((a.moved_to(&t.key()), record))
}

pub(super) async fn a_success_whose_record_was_lost_is_adopted<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let fingerprint = Some(Fingerprint::from_bytes([7; 16]));
    for result in [None, Some(result())] {
        let (mut a, _) = bereft(t, |claim| claim.fingerprint = fingerprint).await?;
        let outcome = Outcome::Success(result.clone());
        assert_eq!(a.settle(outcome.clone()).await?, SettleReply::Adopted);
        let now = t.heard();
        let record = t.record(&a.key).await?;
        assert_eq!(stored(&record), (result.clone(), now));
        assert_eq!(
            record.expires_at,
            now.after(a.claim.terms.expire).ceil_millis()
        );
        assert_eq!(
            (record.owner, record.fence),
            (a.claim.owner, a.echo.grant.fence)
        );
        assert_eq!((record.attempt, record.fingerprint), (1, fingerprint));

        a.settled(outcome).await?;
        let mut b = t
            .caller(&a.key)
            .with(|claim| claim.fingerprint = fingerprint);
        assert_eq!(b.claim().await?, ClaimReply::Completed { result });
    }
    Ok(())
}

pub(super) async fn nothing_but_a_success_is_adopted<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let (mut a, _) = bereft(t, |_| {}).await?;
    for outcome in outcomes() {
        if !matches!(outcome, Outcome::Success(_)) {
            let reply = a.settle(outcome).await?;
            assert_eq!(reply, superseded(Current::Nothing));
            assert_eq!(t.status(&a.key).await?, None);
        }
    }
    let unanswered = Settle {
        echo: None,
        ..a.settlement(success())
    };
    let reply = t.settle(&a.key, &unanswered).await?;
    assert_eq!(reply, superseded(Current::Nothing));
    assert_eq!(t.status(&a.key).await?, None);
    Ok(())
}

pub(super) async fn an_owner_that_was_not_answered_for_the_retention_is_not_adopted<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let (mut a, _) = bereft(t, |claim| claim.terms = t.short()).await?;
    t.until_past(a.echo.answered.after(t.short().expire))
        .await?;
    assert_eq!(a.settle(success()).await?, superseded(Current::Nothing));
    assert_eq!(t.status(&a.key).await?, None);
    Ok(())
}

// N29
pub(super) async fn nothing_is_adopted_over_a_closed_mark<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let mut a = t.caller(&t.key());
    a.granted().await?;
    a.settled(Outcome::Release).await?;
    let (b, _) = bereft(t, |_| {}).await?;
    let mut b = b.moved_to(&a.key);
    assert_eq!(b.settle(success()).await?, superseded(Current::Nothing));
    assert_eq!(t.status(&a.key).await?, None);
    Ok(())
}

pub(super) async fn a_lost_record_past_its_checkpoint_is_built_again<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let fingerprint = Some(Fingerprint::from_bytes([7; 16]));
    for policy in [OnAbandoned::Hold, OnAbandoned::Rerun] {
        let (mut a, mut expected) = bereft(t, |claim| {
            claim.policy = policy;
            claim.fingerprint = fingerprint;
        })
        .await?;
        assert_eq!(a.renew().await?, REBUILT);
        let now = t.heard();

        if let State::Processing(attempt) = &mut expected.state {
            attempt.lease_until = now.after(a.claim.terms.lease);
        }
        let keep = a.claim.terms.keep(true, policy);
        expected.expires_at = now.after(keep).ceil_millis();
        assert_eq!(t.record(&a.key).await?, expected);
        a.settled(success()).await?;
    }
    Ok(())
}

pub(super) async fn a_lost_record_before_its_checkpoint_stays_lost<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let (mut a, _) = bereft(t, |claim| claim.checkpoint = false).await?;
    is_lost(t, &mut a).await?;
    assert_eq!(t.status(&a.key).await?, None);
    Ok(())
}

pub(super) async fn a_checkpoint_does_not_build_a_lost_record_again<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let (mut a, _) = bereft(t, |_| {}).await?;
    assert_eq!(a.checkpoint().await?, RenewReply::Lost);
    assert_eq!(t.status(&a.key).await?, None);
    Ok(())
}

pub(super) async fn an_owner_that_was_not_answered_for_the_retention_rebuilds_nothing<
    H: Harness,
>(
    t: &Trial<'_, H>,
) -> Tried {
    let (mut a, _) = bereft(t, |claim| claim.terms = t.short()).await?;
    t.until_past(a.echo.answered.after(t.short().expire))
        .await?;
    is_lost(t, &mut a).await?;
    assert_eq!(t.status(&a.key).await?, None);
    Ok(())
}

pub(super) async fn no_lost_record_is_built_over_a_closed_mark<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut a = t.caller(&t.key());
    a.granted().await?;
    a.settled(Outcome::Release).await?;
    let (b, _) = bereft(t, |_| {}).await?;
    let mut b = b.moved_to(&a.key);
    is_lost(t, &mut b).await?;
    assert_eq!(t.status(&a.key).await?, None);
    Ok(())
}
