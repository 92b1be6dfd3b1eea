//! Rows that begin with a settle.

use super::*;

fn sorry() -> Outcome {
    Outcome::FailedWith(Bytes::from_static(b"declined"))
}

/// Every way to end an attempt.
fn all() -> [Outcome; 7] {
    [
        ok(),
        Outcome::SuccessForget,
        Outcome::Failed,
        sorry(),
        Outcome::Release,
        Outcome::Abandon,
        Outcome::GiveUp,
    ]
}

#[test]
fn an_owner_ends_its_attempt_also_after_its_lease() {
    let abandoned = "processing A 1 lapsed checkpoint given-up";
    for from in [live(), lapsed(HOLD, true)] {
        let row = |outcome, to| (from.clone(), settles(A, outcome), "Settled", to);
        check([
            row(ok(), "success A 1 paid"),
            row(Outcome::Success(None), "success A 1"),
            row(Outcome::SuccessForget, "closed A"),
            row(Outcome::Failed, "failed A 1"),
            row(sorry(), "failed A 1 declined"),
            row(Outcome::Release, "closed A"),
            row(Outcome::Abandon, abandoned),
            row(Outcome::GiveUp, "closed A"),
        ]);
    }
    let unmarked = "processing A 1 lapsed given-up";
    check([(
        lapsed(HOLD, false),
        settles(A, Outcome::Abandon),
        "Settled",
        unmarked,
    )]);
}

#[test]
fn what_was_given_up_takes_nothing_but_its_success() {
    let stands = "processing A 1 lapsed checkpoint given-up";
    let row = |outcome, reply, to| (given_up(), settles(A, outcome), reply, to);
    check([
        row(ok(), "Settled", "success A 1 paid"),
        row(Outcome::SuccessForget, "Settled", "closed A"),
        row(Outcome::Failed, "Superseded Processing", stands),
        row(sorry(), "Superseded Processing", stands),
        row(Outcome::Release, "Superseded Processing", stands),
        row(Outcome::Abandon, "Settled", stands),
        row(Outcome::GiveUp, "Settled", stands),
    ]);
}

// N37
#[test]
fn a_takeover_in_doubt_that_is_given_up_stays_in_doubt() {
    let to = "processing A 1 lapsed checkpoint takeover doubt given-up";
    check([(in_doubt(), settles(A, Outcome::GiveUp), "Settled", to)]);

    // One that is in no doubt is free again.
    let clean = processing(Processing {
        takeover: true,
        ..attempt(NOW.after(SECOND * 20), HOLD, true)
    });
    check([(clean, settles(A, Outcome::GiveUp), "Settled", "closed A")]);
}

// N01, E15
#[test]
fn nobody_ends_what_is_not_theirs() {
    for outcome in all() {
        let row = |from, reply, to| (from, settles(B, outcome.clone()), reply, to);
        let stands = "processing A 1 lapsed checkpoint";
        check([
            row(
                live(),
                "Superseded Processing",
                "processing A 1 live checkpoint",
            ),
            row(lapsed(HOLD, true), "Superseded Processing", stands),
            row(success(), "Superseded Success paid", "success A 1 paid"),
            row(failed(), "Superseded Failed", "failed A 1"),
            row(
                failed_with_error(),
                "Superseded Failed",
                "failed A 1 declined",
            ),
            row(issued(), "Superseded Issued", "issued A 1"),
            row(refused(), "Superseded Refused", "refused"),
            row(closed(false), "Superseded Nothing", "closed A"),
            row(closed(true), "Superseded Nothing", "closed A by operator"),
        ]);
    }
}

// Law 9
#[test]
fn a_settle_delivered_again_is_settled_and_another_one_superseded() {
    let other = Outcome::Success(Some(Bytes::from_static(b"paid twice")));
    let other_error = Outcome::FailedWith(Bytes::from_static(b"no money"));
    let succeeded = "success A 1 paid";
    check([
        (success(), settles(A, ok()), "Settled", succeeded),
        (
            success(),
            settles(A, other),
            "Superseded Success paid",
            succeeded,
        ),
        (
            success(),
            settles(A, Outcome::Success(None)),
            "Superseded Success paid",
            succeeded,
        ),
        (
            success(),
            settles(A, Outcome::SuccessForget),
            "Superseded Success paid",
            succeeded,
        ),
        (
            success(),
            settles(A, Outcome::Failed),
            "Superseded Success paid",
            succeeded,
        ),
        (
            success(),
            settles(A, sorry()),
            "Superseded Success paid",
            succeeded,
        ),
        (
            success(),
            settles(A, Outcome::Release),
            "Superseded Success paid",
            succeeded,
        ),
        (
            success(),
            settles(A, Outcome::Abandon),
            "Superseded Success paid",
            succeeded,
        ),
        (
            success(),
            settles(A, Outcome::GiveUp),
            "Superseded Success paid",
            succeeded,
        ),
        (
            failed(),
            settles(A, Outcome::Failed),
            "Settled",
            "failed A 1",
        ),
        (
            failed(),
            settles(A, sorry()),
            "Superseded Failed",
            "failed A 1",
        ),
        (
            failed(),
            settles(A, ok()),
            "Superseded Failed",
            "failed A 1",
        ),
        (
            failed_with_error(),
            settles(A, sorry()),
            "Settled",
            "failed A 1 declined",
        ),
        (
            failed_with_error(),
            settles(A, Outcome::Failed),
            "Superseded Failed",
            "failed A 1 declined",
        ),
        (
            failed_with_error(),
            settles(A, other_error),
            "Superseded Failed",
            "failed A 1 declined",
        ),
    ]);
}

// N29, N41
#[test]
fn an_owner_hears_settled_from_its_own_mark_and_superseded_from_an_operators() {
    for outcome in all() {
        let settle = || settles(A, outcome.clone());
        check([
            (closed(false), settle(), "Settled", "closed A"),
            (
                closed(true),
                settle(),
                "Superseded Nothing",
                "closed A by operator",
            ),
        ]);
    }
}

#[test]
fn a_success_whose_record_is_lost_is_adopted_if_its_owner_was_answered_lately() {
    let answered = |ago| {
        settles_with(A, ok(), |op| {
            let answered = NOW.before(ago);
            op.echo = Some(Echo { answered, ..echo() });
        })
    };
    let never_answered = settles_with(A, ok(), |op| op.echo = None);
    check([
        (
            Slot::Absent,
            settles(A, ok()),
            "Adopted",
            "success A 3 paid",
        ),
        (
            Slot::Absent,
            settles(A, Outcome::Success(None)),
            "Adopted",
            "success A 3",
        ),
        (
            expired(success()),
            settles(A, ok()),
            "Adopted",
            "success A 3 paid",
        ),
        (
            expired(closed(true)),
            settles(A, ok()),
            "Adopted",
            "success A 3 paid",
        ),
        (
            Slot::Absent,
            answered(ALMOST_EXPIRE),
            "Adopted",
            "success A 3 paid",
        ),
        (
            Slot::Absent,
            answered(TERMS.expire),
            "Superseded Nothing",
            "absent",
        ),
        (Slot::Absent, never_answered, "Superseded Nothing", "absent"),
    ]);
    for outcome in all().into_iter().skip(1) {
        check([(
            Slot::Absent,
            settles(A, outcome),
            "Superseded Nothing",
            "absent",
        )]);
    }
}

#[test]
fn a_settle_under_way_for_too_long_is_late_whatever_stands() {
    for outcome in all() {
        let late = || settles_with(A, outcome.clone(), |op| op.not_after = NOW.before(SECOND));
        check([
            (live(), late(), "Late", "processing A 1 live checkpoint"),
            (Slot::Absent, late(), "Late", "absent"),
            (success(), late(), "Late", "success A 1 paid"),
            (Slot::Damaged, late(), "Late", "damaged"),
            (
                Slot::Damaged,
                settles(A, outcome.clone()),
                "Damaged",
                "damaged",
            ),
        ]);
    }
}

/// A claim that replaces a mark keeps that mark's time for its own later one, and only as long as
/// that lasts.
#[test]
fn a_replaced_mark_lends_its_time_to_the_next() {
    let until = NOW.after(SECOND * 300);
    let (claimed, _) = step(closed(true), &claims(B), NOW);
    let (released, _) = step(claimed.clone(), &settles(B, Outcome::Release), NOW);
    assert_eq!(
        but(released, |_| {}),
        but(closed(false), |record| {
            record.owner = B;
            record.fence = Fence::from_u64(NOW.as_micros());
            record.expires_at = until;
        })
    );

    let later = until.after(SECOND);
    let Op::Settle(release) = settles_with(B, Outcome::Release, |op| op.not_after = later) else {
        panic!("a settle is a settle");
    };
    let (released, _) = step(claimed, &Op::Settle(release), later);
    match released {
        Slot::Record(record) => assert_eq!(record.expires_at, later.after(SECOND * 10)),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_record_keeps_the_time_of_the_mark_it_replaced_until_that_has_passed() {
    let kept_after = |from: Slot, outcome: Outcome, until: StoreTime| {
        let from = but(from, |record| record.closed_until = Some(until));
        match step(from, &settles(A, outcome), NOW) {
            (Slot::Record(record), _) => record.closed_until,
            (other, _) => panic!("{other:?}"),
        }
    };
    let hers = || but(live(), |record| record.token = Some(alices()));
    let later = NOW.after(SECOND * 1000);
    assert_eq!(kept_after(live(), ok(), later), Some(later));
    assert_eq!(kept_after(live(), Outcome::Failed, later), Some(later));
    assert_eq!(kept_after(hers(), Outcome::Failed, later), Some(later));
    assert_eq!(kept_after(live(), ok(), NOW), None);
    assert_eq!(kept_after(hers(), Outcome::Release, NOW), None);
}
