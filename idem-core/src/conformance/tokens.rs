//! One-time tokens: issued, used once, handed back by a body that failed.

use std::time::Duration;

use super::Harness;
use super::caller::{Caller, outcomes, result, success};
use super::trial::{Stop, Trial, Tried};
use crate::fingerprint::Fingerprint;
use crate::record::{
    ClaimReply, Current, Forget, Issue, IssueReply, OperatorReply, Outcome, SettleReply, State,
    Status, StoreTime, Subject,
};
use crate::store::StoreKey;

const TTL: Duration = Duration::from_mins(5);

fn alice() -> Subject {
    Subject::of("alice")
}

/// The answer to an issue for `subject` at `key`, and until when the token is good.
async fn issue<H: Harness>(
    t: &Trial<'_, H>,
    key: &StoreKey,
    subject: Subject,
    ttl: Duration,
) -> Result<IssueReply, Stop> {
    let not_after = t.within(t.long().limit);
    let op = Issue {
        subject,
        ttl,
        not_after,
    };
    match t.issue(key, &op).await? {
        IssueReply::Late => Err(Stop::TooSlow),
        reply => Ok(reply),
    }
}

/// Alice with a token, and until when it is good.
async fn with_token<'t, 'a, H: Harness>(
    t: &'t Trial<'a, H>,
) -> Result<(Caller<'t, 'a, H>, StoreTime), Stop> {
    let key = t.key();
    assert_eq!(issue(t, &key, alice(), TTL).await?, IssueReply::Issued);
    let until = t.heard().after(TTL).ceil_millis();
    let caller = t.caller(&key).with(|claim| claim.token = Some(alice()));
    Ok((caller, until))
}

/// Somebody else who sends Alice's token, and somebody who sends none: in every status they hear
/// the same, and change nothing.
async fn strangers_are_rejected<H: Harness>(t: &Trial<'_, H>, key: &StoreKey) -> Tried {
    let before = t.peek(key).await?;
    for token in [Some(Subject::of("mallory")), None] {
        let mut stranger = t.caller(key).with(|claim| {
            claim.token = token;
            claim.recover = true;
            claim.wait = true;
        });
        assert_eq!(stranger.claim().await?, ClaimReply::TokenRejected);
    }
    assert_eq!(t.peek(key).await?, before);
    Ok(())
}

pub(super) async fn a_token_is_issued_used_once_and_replayed_to_its_subject<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let (mut a, until) = with_token(t).await?;
    let issued = t.record(&a.key).await?;
    assert_eq!(issued.state, State::Issued);
    assert_eq!(issued.expires_at, until);
    strangers_are_rejected(t, &a.key).await?;

    let grant = a.granted().await?;
    let token = grant.token.map(|token| (token.subject, token.until));
    assert_eq!(token, Some((alice(), until)));
    assert_eq!(grant.number, 1);
    assert!(grant.fence > issued.fence);
    strangers_are_rejected(t, &a.key).await?;

    a.settled(success()).await?;
    strangers_are_rejected(t, &a.key).await?;
    let mut again = t.caller(&a.key).with(|claim| claim.token = Some(alice()));
    let result = Some(result());
    assert_eq!(again.claim().await?, ClaimReply::Completed { result });
    Ok(())
}

// N28
pub(super) async fn a_token_claim_of_what_is_no_token_is_rejected<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let nowhere = t.key();
    let mut b = t.caller(&nowhere).with(|claim| claim.token = Some(alice()));
    assert_eq!(b.claim().await?, ClaimReply::TokenRejected);
    assert_eq!(t.status(&nowhere).await?, None);

    for end in outcomes().into_iter().map(Some).chain([None]) {
        let mut a = t.caller(&t.key());
        a.granted().await?;
        if let Some(outcome) = end {
            a.settled(outcome).await?;
        }
        let before = t.peek(&a.key).await?;
        for owner in [a.claim.owner, t.owner()] {
            let mut b = t.caller(&a.key).with(|claim| {
                claim.owner = owner;
                claim.token = Some(alice());
            });
            assert_eq!(b.claim().await?, ClaimReply::TokenRejected);
        }
        assert_eq!(t.peek(&a.key).await?, before);
    }
    Ok(())
}

// N10
pub(super) async fn a_body_that_failed_hands_its_token_back<H: Harness>(t: &Trial<'_, H>) -> Tried {
    for outcome in [Outcome::Failed, Outcome::Release, Outcome::GiveUp] {
        let (a, until) = with_token(t).await?;
        let fingerprint = Some(Fingerprint::from_bytes([1; 16]));
        let mut a = a.with(|claim| claim.fingerprint = fingerprint);
        let old = a.granted().await?;
        a.settled(outcome.clone()).await?;

        let record = t.record(&a.key).await?;
        assert_eq!(record.state, State::Issued, "after {outcome:?}");
        assert_eq!(record.expires_at, until, "its own deadline stays");
        assert_eq!((record.owner, record.fence), (a.claim.owner, old.fence));
        assert_eq!((record.attempt, record.fingerprint), (1, None));
        assert_eq!(a.claim().await?, ClaimReply::Closed);
        a.settled(outcome).await?;
        strangers_are_rejected(t, &a.key).await?;

        // A corrected form passes.
        let mut b = t.caller(&a.key).with(|claim| {
            claim.token = Some(alice());
            claim.fingerprint = Some(Fingerprint::from_bytes([2; 16]));
        });
        let new = b.granted().await?;
        assert_eq!(new.number, 2);
        assert!(new.fence > old.fence);
        let reply = a.settle(success()).await?;
        let current = Current::Processing;
        assert_eq!(reply, SettleReply::Superseded { current });
    }
    Ok(())
}

pub(super) async fn a_late_success_of_a_token_that_was_handed_back_is_superseded<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let (mut a, _) = with_token(t).await?;
    a.granted().await?;
    a.settled(Outcome::Failed).await?;
    let before = t.record(&a.key).await?;
    let current = Current::Issued;
    let reply = a.settle(success()).await?;
    assert_eq!(reply, SettleReply::Superseded { current });
    assert_eq!(t.record(&a.key).await?, before);
    Ok(())
}

pub(super) async fn a_stored_error_of_a_token_is_replayed_to_its_subject<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let (mut a, _) = with_token(t).await?;
    a.granted().await?;
    a.settled(Outcome::FailedWith(result())).await?;
    strangers_are_rejected(t, &a.key).await?;
    let mut again = t.caller(&a.key).with(|claim| claim.token = Some(alice()));
    assert_eq!(again.claim().await?, ClaimReply::FailedWith(result()));
    Ok(())
}

pub(super) async fn a_used_and_forgotten_token_is_rejected_also_to_its_owner<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let (mut a, _) = with_token(t).await?;
    a.granted().await?;
    a.settled(Outcome::SuccessForget).await?;
    assert_eq!(t.status(&a.key).await?, None);
    assert_eq!(a.claim().await?, ClaimReply::TokenRejected);
    let mut again = t.caller(&a.key).with(|claim| claim.token = Some(alice()));
    assert_eq!(again.claim().await?, ClaimReply::TokenRejected);
    assert_eq!(issue(t, &a.key, alice(), TTL).await?, IssueReply::Taken);
    Ok(())
}

pub(super) async fn an_expired_token_is_rejected<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let key = t.key();
    issue(t, &key, alice(), t.pace).await?;
    t.until_past(t.heard().after(t.pace).ceil_millis()).await?;
    assert_eq!(t.status(&key).await?, None);
    let mut a = t.caller(&key).with(|claim| claim.token = Some(alice()));
    assert_eq!(a.claim().await?, ClaimReply::TokenRejected);
    Ok(())
}

pub(super) async fn a_token_handed_back_after_its_deadline_is_gone<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let key = t.key();
    issue(t, &key, alice(), t.pace).await?;
    let until = t.heard().after(t.pace).ceil_millis();
    let mut a = t.caller(&key).with(|claim| claim.token = Some(alice()));
    let reply = a.claim().await?;
    t.in_time_for(until)?;
    assert!(matches!(reply, ClaimReply::Claimed(_)), "{reply:?}");
    t.until_past(until).await?;
    a.settled(Outcome::Failed).await?;
    assert_eq!(t.status(&key).await?, None);
    let mut b = t.caller(&key).with(|claim| claim.token = Some(alice()));
    assert_eq!(b.claim().await?, ClaimReply::TokenRejected);
    Ok(())
}

pub(super) async fn an_issue_is_answered_by_what_it_finds<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let (mut a, _) = with_token(t).await?;
    let unused = t.record(&a.key).await?;
    assert_eq!(
        issue(t, &a.key, alice(), TTL * 2).await?,
        IssueReply::Issued
    );
    let other = issue(t, &a.key, Subject::of("mallory"), TTL).await?;
    assert_eq!(other, IssueReply::Taken);
    assert_eq!(t.record(&a.key).await?, unused, "nothing prolongs a token");

    a.granted().await?;
    assert_eq!(issue(t, &a.key, alice(), TTL).await?, IssueReply::Taken);
    a.settled(success()).await?;
    assert_eq!(issue(t, &a.key, alice(), TTL).await?, IssueReply::Taken);

    for outcome in outcomes() {
        let mut plain = t.caller(&t.key());
        plain.granted().await?;
        plain.settled(outcome).await?;
        let before = t.peek(&plain.key).await?;
        let reply = issue(t, &plain.key, alice(), TTL).await?;
        assert_eq!(reply, IssueReply::Taken);
        assert_eq!(t.peek(&plain.key).await?, before);
    }
    Ok(())
}

pub(super) async fn an_issue_that_was_under_way_for_too_long_writes_nothing<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let key = t.key();
    let late = Issue {
        subject: alice(),
        ttl: TTL,
        not_after: t.heard(),
    };
    t.until_past(late.not_after).await?;
    assert_eq!(t.issue(&key, &late).await?, IssueReply::Late);
    assert_eq!(t.status(&key).await?, None);
    Ok(())
}

pub(super) async fn an_operator_takes_a_token_back<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let (mut a, _) = with_token(t).await?;
    let forget = Forget {
        fence: t.record(&a.key).await?.fence,
        status: Status::Issued,
        release: false,
        force: false,
    };
    assert_eq!(t.forget(&a.key, &forget).await?, OperatorReply::Done);
    assert_eq!(a.claim().await?, ClaimReply::TokenRejected);
    assert_eq!(issue(t, &a.key, alice(), TTL).await?, IssueReply::Taken);
    Ok(())
}

pub(super) async fn a_lost_token_record_is_built_again_with_its_token<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let (mut a, _) = with_token(t).await?;
    a.granted().await?;
    let token = t.record(&a.key).await?.token;
    let mut renewed = a.moved_to(&t.key());
    renewed.renew().await?;
    assert_eq!(t.record(&renewed.key).await?.token, token);
    let mut adopted = renewed.moved_to(&t.key());
    assert_eq!(adopted.settle(success()).await?, SettleReply::Adopted);
    assert_eq!(t.record(&adopted.key).await?.token, token);
    strangers_are_rejected(t, &adopted.key).await?;
    Ok(())
}
