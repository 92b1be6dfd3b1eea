//! Requests that are refused before they come.

use std::time::Duration;

use super::Harness;
use super::caller::{result, success};
use super::claims::attempt_of;
use super::operators::forget_as_read;
use super::trial::{Stop, Trial, Tried};
use crate::record::{
    ClaimReply, Current, Fence, Forget, OnAbandoned, OperatorReply, Outcome, Refuse, RefuseReply,
    RenewReply, SettleReply, State,
};
use crate::store::StoreKey;

fn refuse_for<H: Harness>(t: &Trial<'_, H>, expire: Duration) -> Refuse {
    Refuse {
        expire,
        not_after: t.within(Duration::from_secs(5)),
    }
}

async fn refuse<H: Harness>(t: &Trial<'_, H>, key: &StoreKey) -> Result<RefuseReply, Stop> {
    match t
        .refuse(key, &refuse_for(t, Duration::from_mins(10)))
        .await?
    {
        RefuseReply::Late => Err(Stop::TooSlow),
        reply => Ok(reply),
    }
}

pub(super) async fn a_refused_key_refuses_every_claim<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let key = t.key();
    assert_eq!(refuse(t, &key).await?, RefuseReply::Refused);
    let before = t.record(&key).await?;
    assert_eq!(before.state, State::Refused);
    let until = t.heard().after(Duration::from_mins(10));
    assert!(before.expires_at <= until.ceil_millis());

    for policy in [OnAbandoned::Hold, OnAbandoned::Rerun] {
        let mut a = t.caller(&key).with(|claim| {
            claim.policy = policy;
            claim.recover = true;
        });
        assert_eq!(a.claim().await?, ClaimReply::Refused);
    }
    t.until_past(t.heard()).await?;
    assert_eq!(refuse(t, &key).await?, RefuseReply::Refused);
    assert_eq!(t.record(&key).await?, before, "a repeat prolongs nothing");
    Ok(())
}

pub(super) async fn a_refusal_ends_with_its_time<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let key = t.key();
    let reply = t.refuse(&key, &refuse_for(t, t.pace)).await?;
    assert_eq!(reply, RefuseReply::Refused);
    t.until_past(t.heard().after(t.pace).ceil_millis()).await?;
    t.caller(&key).granted().await?;
    Ok(())
}

pub(super) async fn what_did_not_happen_is_refused<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let ends = [
        Outcome::Failed,
        Outcome::Release,
        Outcome::GiveUp,
        Outcome::SuccessForget,
    ];
    for outcome in ends {
        let mut a = t.caller(&t.key());
        let old = a.granted().await?;
        a.settled(outcome.clone()).await?;
        assert_eq!(
            refuse(t, &a.key).await?,
            RefuseReply::Refused,
            "{outcome:?}"
        );
        assert!(t.record(&a.key).await?.fence > old.fence);
        assert_eq!(a.claim().await?, ClaimReply::Refused);
        let current = Current::Refused;
        let reply = a.settle(success()).await?;
        assert_eq!(reply, SettleReply::Superseded { current });
    }

    let mut dead = t.caller(&t.key()).with(|claim| claim.checkpoint = false);
    dead.granted().await?;
    dead.settled(Outcome::Abandon).await?;
    assert_eq!(refuse(t, &dead.key).await?, RefuseReply::Refused);
    assert_eq!(dead.checkpoint().await?, RenewReply::Lost);
    Ok(())
}

pub(super) async fn what_may_have_happened_is_not_refused<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let mut a = t.caller(&t.key());
    let since = a.granted().await?.since;
    let before = t.record(&a.key).await?;
    let reply = refuse(t, &a.key).await?;
    let lease_left = attempt_of(&before).lease_until.since(t.heard());
    assert_eq!(reply, RefuseReply::InProgress { since, lease_left });

    a.settled(Outcome::Abandon).await?;
    assert_eq!(refuse(t, &a.key).await?, RefuseReply::OutcomeUnknown);
    a.settled(success()).await?;
    let before = t.record(&a.key).await?;
    let completed = RefuseReply::Completed {
        result: Some(result()),
    };
    assert_eq!(refuse(t, &a.key).await?, completed);
    assert_eq!(t.record(&a.key).await?, before);

    let mut failed = t.caller(&t.key());
    failed.granted().await?;
    failed.settled(Outcome::FailedWith(result())).await?;
    let reply = refuse(t, &failed.key).await?;
    assert_eq!(reply, RefuseReply::FailedWith(result()));
    Ok(())
}

pub(super) async fn a_refusal_that_was_under_way_for_too_long_writes_nothing<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let key = t.key();
    let late = Refuse {
        not_after: t.heard(),
        expire: Duration::from_mins(1),
    };
    t.until_past(late.not_after).await?;
    assert_eq!(t.refuse(&key, &late).await?, RefuseReply::Late);
    assert_eq!(t.status(&key).await?, None);
    Ok(())
}

pub(super) async fn an_operator_forgets_a_refusal<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let key = t.key();
    refuse(t, &key).await?;
    let forget = forget_as_read(t, &key).await?;
    let wrong = Forget {
        fence: Fence::from_u64(forget.fence.as_u64() + 1),
        ..forget
    };
    assert_eq!(t.forget(&key, &wrong).await?, OperatorReply::Changed);
    assert_eq!(t.forget(&key, &forget).await?, OperatorReply::Done);
    t.caller(&key).granted().await?;
    Ok(())
}
