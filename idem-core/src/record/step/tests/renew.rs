//! Rows that begin with a renewal or a checkpoint.

use super::*;

#[test]
fn an_owner_keeps_its_record_also_after_its_lease() {
    let unmarked = processing(attempt(NOW.after(SECOND), HOLD, false));
    let marked = "processing A 1 live checkpoint";
    check([
        (live(), renews(A), "Renewed", marked),
        (live(), marks_checkpoint(A), "Renewed", marked),
        (lapsed(HOLD, true), renews(A), "Renewed", marked),
        (
            lapsed(HOLD, false),
            renews(A),
            "Renewed",
            "processing A 1 live",
        ),
        (lapsed(HOLD, false), marks_checkpoint(A), "Renewed", marked),
        (unmarked, marks_checkpoint(A), "Renewed", marked),
        (
            in_doubt(),
            renews(A),
            "Renewed",
            "processing A 1 live takeover doubt",
        ),
    ]);
}

// N30
#[test]
fn an_ended_attempt_and_a_stranger_are_lost() {
    let gone = "processing A 1 lapsed checkpoint given-up";
    for op in [renews, marks_checkpoint] {
        check([
            (given_up(), op(A), "Lost", gone),
            (success(), op(A), "Lost", "success A 1 paid"),
            (failed(), op(A), "Lost", "failed A 1"),
            (failed_with_error(), op(A), "Lost", "failed A 1 declined"),
            (closed(false), op(A), "Lost", "closed A"),
            (closed(true), op(A), "Lost", "closed A by operator"),
            (issued(), op(A), "Lost", "issued A 1"),
            (refused(), op(A), "Lost", "refused"),
            (live(), op(B), "Lost", "processing A 1 live checkpoint"),
            (
                lapsed(HOLD, true),
                op(B),
                "Lost",
                "processing A 1 lapsed checkpoint",
            ),
            (success(), op(B), "Lost", "success A 1 paid"),
            (closed(false), op(B), "Lost", "closed A"),
        ]);
    }
}

#[test]
fn a_lost_record_is_built_again_for_an_owner_past_its_checkpoint_that_was_answered_lately() {
    let rebuilt = "processing A 3 live checkpoint takeover";
    let before_checkpoint = |renew: &mut Renew| renew.echo.checkpoint = false;
    let answered = |ago: Duration| renews_with(A, |renew| renew.echo.answered = NOW.before(ago));
    check([
        (Slot::Absent, renews(A), "Renewed rebuilt", rebuilt),
        (expired(success()), renews(A), "Renewed rebuilt", rebuilt),
        (Slot::Absent, marks_checkpoint(A), "Lost", "absent"),
        (
            Slot::Absent,
            renews_with(A, before_checkpoint),
            "Lost",
            "absent",
        ),
        (
            Slot::Absent,
            answered(ALMOST_EXPIRE),
            "Renewed rebuilt",
            rebuilt,
        ),
        (Slot::Absent, answered(TERMS.expire), "Lost", "absent"),
    ]);
}

#[test]
fn a_record_built_again_is_as_its_owner_knows_it() {
    let Op::Renew(op) = renews_with(A, |renew| {
        renew.echo.fingerprint = ONE;
        renew.echo.grant.token = Some(alices());
        renew.echo.policy = RERUN;
    }) else {
        panic!("a renewal is a renewal");
    };
    let expected = Record {
        owner: A,
        fence: op.echo.grant.fence,
        attempt: 3,
        fingerprint: ONE,
        token: Some(alices()),
        closed_until: None,
        state: State::Processing(Processing {
            since: op.echo.grant.since,
            takeover: true,
            ..attempt(NOW.after(TERMS.lease), RERUN, true)
        }),
        expires_at: NOW.after(TERMS.expire),
    };
    let (after, _) = step(Slot::Absent, &Op::Renew(op), NOW);
    assert_eq!(after, Slot::Record(expected));
}

#[test]
fn a_renewal_under_way_for_too_long_is_late_whatever_stands() {
    let late = |owner| renews_with(owner, |op| op.not_after = NOW.before(SECOND));
    let just_in_time = renews_with(A, |op| op.not_after = NOW);
    check([
        (
            live(),
            just_in_time,
            "Renewed",
            "processing A 1 live checkpoint",
        ),
        (live(), late(A), "Late", "processing A 1 live checkpoint"),
        (live(), late(B), "Late", "processing A 1 live checkpoint"),
        (Slot::Absent, late(A), "Late", "absent"),
        (Slot::Damaged, late(A), "Late", "damaged"),
        (Slot::Damaged, renews(A), "Damaged", "damaged"),
    ]);
}

// E14
#[test]
fn retention_follows_policy_and_checkpoint() {
    let left_after = |from: Slot, op: Op| match step(from, &op, NOW) {
        (Slot::Record(record), _) => record.expires_at.since(NOW),
        (other, _) => panic!("{other:?}"),
    };
    assert_eq!(left_after(live(), renews(A)), TERMS.doubt);
    assert_eq!(left_after(live(), claims(A)), TERMS.doubt);
    assert_eq!(left_after(lapsed(HOLD, false), renews(A)), TERMS.expire);
    assert_eq!(
        left_after(lapsed(HOLD, false), marks_checkpoint(A)),
        TERMS.doubt
    );
    assert_eq!(left_after(lapsed(RERUN, true), renews(A)), TERMS.expire);
    assert_eq!(left_after(live(), settles(A, ok())), TERMS.expire);
    assert_eq!(
        left_after(live(), settles(A, Outcome::Failed)),
        TERMS.expire
    );
    assert_eq!(
        left_after(live(), settles(A, Outcome::Abandon)),
        TERMS.doubt
    );
    assert_eq!(
        left_after(live(), settles(A, Outcome::Release)),
        SECOND * 10
    );
    let slow = settles_with(A, Outcome::Release, |op| op.terms.limit = SECOND * 20);
    assert_eq!(left_after(live(), slow), SECOND * 40);
    let quick = settles_with(A, Outcome::Release, |op| op.terms.lease = SECOND);
    assert_eq!(left_after(live(), quick), TERMS.limit * 2);
    let hardly_doubted = renews_with(A, |op| op.terms.doubt = SECOND);
    assert_eq!(left_after(live(), hardly_doubted), TERMS.expire);
}
