//! Rows that begin with a claim, and the checks before them.

use super::*;

const B_HAS_IT: &str = "processing B 1 live checkpoint";

#[test]
fn a_claim_takes_what_nobody_has() {
    check([
        (Slot::Absent, claims(B), "Claimed 1", B_HAS_IT),
        (expired(live()), claims(B), "Claimed 1", B_HAS_IT),
        (expired(success()), claims(B), "Claimed 1", B_HAS_IT),
        (expired(refused()), claims(B), "Claimed 1", B_HAS_IT),
        (closed(false), claims(B), "Claimed 1", B_HAS_IT),
        (closed(true), claims(B), "Claimed 1", B_HAS_IT),
        (
            failed(),
            claims(B),
            "Claimed 2",
            "processing B 2 live checkpoint",
        ),
        (
            Slot::Absent,
            claims_with(B, |claim| claim.checkpoint = false),
            "Claimed 1",
            "processing B 1 live",
        ),
    ]);
}

#[test]
fn a_slot_says_whether_somebody_waits_for_its_attempt() {
    let waits = |wait| step(live(), &claims_with(B, |claim| claim.wait = wait), NOW).0;
    assert!(waits(true).has_waiters());
    for slot in [waits(false), success(), Slot::Absent, Slot::Damaged] {
        assert!(!slot.has_waiters(), "{slot:?}");
    }
}

#[test]
fn a_claim_hears_what_stands() {
    let unchanged = "processing A 1 live checkpoint";
    let waiting = "processing A 1 live checkpoint waiters";
    check([
        (live(), claims(B), "InProgress 20s", unchanged),
        (
            live(),
            claims_with(B, |claim| claim.recover = true),
            "InProgress 20s",
            unchanged,
        ),
        (
            live(),
            claims_with(B, |claim| claim.wait = true),
            "InProgress 20s",
            waiting,
        ),
        (success(), claims(B), "Completed paid", "success A 1 paid"),
        (success(), claims(A), "Completed paid", "success A 1 paid"),
        (
            failed_with_error(),
            claims(B),
            "FailedWith declined",
            "failed A 1 declined",
        ),
        (refused(), claims(B), "Refused", "refused"),
    ]);
}

#[test]
fn an_abandoned_record_is_taken_over_as_far_as_that_is_safe() {
    let rerun = |claim: &mut Claim| claim.policy = RERUN;
    let recover = |claim: &mut Claim| claim.recover = true;
    let recover_unmarked = |claim: &mut Claim| (claim.recover, claim.checkpoint) = (true, false);
    let unmarked = |claim: &mut Claim| (claim.policy, claim.checkpoint) = (RERUN, false);
    let stands = "processing A 1 lapsed checkpoint";
    let clean = "processing B 2 live checkpoint takeover";
    let doubtful = "processing B 2 live checkpoint takeover doubt";
    check([
        (lapsed(HOLD, false), claims(B), "Claimed 2 takeover", clean),
        (
            lapsed(RERUN, false),
            claims_with(B, rerun),
            "Claimed 2 takeover",
            clean,
        ),
        (
            lapsed(HOLD, false),
            claims_with(B, recover),
            "Claimed 2 takeover",
            clean,
        ),
        (lapsed(HOLD, true), claims(B), "OutcomeUnknown", stands),
        (lapsed(RERUN, true), claims(B), "OutcomeUnknown", stands),
        (
            lapsed(HOLD, true),
            claims_with(B, |claim| claim.wait = true),
            "OutcomeUnknown",
            stands,
        ),
        (
            given_up(),
            claims(B),
            "OutcomeUnknown",
            "processing A 1 lapsed checkpoint given-up",
        ),
        (
            lapsed(RERUN, true),
            claims_with(B, rerun),
            "Claimed 2 takeover doubt",
            doubtful,
        ),
        (
            lapsed(HOLD, true),
            claims_with(B, rerun),
            "Claimed 2 takeover doubt",
            doubtful,
        ),
        (
            lapsed(RERUN, true),
            claims_with(B, unmarked),
            "Claimed 2 takeover doubt",
            "processing B 2 live takeover doubt",
        ),
        (
            lapsed(HOLD, true),
            claims_with(B, recover),
            "Claimed 2 takeover doubt",
            doubtful,
        ),
        (
            lapsed(HOLD, true),
            claims_with(B, recover_unmarked),
            "Claimed 2 takeover doubt",
            doubtful,
        ),
        (
            given_up(),
            claims_with(B, recover),
            "Claimed 2 takeover doubt",
            doubtful,
        ),
    ]);
}

#[test]
fn who_does_not_wait_leaves_the_mark_of_those_who_do() {
    let awaited = processing(Processing {
        waiters: true,
        ..attempt(NOW.after(SECOND * 20), HOLD, true)
    });
    let to = "processing A 1 live checkpoint waiters";
    check([(awaited, claims(B), "InProgress 20s", to)]);
}

#[test]
fn waiters_of_an_abandoned_attempt_wait_for_its_takeover() {
    let from = processing(Processing {
        waiters: true,
        ..attempt(NOW, HOLD, false)
    });
    let to = "processing B 2 live checkpoint takeover waiters";
    check([(from, claims(B), "Claimed 2 takeover", to)]);
}

// N27
#[test]
fn a_claim_sent_again_hears_its_first_reply() {
    let doubtful = "processing A 1 live takeover doubt";
    check([
        (
            live(),
            claims(A),
            "Claimed 1",
            "processing A 1 live checkpoint",
        ),
        (
            lapsed(HOLD, true),
            claims(A),
            "Claimed 1",
            "processing A 1 live checkpoint",
        ),
        (in_doubt(), claims(A), "Claimed 1 takeover doubt", doubtful),
    ]);
}

#[test]
fn a_claim_of_an_ended_attempt_is_closed() {
    check([
        (
            given_up(),
            claims(A),
            "Closed",
            "processing A 1 lapsed checkpoint given-up",
        ),
        (closed(false), claims(A), "Closed", "closed A"),
        (closed(true), claims(A), "Closed", "closed A by operator"),
        (failed(), claims(A), "Closed", "failed A 1"),
        (
            failed_with_error(),
            claims(A),
            "Closed",
            "failed A 1 declined",
        ),
    ]);
}

#[test]
fn a_claim_under_way_for_too_long_is_late_whatever_stands() {
    let late = |claim: &mut Claim| claim.not_after = NOW.before(Duration::from_micros(1));
    let at_the_last_moment = |claim: &mut Claim| {
        claim.not_after = NOW;
        claim.terms.limit = Duration::ZERO;
    };
    check([
        (Slot::Absent, claims_with(B, late), "Late", "absent"),
        (Slot::Damaged, claims_with(B, late), "Late", "damaged"),
        (success(), claims_with(B, late), "Late", "success A 1 paid"),
        (
            live(),
            claims_with(A, late),
            "Late",
            "processing A 1 live checkpoint",
        ),
        (
            Slot::Absent,
            claims_with(B, at_the_last_moment),
            "Claimed 1",
            B_HAS_IT,
        ),
    ]);
}

// N39
#[test]
fn a_claim_sent_before_the_record_it_would_replace_is_late() {
    // The records are ten seconds old; this was sent twelve seconds ago.
    let copy = |claim: &mut Claim| claim.terms.limit = SECOND * 14;
    let recovering_copy = |claim: &mut Claim| {
        claim.terms.limit = SECOND * 14;
        claim.recover = true;
    };
    // A fence that is ahead of the clock says nothing about when it was drawn.
    let ahead = but(failed(), |record| {
        record.fence = Fence::from_u64(NOW.as_micros() + 1);
    });
    check([
        (failed(), claims_with(B, copy), "Late", "failed A 1"),
        (closed(false), claims_with(B, copy), "Late", "closed A"),
        (
            lapsed(HOLD, false),
            claims_with(B, copy),
            "Late",
            "processing A 1 lapsed",
        ),
        (
            lapsed(HOLD, true),
            claims_with(B, recovering_copy),
            "Late",
            "processing A 1 lapsed checkpoint",
        ),
        (
            success(),
            claims_with(B, copy),
            "Completed paid",
            "success A 1 paid",
        ),
        (
            live(),
            claims_with(B, copy),
            "InProgress 20s",
            "processing A 1 live checkpoint",
        ),
        (
            ahead,
            claims_with(B, copy),
            "Claimed 2",
            "processing B 2 live checkpoint",
        ),
    ]);
}

// S11
#[test]
fn another_payload_is_a_mismatch_in_every_status() {
    let one = |slot| but(slot, |record| record.fingerprint = ONE);
    let two = |claim: &mut Claim| (claim.fingerprint, claim.recover) = (TWO, true);
    check([
        (
            one(live()),
            claims_with(B, two),
            "Mismatch",
            "processing A 1 live checkpoint",
        ),
        (
            one(live()),
            claims_with(A, two),
            "Mismatch",
            "processing A 1 live checkpoint",
        ),
        (
            one(live()),
            claims(B),
            "Mismatch",
            "processing A 1 live checkpoint",
        ),
        (
            one(lapsed(HOLD, true)),
            claims_with(B, two),
            "Mismatch",
            "processing A 1 lapsed checkpoint",
        ),
        (
            one(success()),
            claims_with(B, two),
            "Mismatch",
            "success A 1 paid",
        ),
        (one(failed()), claims_with(B, two), "Mismatch", "failed A 1"),
        (
            one(failed_with_error()),
            claims_with(B, two),
            "Mismatch",
            "failed A 1 declined",
        ),
        (
            success(),
            claims_with(B, two),
            "Completed paid",
            "success A 1 paid",
        ),
        (
            failed(),
            claims_with(B, two),
            "Claimed 2",
            "processing B 2 live checkpoint",
        ),
    ]);
}

#[test]
fn foreign_bytes_are_damaged() {
    let with_token = |claim: &mut Claim| claim.token = Some(alice());
    check([
        (Slot::Damaged, claims(B), "Damaged", "damaged"),
        (
            Slot::Damaged,
            claims_with(B, with_token),
            "Damaged",
            "damaged",
        ),
    ]);
}

#[test]
fn a_grant_draws_the_higher_of_clock_and_last_fence() {
    let fence_after = |from: Slot| match step(from, &claims(B), NOW) {
        (Slot::Record(record), _) => record.fence.as_u64(),
        (other, _) => panic!("{other:?}"),
    };
    let now = NOW.as_micros();
    let with = |fence| but(failed(), |record| record.fence = Fence::from_u64(fence));
    assert_eq!(fence_after(Slot::Absent), now);
    assert_eq!(fence_after(with(5)), now);
    assert_eq!(fence_after(with(now)), now + 1);
    assert_eq!(fence_after(with(now + 9)), now + 10);
    assert_eq!(fence_after(with(u64::MAX)), u64::MAX);
}
