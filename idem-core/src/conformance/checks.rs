//! The checks before the table: time limit, foreign bytes, token, payload, copies.

use std::time::Duration;

use super::Harness;
use super::caller::{result, success};
use super::trial::{Trial, Tried};
use crate::fingerprint::Fingerprint;
use crate::record::{
    Claim, ClaimReply, Fence, Forget, Issue, IssueReply, OperatorReply, Outcome, Refuse,
    RefuseReply, RenewReply, SettleReply, Slot, Status, Subject,
};

pub(super) async fn a_claim_that_was_under_way_for_too_long_writes_nothing<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut a = t.caller(&t.key());
    let late = Claim {
        not_after: t.now().await?,
        ..a.claim.clone()
    };
    t.until_past(late.not_after).await?;
    assert_eq!(t.claim(&a.key, &late).await?, ClaimReply::Late);
    assert_eq!(t.status(&a.key).await?, None);

    a.granted().await?;
    let before = t.record(&a.key).await?;
    assert_eq!(t.claim(&a.key, &late).await?, ClaimReply::Late);
    assert_eq!(t.record(&a.key).await?, before);
    Ok(())
}

// N39
pub(super) async fn a_copy_of_a_claim_is_not_granted_after_its_attempt_has_ended<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    for outcome in [Outcome::Failed, Outcome::Release, Outcome::GiveUp] {
        let key = t.key();
        let copy = Claim {
            not_after: t.within(t.long().limit),
            ..t.caller(&key).claim
        };
        t.until_past(t.heard()).await?;
        let mut b = t.caller(&key);
        b.granted().await?;
        b.settled(outcome).await?;
        let before = t.peek(&key).await?;
        assert_eq!(t.claim(&key, &copy).await?, ClaimReply::Late);
        assert_eq!(t.peek(&key).await?, before);
    }
    Ok(())
}

pub(super) async fn a_copy_of_a_claim_still_hears_what_grants_nothing<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let key = t.key();
    let copy = Claim {
        not_after: t.within(t.long().limit),
        ..t.caller(&key).claim
    };
    t.until_past(t.heard()).await?;
    let mut a = t.caller(&key);
    a.granted().await?;
    let reply = t.claim(&key, &copy).await?;
    assert!(matches!(reply, ClaimReply::InProgress { .. }), "{reply:?}");
    a.settled(success()).await?;
    let result = Some(result());
    assert_eq!(
        t.claim(&key, &copy).await?,
        ClaimReply::Completed { result }
    );
    Ok(())
}

// S11
pub(super) async fn another_payload_is_refused_in_every_status<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let one = Fingerprint::from_bytes([1; 16]);
    let two = Fingerprint::from_bytes([2; 16]);
    let ends = [
        None,
        Some(Outcome::Abandon),
        Some(success()),
        Some(Outcome::Failed),
        Some(Outcome::FailedWith(result())),
    ];
    for end in ends {
        let mut a = t
            .caller(&t.key())
            .with(|claim| claim.fingerprint = Some(one));
        a.granted().await?;
        if let Some(outcome) = end.clone() {
            a.settled(outcome).await?;
        }
        let before = t.record(&a.key).await?;
        assert_eq!(before.fingerprint, Some(one));
        for fingerprint in [Some(two), None] {
            let mut b = t.caller(&a.key).with(|claim| {
                claim.fingerprint = fingerprint;
                claim.recover = true;
            });
            assert_eq!(b.claim().await?, ClaimReply::Mismatch, "after {end:?}");
            let mut a = t.caller(&a.key).with(|claim| {
                claim.owner = a.claim.owner;
                claim.fingerprint = fingerprint;
            });
            assert_eq!(a.claim().await?, ClaimReply::Mismatch, "its owner, {end:?}");
        }
        assert_eq!(t.record(&a.key).await?, before);
    }
    Ok(())
}

pub(super) async fn a_record_without_a_fingerprint_matches_any<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut a = t.caller(&t.key());
    a.granted().await?;
    a.settled(Outcome::Failed).await?;
    t.until_past(t.heard()).await?;
    let fingerprint = Some(Fingerprint::from_bytes([1; 16]));
    let mut b = t
        .caller(&a.key)
        .with(|claim| claim.fingerprint = fingerprint);
    b.granted().await?;
    assert_eq!(t.record(&a.key).await?.fingerprint, fingerprint);
    Ok(())
}

/// Late before damaged before the token; the token before the payload; the payload before the
/// owner.
pub(super) async fn checks_come_in_their_order<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let subject = Some(Subject::of("somebody"));
    let key = t.key();
    if t.corrupt(&key).await {
        let mut a = t.caller(&key).with(|claim| claim.token = subject);
        assert_eq!(a.claim().await?, ClaimReply::Damaged);
        let late = Claim {
            not_after: t.heard(),
            ..a.claim.clone()
        };
        t.until_past(late.not_after).await?;
        assert_eq!(t.claim(&key, &late).await?, ClaimReply::Late);
    }

    let fingerprint = Some(Fingerprint::from_bytes([1; 16]));
    let mut a = t
        .caller(&t.key())
        .with(|claim| claim.fingerprint = fingerprint);
    a.granted().await?;
    let mut again = t.caller(&a.key).with(|claim| {
        claim.owner = a.claim.owner;
        claim.token = subject;
    });
    assert_eq!(again.claim().await?, ClaimReply::TokenRejected);
    again.claim.token = None;
    assert_eq!(again.claim().await?, ClaimReply::Mismatch);
    again.claim.fingerprint = fingerprint;
    assert!(matches!(again.claim().await?, ClaimReply::Claimed(_)));
    Ok(())
}

pub(super) async fn foreign_bytes_are_reported_and_kept<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let key = t.key();
    if !t.corrupt(&key).await {
        return Ok(());
    }
    let mut a = t.caller(&key);
    assert_eq!(a.claim().await?, ClaimReply::Damaged);
    assert_eq!(a.renew().await?, RenewReply::Damaged);
    assert_eq!(a.settle(success()).await?, SettleReply::Damaged);
    let not_after = t.within(Duration::from_secs(5));
    let issue = Issue {
        subject: Subject::of("somebody"),
        ttl: Duration::from_mins(1),
        not_after,
    };
    assert_eq!(t.issue(&key, &issue).await?, IssueReply::Damaged);
    let refuse = Refuse {
        expire: Duration::from_mins(1),
        not_after,
    };
    assert_eq!(t.refuse(&key, &refuse).await?, RefuseReply::Damaged);
    assert_eq!(t.peek(&key).await?, Slot::Damaged);

    let forget = |force| Forget {
        fence: Fence::default(),
        status: Status::Damaged,
        release: false,
        force,
    };
    assert_eq!(
        t.forget(&key, &forget(false)).await?,
        OperatorReply::Changed
    );
    assert_eq!(t.peek(&key).await?, Slot::Damaged);
    assert_eq!(t.forget(&key, &forget(true)).await?, OperatorReply::Done);
    assert_eq!(t.peek(&key).await?, Slot::Absent);
    a.granted().await?;
    Ok(())
}
