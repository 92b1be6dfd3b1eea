//! One table of outcomes for every store: what is there, what is asked, who asks.

use super::Harness;
use super::caller::{Caller, other_result, outcomes, result};
use super::trial::{Stop, Trial, Tried};
use crate::fingerprint::Fingerprint;
use crate::record::{
    self, Claim, ClaimReply, Current, Issue, IssueReply, OnAbandoned, Outcome, RenewReply,
    SettleReply, Subject,
};

/// What is at the key.
#[derive(Debug, Clone, Copy)]
enum There {
    Absent,
    Live,
    Stale,
    Success,
    Failed,
    Expired,
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
enum Asked {
    Start,
    FinishOk,
    FinishErr,
    Renew,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Granted,
    TakenOver,
    InProgress,
    Completed,
    Closed,
    Settled,
    Adopted,
    Superseded,
    Renewed,
    Rebuilt,
    Lost,
}

/// What is there, what is asked, and what the owner and anybody else are told. Everybody is past
/// the checkpoint, at rerun; "anybody else" is an attempt whose own record was at another key.
#[rustfmt::skip]
const TABLE: [(There, Asked, Told, Told); 24] = [
    (There::Absent,  Asked::Start,     Told::Granted,    Told::Granted),
    (There::Absent,  Asked::FinishOk,  Told::Adopted,    Told::Adopted),
    (There::Absent,  Asked::FinishErr, Told::Superseded, Told::Superseded),
    (There::Absent,  Asked::Renew,     Told::Rebuilt,    Told::Rebuilt),
    (There::Live,    Asked::Start,     Told::Granted,    Told::InProgress),
    (There::Live,    Asked::FinishOk,  Told::Settled,    Told::Superseded),
    (There::Live,    Asked::FinishErr, Told::Settled,    Told::Superseded),
    (There::Live,    Asked::Renew,     Told::Renewed,    Told::Lost),
    (There::Stale,   Asked::Start,     Told::Granted,    Told::TakenOver),
    (There::Stale,   Asked::FinishOk,  Told::Settled,    Told::Superseded),
    (There::Stale,   Asked::FinishErr, Told::Settled,    Told::Superseded),
    (There::Stale,   Asked::Renew,     Told::Renewed,    Told::Lost),
    (There::Success, Asked::Start,     Told::Completed,  Told::Completed),
    (There::Success, Asked::FinishOk,  Told::Settled,    Told::Superseded),
    (There::Success, Asked::FinishErr, Told::Superseded, Told::Superseded),
    (There::Success, Asked::Renew,     Told::Lost,       Told::Lost),
    (There::Failed,  Asked::Start,     Told::Closed,     Told::Granted),
    (There::Failed,  Asked::FinishOk,  Told::Superseded, Told::Superseded),
    (There::Failed,  Asked::FinishErr, Told::Settled,    Told::Superseded),
    (There::Failed,  Asked::Renew,     Told::Lost,       Told::Lost),
    (There::Expired, Asked::Start,     Told::Granted,    Told::Granted),
    (There::Expired, Asked::FinishOk,  Told::Superseded, Told::Adopted),
    (There::Expired, Asked::FinishErr, Told::Superseded, Told::Superseded),
    (There::Expired, Asked::Renew,     Told::Lost,       Told::Rebuilt),
];

/// The owner, with its record brought where the row wants it.
async fn prepared<'t, 'a, H: Harness>(
    t: &'t Trial<'a, H>,
    there: There,
) -> Result<Caller<'t, 'a, H>, Stop> {
    let mut owner = t.caller(&t.key()).with(|claim| {
        claim.policy = OnAbandoned::Rerun;
        match there {
            There::Stale => claim.terms = t.short_lease(),
            There::Expired => claim.terms = t.short(),
            _ => {}
        }
    });
    owner.granted().await?;
    match there {
        There::Absent => owner = owner.moved_to(&t.key()),
        There::Live => {}
        There::Stale => owner.lapse().await?,
        There::Success => owner.settled(Outcome::Success(Some(result()))).await?,
        There::Failed => owner.settled(Outcome::Failed).await?,
        There::Expired => {
            let until = owner.echo.answered.after(t.short().expire);
            t.until_past(until.ceil_millis()).await?;
        }
    }
    Ok(owner)
}

async fn told<H: Harness>(caller: &mut Caller<'_, '_, H>, asked: Asked) -> Result<Told, Stop> {
    let outcome = match asked {
        Asked::Start => {
            return Ok(match caller.claim().await? {
                ClaimReply::Claimed(grant) if grant.takeover => Told::TakenOver,
                ClaimReply::Claimed(_) => Told::Granted,
                ClaimReply::InProgress { .. } => Told::InProgress,
                ClaimReply::Completed { .. } => Told::Completed,
                ClaimReply::Closed => Told::Closed,
                other => panic!("a claim heard {other:?}"),
            });
        }
        Asked::Renew => {
            return Ok(match caller.renew().await? {
                RenewReply::Renewed { rebuilt: true } => Told::Rebuilt,
                RenewReply::Renewed { rebuilt: false } => Told::Renewed,
                RenewReply::Lost => Told::Lost,
                other => panic!("a renewal heard {other:?}"),
            });
        }
        Asked::FinishOk => Outcome::Success(Some(result())),
        Asked::FinishErr => Outcome::Failed,
    };
    Ok(match caller.settle(outcome).await? {
        SettleReply::Settled => Told::Settled,
        SettleReply::Adopted => Told::Adopted,
        SettleReply::Superseded { .. } => Told::Superseded,
        other => panic!("a settle heard {other:?}"),
    })
}

// E11
pub(super) async fn owner_and_stranger_are_told_what_the_table_says<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    for (there, asked, owner_hears, stranger_hears) in TABLE {
        let mut owner = prepared(t, there).await?;
        let heard = told(&mut owner, asked).await?;
        assert_eq!(heard, owner_hears, "the owner: {asked:?} at {there:?}");

        let owner = prepared(t, there).await?;
        let mut stranger = t
            .caller(&t.key())
            .with(|claim| claim.policy = OnAbandoned::Rerun);
        stranger.granted().await?;
        let mut stranger = stranger.moved_to(&owner.key);
        let heard = told(&mut stranger, asked).await?;
        assert_eq!(heard, stranger_hears, "a stranger: {asked:?} at {there:?}");
    }
    Ok(())
}

// E15
pub(super) async fn the_second_owners_result_stays_whatever_the_first_does<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    for outcome in outcomes() {
        let mut first = prepared(t, There::Stale).await?;
        let mut second = t
            .caller(&first.key)
            .with(|claim| claim.policy = OnAbandoned::Rerun);
        second.granted().await?;
        second
            .settled(Outcome::Success(Some(other_result())))
            .await?;
        let before = t.record(&first.key).await?;
        let current = Current::Success {
            result: Some(other_result()),
        };
        let reply = first.settle(outcome).await?;
        assert_eq!(reply, SettleReply::Superseded { current });
        assert_eq!(t.record(&first.key).await?, before);
    }
    Ok(())
}

/// A store that packs options into bits may take one for another, or several for one that is not
/// there: all of them together, on an attempt that lives and on one that was abandoned past its
/// checkpoint.
pub(super) async fn each_option_of_a_claim_counts_for_itself<H: Harness>(
    t: &Trial<'_, H>,
) -> Tried {
    for options in 0..64_u8 {
        let has = |option: u8| options & option != 0;
        let asks = |claim: &mut Claim| {
            claim.fingerprint = has(1).then(|| Fingerprint::from_bytes([1; 16]));
            claim.token = has(2).then(|| Subject::of("alice"));
            claim.checkpoint = has(4);
            if has(8) {
                claim.policy = OnAbandoned::Rerun;
            }
            claim.recover = has(16);
            claim.wait = has(32);
        };
        for is_abandoned in [false, true] {
            let key = t.key();
            if has(2) {
                let issue = Issue {
                    subject: Subject::of("alice"),
                    ttl: t.long().expire,
                    not_after: t.within(t.long().limit),
                };
                assert_eq!(t.issue(&key, &issue).await?, IssueReply::Issued);
            }
            let mut a = t
                .caller(&key)
                .with(asks)
                .with(|claim| claim.checkpoint = true);
            a.granted().await?;
            if is_abandoned {
                a.settled(Outcome::Abandon).await?;
            }
            let slot = t.peek(&key).await?;
            let b = t.caller(&key).with(asks);
            let op = Claim {
                not_after: t.within(b.claim.terms.limit),
                ..b.claim
            };
            let reply = t.claim(&key, &op).await?;
            let (after, expected) = record::claim(slot, &op, t.heard());
            assert_eq!(reply, expected, "to {op:?}");
            assert_eq!(t.peek(&key).await?, after, "after {op:?}");
        }
    }
    Ok(())
}
