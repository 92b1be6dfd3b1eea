//! What comes from outside an attempt: forget, resolve, refuse.

use super::Harness;
use super::caller::{Caller, outcomes, result, success};
use super::trial::{Stop, Trial, Tried};
use crate::record::{
    ClaimReply, Current, Forget, OperatorReply, Outcome, RenewReply, Resolve, SettleReply, State,
    Status, Terms, Verdict,
};
use crate::store::StoreKey;

/// A forget of what is at `key` now.
pub(super) async fn forget_as_read<H: Harness>(
    t: &Trial<'_, H>,
    key: &StoreKey,
) -> Result<Forget, Stop> {
    let record = t.record(key).await?;
    Ok(Forget {
        fence: record.fence,
        status: record.state.status().unwrap_or(Status::Damaged),
        release: false,
        force: false,
    })
}

/// A resolve of what is at `key` now.
async fn resolve_as_read<H: Harness>(
    t: &Trial<'_, H>,
    key: &StoreKey,
    verdict: Verdict,
) -> Result<Resolve, Stop> {
    Ok(Resolve {
        fence: t.record(key).await?.fence,
        verdict,
        force: false,
    })
}

async fn abandoned<'t, 'a, H: Harness>(t: &'t Trial<'a, H>) -> Result<Caller<'t, 'a, H>, Stop> {
    let mut a = t.caller(&t.key());
    a.granted().await?;
    a.settled(Outcome::Abandon).await?;
    Ok(a)
}

pub(super) async fn an_operator_says_that_it_happened<H: Harness>(t: &Trial<'_, H>) -> Tried {
    for result in [None, Some(result())] {
        let mut a = abandoned(t).await?;
        let done = resolve_as_read(t, &a.key, Verdict::Done(result.clone())).await?;
        assert_eq!(t.resolve(&a.key, &done).await?, OperatorReply::Done);
        let now = t.heard();
        let record = t.record(&a.key).await?;
        let state = State::Success {
            at: now,
            result: result.clone(),
        };
        assert_eq!(record.state, state);
        assert_eq!(
            record.expires_at,
            now.after(a.claim.terms.expire).ceil_millis()
        );
        assert_eq!((record.owner, record.fence), (a.claim.owner, done.fence));

        let mut b = t.caller(&a.key);
        let completed = ClaimReply::Completed {
            result: result.clone(),
        };
        assert_eq!(b.claim().await?, completed);
        a.settled(Outcome::Success(result.clone())).await?;
        let reply = a.settle(Outcome::Failed).await?;
        let current = Current::Success { result };
        assert_eq!(reply, SettleReply::Superseded { current });
    }
    Ok(())
}

pub(super) async fn an_operator_says_that_it_did_not_happen<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let mut a = abandoned(t).await?;
    let not_done = resolve_as_read(t, &a.key, Verdict::NotDone).await?;
    assert_eq!(t.resolve(&a.key, &not_done).await?, OperatorReply::Done);
    assert_eq!(t.status(&a.key).await?, Some(Status::Failed));
    let reply = a.settle(success()).await?;
    let current = Current::Failed;
    assert_eq!(reply, SettleReply::Superseded { current });
    assert_eq!(a.claim().await?, ClaimReply::Closed);

    let mut b = t.caller(&a.key);
    let grant = b.granted().await?;
    assert_eq!(
        (grant.number, grant.takeover, grant.doubt),
        (2, false, false)
    );
    assert!(grant.fence > not_done.fence);
    Ok(())
}

pub(super) async fn a_live_attempt_is_resolved_only_by_force<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    for verdict in [Verdict::NotDone, Verdict::Done(None)] {
        let mut a = t.caller(&t.key());
        a.granted().await?;
        let before = t.record(&a.key).await?;
        let mut resolve = resolve_as_read(t, &a.key, verdict).await?;
        assert_eq!(t.resolve(&a.key, &resolve).await?, OperatorReply::Changed);
        assert_eq!(t.record(&a.key).await?, before);
        resolve.force = true;
        assert_eq!(t.resolve(&a.key, &resolve).await?, OperatorReply::Done);
        assert_eq!(a.renew().await?, RenewReply::Lost);
        assert_eq!(a.checkpoint().await?, RenewReply::Lost);
    }
    Ok(())
}

// N40
pub(super) async fn a_resolve_of_what_has_changed_does_nothing<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut a = abandoned(t).await?;
    let mut stale = resolve_as_read(t, &a.key, Verdict::NotDone).await?;
    stale.force = true;
    a.settled(success()).await?;
    let before = t.record(&a.key).await?;
    assert_eq!(t.resolve(&a.key, &stale).await?, OperatorReply::Changed);
    assert_eq!(t.record(&a.key).await?, before);

    let dead = abandoned(t).await?;
    let mut stale = resolve_as_read(t, &dead.key, Verdict::NotDone).await?;
    stale.force = true;
    let mut b = t.caller(&dead.key).with(|claim| claim.recover = true);
    b.granted().await?;
    let before = t.record(&b.key).await?;
    assert_eq!(t.resolve(&b.key, &stale).await?, OperatorReply::Changed);
    assert_eq!(t.record(&b.key).await?, before);

    let ends = outcomes().into_iter();
    for outcome in ends.filter(|outcome| *outcome != Outcome::Abandon) {
        let mut ended = t.caller(&t.key());
        let fence = ended.granted().await?.fence;
        ended.settled(outcome).await?;
        let before = t.peek(&ended.key).await?;
        let late = Resolve {
            fence,
            ..stale.clone()
        };
        assert_eq!(t.resolve(&ended.key, &late).await?, OperatorReply::Changed);
        assert_eq!(t.peek(&ended.key).await?, before);
    }
    assert_eq!(t.resolve(&t.key(), &stale).await?, OperatorReply::Changed);
    Ok(())
}

pub(super) async fn a_record_is_forgotten_in_every_status<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let seen = outcomes().into_iter().filter(|outcome| {
        !matches!(
            outcome,
            Outcome::Release | Outcome::GiveUp | Outcome::SuccessForget
        )
    });
    for outcome in seen {
        let mut a = t.caller(&t.key());
        a.granted().await?;
        a.settled(outcome.clone()).await?;
        let forget = forget_as_read(t, &a.key).await?;
        assert_eq!(t.forget(&a.key, &forget).await?, OperatorReply::Done);
        assert_eq!(t.status(&a.key).await?, None);
        assert_eq!(
            t.forget(&a.key, &forget).await?,
            OperatorReply::Done,
            "again"
        );

        // Its owner stays out, and hears that it was superseded.
        assert_eq!(a.claim().await?, ClaimReply::Closed);
        assert_eq!(a.renew().await?, RenewReply::Lost);
        for late in outcomes() {
            let current = Current::Nothing;
            assert_eq!(a.settle(late).await?, SettleReply::Superseded { current });
        }
        assert_eq!(t.status(&a.key).await?, None, "after {outcome:?}");

        let mut b = t.caller(&a.key);
        let grant = b.granted().await?;
        assert_eq!((grant.number, grant.takeover), (1, false));
        assert!(grant.fence > forget.fence);
    }
    Ok(())
}

// N41
pub(super) async fn a_live_attempt_is_forgotten_only_by_force_and_is_told<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    for release in [false, true] {
        let mut a = t.caller(&t.key());
        a.granted().await?;
        let before = t.record(&a.key).await?;
        let mut forget = forget_as_read(t, &a.key).await?;
        forget.release = release;
        assert_eq!(t.forget(&a.key, &forget).await?, OperatorReply::Changed);
        assert_eq!(t.record(&a.key).await?, before);
        forget.force = true;
        assert_eq!(t.forget(&a.key, &forget).await?, OperatorReply::Done);

        let current = Current::Nothing;
        let superseded = SettleReply::Superseded { current };
        assert_eq!(a.settle(success()).await?, superseded);
        assert_eq!(t.status(&a.key).await?, None);
        assert_eq!(a.renew().await?, RenewReply::Lost);
    }
    Ok(())
}

pub(super) async fn a_success_is_never_released<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let mut a = t.caller(&t.key());
    a.granted().await?;
    a.settled(success()).await?;
    let before = t.record(&a.key).await?;
    let mut release = forget_as_read(t, &a.key).await?;
    release.release = true;
    for force in [false, true] {
        release.force = force;
        assert_eq!(t.forget(&a.key, &release).await?, OperatorReply::Changed);
    }
    assert_eq!(t.record(&a.key).await?, before);
    Ok(())
}

// N29
pub(super) async fn a_forget_of_what_has_changed_does_nothing<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    // Another status.
    let mut a = abandoned(t).await?;
    let mut stale = forget_as_read(t, &a.key).await?;
    stale.force = true;
    a.settled(success()).await?;
    let before = t.record(&a.key).await?;
    assert_eq!(t.forget(&a.key, &stale).await?, OperatorReply::Changed);
    assert_eq!(t.record(&a.key).await?, before);

    // A later attempt in the same status.
    let mut first = t.caller(&t.key());
    first.granted().await?;
    first.settled(success()).await?;
    let delayed = forget_as_read(t, &first.key).await?;
    assert_eq!(t.forget(&first.key, &delayed).await?, OperatorReply::Done);
    let mut second = t.caller(&first.key);
    second.granted().await?;
    second.settled(success()).await?;
    let before = t.record(&first.key).await?;
    for force in [false, true] {
        let delayed = Forget { force, ..delayed };
        assert_eq!(
            t.forget(&first.key, &delayed).await?,
            OperatorReply::Changed
        );
    }
    assert_eq!(t.record(&first.key).await?, before);

    // Nothing, and the mark of an owner's own release.
    assert_eq!(t.forget(&t.key(), &delayed).await?, OperatorReply::Changed);
    let mut released = t.caller(&t.key());
    let fence = released.granted().await?.fence;
    let forget = forget_as_read(t, &released.key).await?;
    released.settled(Outcome::Release).await?;
    let forget = Forget {
        fence,
        force: true,
        ..forget
    };
    assert_eq!(
        t.forget(&released.key, &forget).await?,
        OperatorReply::Changed
    );
    released.settled(Outcome::Release).await?;
    Ok(())
}

pub(super) async fn a_forgotten_success_is_not_brought_back_for_as_long_as_it_was_kept<
    H: Harness,
>(
    t: &Trial<'_, H>,
) -> Tried {
    let terms = Terms {
        expire: t.pace * 6,
        ..t.short()
    };
    let mut a = t.caller(&t.key()).with(|claim| claim.terms = terms);
    a.granted().await?;
    a.settled(success()).await?;
    let kept_until = t.record(&a.key).await?.expires_at;
    let forget = forget_as_read(t, &a.key).await?;
    let reply = t.forget(&a.key, &forget).await?;
    t.in_time_for(kept_until)?;
    assert_eq!(reply, OperatorReply::Done);

    // Longer than the mark of an owner's own release would have stayed.
    t.until_past(t.heard().after(terms.mark()).ceil_millis())
        .await?;
    a.echo.answered = t.heard();
    let reply = a.settle(success()).await?;
    t.in_time_for(kept_until)?;
    let current = Current::Nothing;
    assert_eq!(reply, SettleReply::Superseded { current });
    Ok(())
}

/// A mark that a claim replaces comes back with its own time when that claim ends.
pub(super) async fn a_replaced_mark_lends_its_time_to_the_next_one<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut a = t.caller(&t.key());
    a.granted().await?;
    a.settled(success()).await?;
    let forget = forget_as_read(t, &a.key).await?;
    t.forget(&a.key, &forget).await?;

    let mut b = t.caller(&a.key).with(|claim| claim.terms = t.short());
    b.granted().await?;
    b.settled(Outcome::Release).await?;
    t.until_past(t.heard().after(t.short().mark()).ceil_millis())
        .await?;
    // Its own mark would have gone by now, and this would be superseded.
    b.settled(Outcome::Release).await?;
    b.echo.answered = t.heard();
    b.settled(success()).await?;
    assert_eq!(t.status(&a.key).await?, None);
    Ok(())
}
