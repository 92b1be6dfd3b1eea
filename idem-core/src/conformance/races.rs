//! Many at once, and packets that arrive again, late and in any order.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::Harness;
use super::caller::{Caller, other_result, outcomes, success};
use super::trial::{Stop, Trial, Tried};
use crate::record::{
    Claim, ClaimReply, Current, Forget, OnAbandoned, OperatorReply, Outcome, Settle, SettleReply,
    Slot, Status,
};
use crate::store::{Answered, Store, StoreKey};

const CALLERS: usize = 64;

/// Sends all claims at once, and gives the replies in the order of the claims.
async fn all_at_once<S: Store>(
    store: &Arc<S>,
    key: &StoreKey,
    claims: Vec<Claim>,
) -> Vec<Answered<ClaimReply>> {
    let mut running = JoinSet::new();
    let mut replies: Vec<_> = claims.iter().map(|_| None).collect();
    for (index, claim) in claims.into_iter().enumerate() {
        let (store, key) = (store.clone(), key.clone());
        running.spawn(async move { (index, store.claim(&key, &claim).await) });
    }
    while let Some(done) = running.join_next().await {
        let (index, reply) = done.unwrap_or_else(|error| panic!("a claim panicked: {error}"));
        replies[index] = Some(reply);
    }
    replies.into_iter().flatten().collect()
}

fn claims_of<H: Harness>(
    t: &Trial<'_, H>,
    key: &StoreKey,
    change: impl Fn(&mut Claim),
) -> Vec<Claim> {
    let not_after = t.within(t.long().lease);
    let one = |_| {
        let mut claim = t.caller(key).claim;
        claim.terms.limit = t.long().lease;
        claim.not_after = not_after;
        change(&mut claim);
        claim
    };
    (0..CALLERS).map(one).collect()
}

// Law 1
pub(super) async fn of_many_claims_at_once_one_is_granted<H: Harness>(t: &Trial<'_, H>) -> Tried {
    for wait in [false, true] {
        for _ in 0..10 {
            let key = t.key();
            let claims = claims_of(t, &key, |claim| claim.wait = wait);
            let mut granted = 0;
            for answer in all_at_once(&t.store, &key, claims).await {
                match answer?.reply {
                    ClaimReply::Claimed(_) => granted += 1,
                    ClaimReply::InProgress { .. } => {}
                    other => panic!("a claim heard {other:?}"),
                }
            }
            assert_eq!(granted, 1);
        }
    }
    Ok(())
}

// Laws 1 and 5
pub(super) async fn of_many_takeovers_at_once_one_is_granted<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let ways = [
        (OnAbandoned::Hold, false, false),
        (OnAbandoned::Hold, true, true),
        (OnAbandoned::Rerun, true, false),
    ];
    for (policy, checkpoint, recover) in ways {
        let mut dead = t.caller(&t.key()).with(|claim| {
            claim.policy = policy;
            claim.checkpoint = checkpoint;
        });
        dead.granted().await?;
        dead.settled(Outcome::Abandon).await?;
        let claims = claims_of(t, &dead.key, |claim| {
            claim.policy = policy;
            claim.recover = recover;
        });
        let mut granted = 0;
        for answer in all_at_once(&t.store, &dead.key, claims).await {
            if let ClaimReply::Claimed(grant) = answer?.reply {
                assert!(grant.takeover);
                assert_eq!(grant.doubt, checkpoint);
                granted += 1;
            }
        }
        assert_eq!(granted, 1, "at {policy:?}");
    }
    Ok(())
}

pub(super) async fn copies_of_one_claim_at_once_hear_one_grant<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let key = t.key();
    let owner = t.owner();
    let claims = claims_of(t, &key, |claim| claim.owner = owner);
    let mut grants = Vec::new();
    for answer in all_at_once(&t.store, &key, claims).await {
        grants.push(answer?.reply);
    }
    assert!(matches!(grants[0], ClaimReply::Claimed(_)));
    assert!(grants.iter().all(|grant| *grant == grants[0]), "{grants:?}");
    Ok(())
}

/// An owner that was given up settles its success while others take over: one of the two is told
/// that the other came first.
pub(super) async fn a_success_and_a_takeover_at_once_agree_on_who_came_first<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    for _ in 0..50 {
        let mut a = t
            .caller(&t.key())
            .with(|claim| claim.policy = OnAbandoned::Rerun);
        a.granted().await?;
        a.settled(Outcome::Abandon).await?;
        let settle = a.settlement(success());
        let mut claim = t.caller(&a.key).claim;
        claim.policy = OnAbandoned::Rerun;
        claim.not_after = settle.not_after;

        let (store, key) = (t.store.clone(), a.key.clone());
        let settling = tokio::spawn(async move { store.settle(&key, &settle).await });
        let claimed = t.store.claim(&a.key, &claim).await?.reply;
        let settled = match settling.await {
            Ok(answer) => answer?.reply,
            Err(error) => panic!("a settle panicked: {error}"),
        };
        match (&settled, &claimed) {
            (SettleReply::Settled, ClaimReply::Completed { .. })
            | (SettleReply::Superseded { .. }, ClaimReply::Claimed(_)) => {}
            (SettleReply::Late, _) | (_, ClaimReply::Late) => return Err(Stop::TooSlow),
            other => panic!("they disagree: {other:?}"),
        }
    }
    Ok(())
}

// Law 2, N29
pub(super) async fn no_packet_of_an_earlier_attempt_touches_a_success<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut stale = t.caller(&t.key()).with(|claim| {
        claim.policy = OnAbandoned::Rerun;
        claim.checkpoint = false;
    });
    stale.granted().await?;
    let read = t.record(&stale.key).await?;
    stale.settled(Outcome::Abandon).await?;
    let mut winner = t.caller(&stale.key);
    winner.granted().await?;
    let running = t.record(&stale.key).await?;
    winner
        .settled(Outcome::Success(Some(other_result())))
        .await?;
    let before = t.peek(&stale.key).await?;

    for _ in 0..2 {
        stale.claim().await?;
        stale.renew().await?;
        stale.checkpoint().await?;
        winner.renew().await?;
        winner.checkpoint().await?;
        for outcome in outcomes() {
            stale.settle(outcome.clone()).await?;
            winner.settle(outcome).await?;
        }
        for fence in [read.fence, running.fence] {
            let (status, release, force) = (Status::Processing, false, true);
            let forget = Forget {
                fence,
                status,
                release,
                force,
            };
            assert_eq!(t.forget(&stale.key, &forget).await?, OperatorReply::Changed);
        }
        assert_eq!(t.peek(&stale.key).await?, before);
    }
    Ok(())
}

// N38, law 10
pub(super) async fn a_give_up_that_overtakes_its_claim_is_repeated_until_that_is_late<
    H: Harness,
>(
    t: &Trial<'_, H>,
) -> Tried {
    let mut a = t.caller(&t.key());
    let claim = Claim {
        not_after: t.within(a.claim.terms.limit),
        ..a.claim.clone()
    };
    // Its caller never heard of a grant, so it has nothing to echo.
    let give_up = |a: &Caller<'_, '_, H>| Settle {
        echo: None,
        ..a.settlement(Outcome::GiveUp)
    };
    let too_early = t.settle(&a.key, &give_up(&a)).await?;
    let current = Current::Nothing;
    assert_eq!(too_early, SettleReply::Superseded { current });

    // The claim arrives after all, and the repeated give-up ends it.
    let reply = t.claim(&a.key, &claim).await?;
    t.in_time_for(claim.not_after)?;
    assert!(matches!(reply, ClaimReply::Claimed(_)), "{reply:?}");
    assert_eq!(t.settle(&a.key, &give_up(&a)).await?, SettleReply::Settled);
    assert_eq!(t.claim(&a.key, &claim).await?, ClaimReply::Closed);
    a.key = t.key();

    // Once the store's time is past the claim's limit, no copy of it holds a key.
    let copy = Claim {
        not_after: t.heard(),
        ..claim
    };
    t.until_past(copy.not_after).await?;
    assert_eq!(t.claim(&a.key, &copy).await?, ClaimReply::Late);
    assert_eq!(t.status(&a.key).await?, None);
    Ok(())
}

// Law 9
pub(super) async fn a_whole_life_delivered_twice_is_one_life<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    for outcome in outcomes() {
        let mut a = t.caller(&t.key()).with(|claim| claim.checkpoint = false);
        let grant = a.granted().await?;
        assert_eq!(a.granted().await?, grant);
        let (plain, mark) = (a.renewal(false), a.renewal(true));
        for op in [&plain, &plain, &mark, &mark] {
            t.renew(&a.key, op).await?;
        }
        let settle = a.settlement(outcome.clone());
        t.settle(&a.key, &settle).await?;
        let before = t.peek(&a.key).await?;

        // Everything once more, in the order of sending.
        let claimed = a.claim().await?;
        assert!(!matches!(claimed, ClaimReply::Claimed(_)), "{outcome:?}");
        for op in [&plain, &mark] {
            t.renew(&a.key, op).await?;
        }
        let again = t.settle(&a.key, &settle).await?;
        assert_eq!(again, SettleReply::Settled, "{outcome:?}");
        assert_eq!(t.peek(&a.key).await?, before, "{outcome:?}");
        if outcome == Outcome::GiveUp {
            assert_eq!(before, Slot::Absent);
        }
    }
    Ok(())
}
