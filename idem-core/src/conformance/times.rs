//! How long things stay, and what numbers do over a key's life.

use std::time::Duration;

use super::Harness;
use super::caller::{outcomes, result, success};
use super::claims::attempt_of;
use super::trial::{Trial, Tried};
use crate::record::{
    ClaimReply, Current, Fence, Forget, Issue, IssueReply, OnAbandoned, OperatorReply, Outcome,
    Refuse, RefuseReply, RenewReply, Resolve, SettleReply, Slot, Status, Subject, Terms, Verdict,
};
use crate::store::StoreKey;

pub(super) async fn a_finished_record_lives_for_expire<H: Harness>(t: &Trial<'_, H>) -> Tried {
    for outcome in [success(), Outcome::Failed, Outcome::FailedWith(result())] {
        let mut a = t.caller(&t.key()).with(|claim| {
            claim.terms.expire = t.pace * 2;
        });
        a.granted().await?;
        a.settled(outcome.clone()).await?;
        let until = t.heard().after(t.pace * 2);

        let seen = t.status(&a.key).await?;
        t.in_time_for(until)?;
        assert!(seen.is_some(), "after {outcome:?}");
        t.until_past(until.ceil_millis()).await?;
        assert_eq!(t.status(&a.key).await?, None, "after {outcome:?}");
        let mut b = t.caller(&a.key);
        assert_eq!(b.granted().await?.number, 1);
    }
    Ok(())
}

// E02
pub(super) async fn an_unknown_outcome_is_held_for_doubt<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let mut a = t.caller(&t.key()).with(|claim| claim.terms = t.short());
    a.granted().await?;
    let granted = t.heard();
    t.until_past(granted.after(t.short().expire)).await?;
    let mut b = t.caller(&a.key).with(|claim| claim.terms = t.short());
    let reply = b.claim().await?;
    t.in_time_for(granted.after(t.short().doubt))?;
    assert_eq!(reply, ClaimReply::OutcomeUnknown);
    t.until_past(granted.after(t.short().doubt).ceil_millis())
        .await?;
    assert_eq!(t.status(&a.key).await?, None);
    Ok(())
}

// E06
pub(super) async fn an_attempt_before_its_checkpoint_or_at_rerun_lives_for_expire<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let ways = [(OnAbandoned::Hold, false), (OnAbandoned::Rerun, true)];
    for (policy, checkpoint) in ways {
        let mut a = t.caller(&t.key()).with(|claim| {
            claim.policy = policy;
            claim.checkpoint = checkpoint;
            claim.terms = t.short();
        });
        a.granted().await?;
        let granted = t.heard();
        let record = t.peek(&a.key).await?;
        t.in_time_for(granted.after(t.short().expire))?;
        assert!(matches!(record, Slot::Record(_)));
        t.until_past(granted.after(t.short().expire).ceil_millis())
            .await?;
        assert_eq!(t.status(&a.key).await?, None);
    }
    Ok(())
}

// E14: a body that runs for longer than its retention
pub(super) async fn an_attempt_that_renews_outlives_its_retention<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut a = t.caller(&t.key()).with(|claim| {
        claim.policy = OnAbandoned::Rerun;
        claim.terms = t.short();
    });
    let grant = a.granted().await?;
    let end = grant.since.after(t.short().expire * 2);
    while t.heard() < end {
        let kept_until = t.heard().after(t.short().expire);
        t.until_past(t.heard().after(t.pace)).await?;
        let reply = a.renew().await?;
        t.in_time_for(kept_until)?;
        assert_eq!(reply, RenewReply::Renewed { rebuilt: false });
    }
    let record = t.record(&a.key).await?;
    assert_eq!(
        (record.fence, attempt_of(&record).since),
        (grant.fence, grant.since)
    );
    Ok(())
}

// Law 8, E13
pub(super) async fn duplicates_prolong_nothing<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let ends = outcomes().into_iter().map(Some).chain([None]);
    for end in ends {
        let mut a = t.caller(&t.key()).with(|claim| claim.wait = true);
        a.granted().await?;
        // The first one that waits leaves its mark; nobody after it does anything.
        t.caller(&a.key)
            .with(|claim| claim.wait = true)
            .claim()
            .await?;
        if let Some(outcome) = end.clone() {
            a.settled(outcome).await?;
        }
        let before = t.peek(&a.key).await?;
        if before == Slot::Absent {
            continue;
        }
        let stays = t.time_to_live(&a.key).await;
        for _ in 0..100 {
            let mut b = t.caller(&a.key).with(|claim| claim.wait = true);
            let reply = b.claim().await?;
            if matches!(reply, ClaimReply::Claimed(_)) {
                break;
            }
            assert_eq!(t.peek(&a.key).await?, before, "after {end:?}");
        }
        if end != Some(Outcome::Failed) {
            assert!(t.time_to_live(&a.key).await <= stays, "after {end:?}");
        }
    }
    Ok(())
}

/// What is at `key` ends by itself, and the server was told the same as the record says.
async fn ends_in_time<H: Harness>(t: &Trial<'_, H>, key: &StoreKey) -> Tried {
    let longest = t.long().doubt + Duration::from_millis(1);
    let left = t.time_to_live(key).await.unwrap_or_default();
    assert!(left <= longest, "{left:?} is left");
    if let Slot::Record(record) = t.peek(key).await? {
        assert!(record.expires_at > t.heard());
        assert!(record.expires_at <= t.heard().after(longest));
        let said = record.expires_at.since(t.heard());
        let left = t.time_to_live(key).await.unwrap_or(said);
        assert!(
            left <= said + Duration::from_millis(2),
            "{left:?}, not {said:?}"
        );
    }
    Ok(())
}

// Law 8, E13
pub(super) async fn no_write_leaves_a_record_without_an_end<H: Harness>(t: &Trial<'_, H>) -> Tried {
    for outcome in outcomes() {
        let mut a = t.caller(&t.key()).with(|claim| claim.checkpoint = false);
        a.granted().await?;
        ends_in_time(t, &a.key).await?;
        a.renew().await?;
        ends_in_time(t, &a.key).await?;
        a.checkpoint().await?;
        ends_in_time(t, &a.key).await?;
        let fence = a.echo.grant.fence;
        a.settled(outcome.clone()).await?;
        ends_in_time(t, &a.key).await?;
        if let Some(status) = t.status(&a.key).await? {
            let (release, force) = (false, false);
            let forget = Forget {
                fence,
                status,
                release,
                force,
            };
            assert_eq!(t.forget(&a.key, &forget).await?, OperatorReply::Done);
            ends_in_time(t, &a.key).await?;
        }
        let mut lost = a.moved_to(&t.key());
        lost.renew().await?;
        ends_in_time(t, &lost.key).await?;
        for verdict in [Verdict::NotDone, Verdict::Done(None)] {
            let force = true;
            let resolve = Resolve {
                fence,
                verdict,
                force,
            };
            t.resolve(&lost.key, &resolve).await?;
            ends_in_time(t, &lost.key).await?;
        }
        let mut adopted = lost.moved_to(&t.key());
        adopted.settle(success()).await?;
        ends_in_time(t, &adopted.key).await?;
    }
    let not_after = t.within(t.long().limit);
    let (key, ttl, subject) = (t.key(), Duration::from_mins(1), Subject::of("alice"));
    t.issue(
        &key,
        &Issue {
            subject,
            ttl,
            not_after,
        },
    )
    .await?;
    ends_in_time(t, &key).await?;
    let (key, expire) = (t.key(), Duration::from_mins(1));
    t.refuse(&key, &Refuse { expire, not_after }).await?;
    ends_in_time(t, &key).await?;
    Ok(())
}

// Law 6
pub(super) async fn fences_grow_whatever_happens_in_between<H: Harness>(t: &Trial<'_, H>) -> Tried {
    let key = t.key();
    let mut last = Fence::default();
    let short_mark = Terms {
        doubt: t.short().expire,
        ..t.short()
    };
    for round in 0..3 {
        for outcome in outcomes() {
            let mut a = t.caller(&key).with(|claim| {
                claim.policy = OnAbandoned::Rerun;
                claim.terms = short_mark;
            });
            let grant = a.granted().await?;
            assert!(grant.fence > last, "round {round}, before {outcome:?}");
            last = grant.fence;
            a.settle(outcome.clone()).await?;
            // What would be replayed is forgotten, so that the next claim is granted.
            let is_replayed = matches!(outcome, Outcome::Success(_) | Outcome::FailedWith(_));
            if let (true, Some(status)) = (is_replayed, t.status(&key).await?) {
                let (fence, release, force) = (grant.fence, false, false);
                let forget = Forget {
                    fence,
                    status,
                    release,
                    force,
                };
                t.forget(&key, &forget).await?;
            }
        }
        // Between the rounds everything is gone, marks too.
        t.until_past(t.heard().after(t.pace * 4).ceil_millis())
            .await?;
        assert_eq!(t.status(&key).await?, None);
    }
    Ok(())
}

/// An expired record counts as absent in every verb, purged or not.
pub(super) async fn an_expired_record_is_absent_to_every_verb<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    for verb in 0..7 {
        let mut a = t.caller(&t.key()).with(|claim| {
            claim.checkpoint = false;
            claim.terms = t.short();
        });
        let fence = a.granted().await?.fence;
        t.until_past(t.heard().after(t.short().expire).ceil_millis())
            .await?;
        let not_after = t.within(t.long().limit);
        let key = &a.key.clone();
        match verb {
            0 => {
                let grant = t.caller(key).granted().await?;
                assert_eq!((grant.number, grant.takeover), (1, false));
            }
            1 => assert_eq!(a.renew().await?, RenewReply::Lost),
            2 => assert_eq!(a.checkpoint().await?, RenewReply::Lost),
            3 => {
                let current = Current::Nothing;
                let reply = a.settle(Outcome::Failed).await?;
                assert_eq!(reply, SettleReply::Superseded { current });
            }
            4 => {
                let (verdict, force) = (Verdict::Done(None), true);
                let resolve = Resolve {
                    fence,
                    verdict,
                    force,
                };
                assert_eq!(t.resolve(key, &resolve).await?, OperatorReply::Changed);
                let (status, release) = (Status::Processing, false);
                let forget = Forget {
                    fence,
                    status,
                    release,
                    force,
                };
                assert_eq!(t.forget(key, &forget).await?, OperatorReply::Changed);
            }
            5 => {
                let (subject, ttl) = (Subject::of("alice"), Duration::from_mins(1));
                let reply = t
                    .issue(
                        key,
                        &Issue {
                            subject,
                            ttl,
                            not_after,
                        },
                    )
                    .await?;
                assert_eq!(reply, IssueReply::Issued);
            }
            _ => {
                let expire = Duration::from_mins(1);
                let reply = t.refuse(key, &Refuse { expire, not_after }).await?;
                assert_eq!(reply, RefuseReply::Refused);
            }
        }
    }
    Ok(())
}

// Law 7
pub(super) async fn every_answer_tells_a_time_that_does_not_go_back<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut a = t.caller(&t.key());
    let mut last = t.now().await?;
    for _ in 0..20 {
        a.claim().await?;
        assert!(t.heard() >= last);
        last = t.heard();
        t.peek(&a.key).await?;
        assert!(t.heard() >= last);
        last = t.now().await?;
    }
    Ok(())
}
