//! Rows that begin with forget, resolve or refuse.

use super::*;
use crate::record::{Forget, Refuse, Resolve, Status, Verdict};

fn read() -> Fence {
    record(State::Issued).fence
}

fn forgets(status: Status) -> Op {
    forgets_with(status, |_| {})
}

fn forgets_with(status: Status, change: impl FnOnce(&mut Forget)) -> Op {
    let mut forget = Forget {
        fence: read(),
        status,
        release: false,
        force: false,
    };
    change(&mut forget);
    Op::Forget(forget)
}

fn resolves(verdict: Verdict) -> Op {
    let (fence, force) = (read(), false);
    Op::Resolve(Resolve {
        fence,
        verdict,
        force,
    })
}

fn resolves_by_force(verdict: Verdict) -> Op {
    let (fence, force) = (read(), true);
    Op::Resolve(Resolve {
        fence,
        verdict,
        force,
    })
}

fn done() -> Verdict {
    Verdict::Done(Some(paid()))
}

fn refuses() -> Op {
    Op::Refuse(Refuse {
        expire: SECOND * 600,
        not_after: NOW,
    })
}

/// Before its checkpoint.
fn lapsed_after_a_takeover(policy: OnAbandoned) -> Slot {
    processing(Processing {
        takeover: true,
        ..attempt(NOW, policy, false)
    })
}

#[test]
fn a_record_that_is_as_read_is_forgotten() {
    let ended = "closed A by operator";
    let forced = forgets_with(Status::Processing, |op| op.force = true);
    let released_by_force = forgets_with(Status::Processing, |op| {
        (op.force, op.release) = (true, true);
    });
    check([
        (success(), forgets(Status::Success), "Done", ended),
        (failed(), forgets(Status::Failed), "Done", ended),
        (failed_with_error(), forgets(Status::Failed), "Done", ended),
        (issued(), forgets(Status::Issued), "Done", ended),
        (
            refused(),
            forgets(Status::Refused),
            "Done",
            "closed nobody by operator",
        ),
        (
            lapsed(HOLD, true),
            forgets(Status::Processing),
            "Done",
            ended,
        ),
        (given_up(), forgets(Status::Processing), "Done", ended),
        (live(), forced, "Done", ended),
        (live(), released_by_force, "Done", ended),
        (closed(true), forgets(Status::Success), "Done", ended),
    ]);
}

#[test]
fn a_record_that_is_not_as_read_or_is_alive_is_not_forgotten() {
    let stands = "processing A 1 live checkpoint";
    let other_fence = forgets_with(Status::Success, |op| {
        (op.fence, op.force) = (Fence::from_u64(1), true);
    });
    let release = |status| forgets_with(status, |op| op.release = true);
    let forced = |status| forgets_with(status, |op| op.force = true);
    let released_by_force = forgets_with(Status::Success, |op| {
        (op.force, op.release) = (true, true);
    });
    check([
        (live(), forgets(Status::Processing), "Changed", stands),
        (live(), release(Status::Processing), "Changed", stands),
        (
            success(),
            forced(Status::Processing),
            "Changed",
            "success A 1 paid",
        ),
        (
            success(),
            release(Status::Success),
            "Changed",
            "success A 1 paid",
        ),
        (success(), released_by_force, "Changed", "success A 1 paid"),
        (success(), other_fence, "Changed", "success A 1 paid"),
        (
            closed(false),
            forced(Status::Processing),
            "Changed",
            "closed A",
        ),
        (Slot::Absent, forced(Status::Success), "Changed", "absent"),
        (
            expired(success()),
            forgets(Status::Success),
            "Changed",
            "absent",
        ),
        (
            Slot::Damaged,
            forgets(Status::Damaged),
            "Changed",
            "damaged",
        ),
        (Slot::Damaged, forced(Status::Success), "Changed", "damaged"),
        (Slot::Damaged, forced(Status::Damaged), "Done", "absent"),
    ]);
}

#[test]
fn a_forgotten_record_leaves_a_mark_until_it_would_have_expired() {
    let (after, _) = step(success(), &forgets(Status::Success), NOW);
    assert_eq!(after, closed(true));
}

#[test]
fn an_operator_says_what_an_abandoned_attempt_did() {
    check([
        (
            lapsed(HOLD, true),
            resolves(done()),
            "Done",
            "success A 1 paid",
        ),
        (
            given_up(),
            resolves(Verdict::Done(None)),
            "Done",
            "success A 1",
        ),
        (given_up(), resolves(Verdict::NotDone), "Done", "failed A 1"),
        (
            live(),
            resolves_by_force(Verdict::NotDone),
            "Done",
            "failed A 1",
        ),
        (
            live(),
            resolves_by_force(done()),
            "Done",
            "success A 1 paid",
        ),
    ]);
}

// N40
#[test]
fn an_operators_word_does_nothing_to_what_has_changed() {
    let later = but(lapsed(HOLD, true), |record| {
        record.fence = Fence::from_u64(1);
    });
    check([
        (
            live(),
            resolves(done()),
            "Changed",
            "processing A 1 live checkpoint",
        ),
        (
            later,
            resolves_by_force(Verdict::NotDone),
            "Changed",
            "processing A 1 lapsed checkpoint",
        ),
        (
            success(),
            resolves_by_force(Verdict::NotDone),
            "Changed",
            "success A 1 paid",
        ),
        (failed(), resolves_by_force(done()), "Changed", "failed A 1"),
        (
            closed(false),
            resolves_by_force(done()),
            "Changed",
            "closed A",
        ),
        (
            closed(true),
            resolves_by_force(done()),
            "Changed",
            "closed A by operator",
        ),
        (issued(), resolves_by_force(done()), "Changed", "issued A 1"),
        (refused(), resolves_by_force(done()), "Changed", "refused"),
        (Slot::Absent, resolves_by_force(done()), "Changed", "absent"),
        (
            Slot::Damaged,
            resolves_by_force(done()),
            "Changed",
            "damaged",
        ),
    ]);
}

#[test]
fn what_did_not_happen_is_refused_and_what_may_have_happened_is_not() {
    check([
        (Slot::Absent, refuses(), "Refused", "refused"),
        (failed(), refuses(), "Refused", "refused"),
        (closed(false), refuses(), "Refused", "refused"),
        (closed(true), refuses(), "Refused", "refused"),
        (expired(success()), refuses(), "Refused", "refused"),
        (lapsed(HOLD, false), refuses(), "Refused", "refused"),
        (
            live(),
            refuses(),
            "InProgress 20s",
            "processing A 1 live checkpoint",
        ),
        (
            lapsed(HOLD, true),
            refuses(),
            "OutcomeUnknown",
            "processing A 1 lapsed checkpoint",
        ),
        (
            lapsed_after_a_takeover(HOLD),
            refuses(),
            "Refused",
            "refused",
        ),
        (
            lapsed_after_a_takeover(RERUN),
            refuses(),
            "OutcomeUnknown",
            "processing A 1 lapsed takeover",
        ),
        (success(), refuses(), "Completed paid", "success A 1 paid"),
        (
            failed_with_error(),
            refuses(),
            "FailedWith declined",
            "failed A 1 declined",
        ),
        (issued(), refuses(), "TokenRejected", "issued A 1"),
        (Slot::Damaged, refuses(), "Damaged", "damaged"),
    ]);
}

#[test]
fn a_refusal_that_is_repeated_prolongs_nothing() {
    let (after, _) = step(refused(), &refuses(), NOW);
    assert_eq!(after, refused());
}

#[test]
fn a_refusal_keeps_the_mark_it_replaces() {
    let (after, _) = step(closed(true), &refuses(), NOW);
    let until = but(closed(true), |_| {});
    match (after, until) {
        (Slot::Record(after), Slot::Record(mark)) => {
            assert_eq!(after.closed_until, Some(mark.expires_at));
            assert!(after.fence > mark.fence);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_refusal_under_way_for_too_long_is_late() {
    let late = Op::Refuse(Refuse {
        expire: SECOND,
        not_after: NOW.before(SECOND),
    });
    check([
        (Slot::Absent, late.clone(), "Late", "absent"),
        (Slot::Damaged, late, "Late", "damaged"),
    ]);
}
