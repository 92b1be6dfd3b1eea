//! Laws that hold over any history, not only in single rows.

use proptest::prelude::*;

use super::*;
use crate::record::{
    ClaimReply, Forget, Issue, OperatorReply, Refuse, RenewReply, Reply, Resolve, SettleReply,
    Verdict,
};

/// One operation of a history, before it is known who knows what by then.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent marks of one operation"
)]
struct Move {
    /// Since the move before.
    gap: Duration,
    owner: u8,
    kind: Kind,
    /// Arrives after its time limit.
    late: bool,
    terms: Terms,
    policy: OnAbandoned,
    checkpoint: bool,
    recover: bool,
    token: bool,
    force: bool,
}

#[derive(Debug, Clone)]
enum Kind {
    Claim,
    Renew,
    Settle(Outcome),
    Issue,
    Forget,
    Release,
    Resolve(Verdict),
    Refuse,
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        3 => Just(ok()),
        1 => Just(Outcome::Success(None)),
        1 => Just(Outcome::SuccessForget),
        2 => Just(Outcome::Failed),
        1 => Just(Outcome::FailedWith(paid())),
        1 => Just(Outcome::Release),
        2 => Just(Outcome::Abandon),
        1 => Just(Outcome::GiveUp),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        8 => Just(Kind::Claim),
        3 => Just(Kind::Renew),
        8 => outcome().prop_map(Kind::Settle),
        1 => Just(Kind::Issue),
        1 => Just(Kind::Forget),
        1 => Just(Kind::Release),
        1 => Just(Kind::Resolve(Verdict::NotDone)),
        1 => Just(Kind::Resolve(Verdict::Done(Some(paid())))),
        1 => Just(Kind::Refuse),
    ]
}

fn millis(times: &'static [u64]) -> impl Strategy<Value = Duration> {
    prop::sample::select(times).prop_map(Duration::from_millis)
}

fn terms() -> impl Strategy<Value = Terms> {
    let times = (
        millis(&[1, 20, 80]),
        millis(&[10, 50, 200]),
        millis(&[0, 100, 400]),
        millis(&[1, 10, 40]),
    );
    times.prop_map(|(lease, expire, doubt, limit)| Terms {
        lease,
        expire,
        doubt,
        limit,
    })
}

fn a_move() -> impl Strategy<Value = Move> {
    let flags = (
        any::<bool>(),
        prop::bool::weighted(0.2),
        prop::bool::weighted(0.2),
    );
    let rare = (prop::bool::weighted(0.1), any::<bool>());
    let policy = prop::sample::select(&[HOLD, RERUN][..]);
    let gap = (0_u64..60_000).prop_map(Duration::from_micros);
    (gap, 0_u8..4, kind(), terms(), policy, flags, rare).prop_map(
        |(gap, owner, kind, terms, policy, (checkpoint, recover, token), (late, force))| Move {
            gap,
            owner,
            kind,
            late,
            terms,
            policy,
            checkpoint,
            recover,
            token,
            force,
        },
    )
}

/// What one move did.
struct Event {
    before: Slot,
    op: Op,
    now: StoreTime,
    after: Slot,
    reply: Reply,
}

/// Plays the moves on one key; owners echo what they were told.
fn play(moves: Vec<Move>) -> Vec<Event> {
    let mut now = NOW;
    let mut slot = Slot::Absent;
    let mut known: Vec<Option<Echo>> = vec![None; 4];
    let mut events = Vec::new();
    for step_of in moves {
        now = now.after(step_of.gap);
        let owner = usize::from(step_of.owner);
        let op = step_of.op(&slot, known[owner].as_ref(), now);
        let (after, reply) = step(slot.clone(), &op, now);
        match &reply {
            Reply::Claim(ClaimReply::Claimed(grant)) => {
                known[owner] = Some(Echo {
                    answered: now,
                    grant: *grant,
                    checkpoint: step_of.checkpoint || (step_of.recover && grant.doubt),
                    policy: step_of.policy,
                    fingerprint: None,
                });
            }
            Reply::Renew(RenewReply::Renewed { .. }) => {
                if let Some(echo) = &mut known[owner] {
                    echo.answered = now;
                    echo.checkpoint |= step_of.checkpoint;
                }
            }
            _ => {}
        }
        let before = std::mem::replace(&mut slot, after.clone());
        events.push(Event {
            before,
            op,
            now,
            after,
            reply,
        });
    }
    events
}

impl Move {
    fn op(&self, there: &Slot, echo: Option<&Echo>, now: StoreTime) -> Op {
        let owner = super::owner(b'A' + self.owner);
        let (terms, force) = (self.terms, self.force);
        let not_after = if self.late {
            now.before(SECOND)
        } else {
            now.after(terms.limit)
        };
        let (fence, status) = match there {
            Slot::Record(record) => (record.fence, record.state.status()),
            _ => (Fence::default(), None),
        };
        let status = status.unwrap_or(crate::record::Status::Success);
        let subject = alice();
        match &self.kind {
            Kind::Claim => Op::Claim(Claim {
                owner,
                terms,
                fingerprint: None,
                policy: self.policy,
                checkpoint: self.checkpoint,
                token: self.token.then(alice),
                recover: self.recover,
                wait: self.force,
                not_after,
            }),
            Kind::Renew => Op::Renew(Renew {
                owner,
                terms,
                checkpoint: self.checkpoint,
                not_after,
                echo: echo.cloned().unwrap_or_else(|| Echo {
                    checkpoint: false,
                    ..super::echo()
                }),
            }),
            Kind::Settle(outcome) => Op::Settle(Settle {
                owner,
                terms,
                outcome: outcome.clone(),
                not_after,
                echo: echo.cloned(),
            }),
            Kind::Issue => Op::Issue(Issue {
                subject,
                ttl: terms.expire,
                not_after,
            }),
            Kind::Forget | Kind::Release => Op::Forget(Forget {
                fence,
                status,
                release: matches!(self.kind, Kind::Release),
                force,
            }),
            Kind::Resolve(verdict) => Op::Resolve(Resolve {
                fence,
                verdict: verdict.clone(),
                force,
            }),
            Kind::Refuse => Op::Refuse(Refuse {
                expire: terms.expire,
                not_after,
            }),
        }
    }
}

fn histories() -> impl Strategy<Value = Vec<Event>> {
    // Not shrunk as events: proptest shrinks the moves they come from.
    prop::collection::vec(a_move(), 1..60).prop_map(play)
}

impl std::fmt::Debug for Event {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(
            f,
            "{}: {} | {:?} | {} | {}",
            self.now.as_micros(),
            slot_in_words(&self.before),
            self.op,
            reply_in_words(&self.reply),
            slot_in_words(&self.after),
        )
    }
}

fn is_success(slot: &Slot) -> bool {
    matches!(
        slot,
        Slot::Record(Record {
            state: State::Success { .. },
            ..
        })
    )
}

fn expires_at(slot: &Slot) -> Option<StoreTime> {
    match slot {
        Slot::Record(record) => Some(record.expires_at),
        _ => None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 400 }, ..ProptestConfig::default() })]

    /// Law 2: a success goes only with its time, or by an explicit forget.
    #[test]
    fn a_success_is_never_overwritten(history in histories()) {
        for event in &history {
            let before = event.before.clone().live(event.now);
            let is_forget = matches!(&event.op, Op::Forget(op) if !op.release);
            if is_success(&before) && !is_forget {
                prop_assert_eq!(&event.after, &before, "{:?}", event);
            }
        }
    }

    /// Law 6: each attempt has a higher fence than all before.
    #[test]
    fn fences_grow(history in histories()) {
        let mut granted: Vec<(Owner, Fence)> = Vec::new();
        for event in &history {
            if let (Op::Claim(op), Reply::Claim(ClaimReply::Claimed(grant))) = (&event.op, &event.reply) {
                let attempt = (op.owner, grant.fence);
                let is_sent_again = granted.contains(&attempt);
                let is_higher = granted.iter().all(|(_, before)| *before < grant.fence);
                prop_assert!(is_sent_again || is_higher, "{:?}", event);
                granted.push(attempt);
            }
        }
    }

    /// Law 8: every record has an end, and whoever is turned away moves none.
    #[test]
    fn every_record_ends_and_duplicates_prolong_nothing(history in histories()) {
        let longest = Duration::from_millis(401);
        let mut latest = NOW;
        for event in &history {
            latest = latest.max(event.now.after(longest));
            if let Some(end) = expires_at(&event.after) {
                prop_assert!(end <= latest, "{:?}", event);
            }
            let is_turned_away = match &event.reply {
                Reply::Claim(reply) => !matches!(reply, ClaimReply::Claimed(_)),
                Reply::Renew(reply) => !matches!(reply, RenewReply::Renewed { .. }),
                Reply::Settle(reply) => !matches!(reply, SettleReply::Settled | SettleReply::Adopted),
                Reply::Forget(reply) | Reply::Resolve(reply) => *reply == OperatorReply::Changed,
                Reply::Issue(_) | Reply::Refuse(_) => false,
            };
            if is_turned_away {
                let before = expires_at(&event.before.clone().live(event.now));
                let after = expires_at(&event.after.clone().live(event.now));
                prop_assert_eq!(after, before, "{:?}", event);
            }
        }
    }

    /// Law 9: what is delivered again changes nothing.
    #[test]
    fn what_is_delivered_again_changes_nothing(history in histories()) {
        for event in &history {
            let (after, reply) = step(event.after.clone(), &event.op, event.now);
            prop_assert_eq!(&after, &event.after, "{:?}", event);
            let expected = match &event.reply {
                Reply::Renew(RenewReply::Renewed { .. }) => {
                    Reply::Renew(RenewReply::Renewed { rebuilt: false })
                }
                Reply::Settle(SettleReply::Adopted) => Reply::Settle(SettleReply::Settled),
                // An operator's word is about what was read, and that has changed now.
                Reply::Resolve(_) => Reply::Resolve(OperatorReply::Changed),
                reply => reply.clone(),
            };
            prop_assert_eq!(reply, expected, "{:?}", event);
        }
    }
}
