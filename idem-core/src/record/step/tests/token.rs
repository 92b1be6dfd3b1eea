//! Rows about one-time tokens.

use super::*;
use crate::record::Issue;

/// Alice's claim with her token.
fn claims_hers(owner: Owner) -> Op {
    claims_with(owner, |claim| claim.token = Some(alice()))
}

fn issues(subject: Subject) -> Op {
    Op::Issue(Issue {
        subject,
        ttl: SECOND * 60,
        not_after: NOW,
    })
}

fn hers(slot: Slot) -> Slot {
    but(slot, |record| record.token = Some(alices()))
}

#[test]
fn a_token_is_claimed_by_its_subject() {
    let used = "processing B 2 live checkpoint";
    check([
        (issued(), claims_hers(B), "Claimed 2 token", used),
        (
            hers(live()),
            claims_hers(B),
            "InProgress 20s",
            "processing A 1 live checkpoint",
        ),
        (
            hers(success()),
            claims_hers(B),
            "Completed paid",
            "success A 1 paid",
        ),
        (
            hers(failed_with_error()),
            claims_hers(B),
            "FailedWith declined",
            "failed A 1 declined",
        ),
        (issued(), claims_hers(A), "Closed", "issued A 1"),
    ]);
}

// N28
#[test]
fn a_wrong_token_is_rejected_in_every_status() {
    let mallorys = claims_with(B, |claim| {
        claim.token = Some(Subject::of("mallory"));
        claim.fingerprint = TWO;
    });
    let statuses = [
        (issued(), "issued A 1"),
        (hers(live()), "processing A 1 live checkpoint"),
        (hers(lapsed(HOLD, true)), "processing A 1 lapsed checkpoint"),
        (hers(success()), "success A 1 paid"),
        (hers(failed()), "failed A 1"),
        (hers(failed_with_error()), "failed A 1 declined"),
    ];
    for (from, stays) in statuses {
        check([
            (from.clone(), mallorys.clone(), "TokenRejected", stays),
            (from.clone(), claims(B), "TokenRejected", stays),
            (from, claims(A), "TokenRejected", stays),
        ]);
    }
}

#[test]
fn a_token_claim_of_what_is_no_token_is_rejected() {
    check([
        (Slot::Absent, claims_hers(B), "TokenRejected", "absent"),
        (expired(issued()), claims_hers(B), "TokenRejected", "absent"),
        (
            live(),
            claims_hers(B),
            "TokenRejected",
            "processing A 1 live checkpoint",
        ),
        (
            live(),
            claims_hers(A),
            "TokenRejected",
            "processing A 1 live checkpoint",
        ),
        (
            success(),
            claims_hers(B),
            "TokenRejected",
            "success A 1 paid",
        ),
        (failed(), claims_hers(B), "TokenRejected", "failed A 1"),
        (refused(), claims_hers(B), "TokenRejected", "refused"),
        (closed(false), claims_hers(B), "TokenRejected", "closed A"),
        (closed(false), claims_hers(A), "TokenRejected", "closed A"),
        (
            closed(true),
            claims_hers(A),
            "TokenRejected",
            "closed A by operator",
        ),
    ]);
}

// N10
#[test]
fn a_body_that_failed_hands_its_token_back() {
    let late = but(live(), |record| {
        record.token = Some(TokenBinding {
            until: NOW,
            ..alices()
        });
    });
    let declined = Outcome::FailedWith(Bytes::from_static(b"declined"));
    check([
        (
            hers(live()),
            settles(A, Outcome::Failed),
            "Settled",
            "issued A 1",
        ),
        (
            hers(live()),
            settles(A, Outcome::Release),
            "Settled",
            "issued A 1",
        ),
        (
            hers(live()),
            settles(A, Outcome::GiveUp),
            "Settled",
            "issued A 1",
        ),
        (
            hers(live()),
            settles(A, declined),
            "Settled",
            "failed A 1 declined",
        ),
        (
            hers(live()),
            settles(A, Outcome::SuccessForget),
            "Settled",
            "closed A",
        ),
        (
            issued(),
            settles(A, Outcome::Failed),
            "Settled",
            "issued A 1",
        ),
        (
            issued(),
            settles(A, Outcome::Release),
            "Settled",
            "issued A 1",
        ),
        (
            issued(),
            settles(A, Outcome::GiveUp),
            "Settled",
            "issued A 1",
        ),
        (
            issued(),
            settles(A, ok()),
            "Superseded Issued",
            "issued A 1",
        ),
        (
            late.clone(),
            settles(A, Outcome::Failed),
            "Settled",
            "closed A",
        ),
        (late, settles(A, Outcome::Release), "Settled", "closed A"),
        (
            hers(in_doubt()),
            settles(A, Outcome::GiveUp),
            "Settled",
            "processing A 1 lapsed checkpoint takeover doubt given-up",
        ),
    ]);
}

#[test]
fn a_token_handed_back_keeps_its_deadline_and_takes_another_form() {
    let from = but(hers(live()), |record| record.fingerprint = ONE);
    let (after, _) = step(from, &settles(A, Outcome::Failed), NOW);
    let expected = but(issued(), |record| record.expires_at = alices().until);
    assert_eq!(after, expected);
}

#[test]
fn an_issue_is_answered_by_what_it_finds() {
    let late = Op::Issue(Issue {
        subject: alice(),
        ttl: SECOND,
        not_after: NOW.before(SECOND),
    });
    check([
        (Slot::Absent, issues(alice()), "Issued", "issued nobody 0"),
        (
            expired(success()),
            issues(alice()),
            "Issued",
            "issued nobody 0",
        ),
        (issued(), issues(alice()), "Issued", "issued A 1"),
        (
            issued(),
            issues(Subject::of("mallory")),
            "Taken",
            "issued A 1",
        ),
        (
            hers(live()),
            issues(alice()),
            "Taken",
            "processing A 1 live checkpoint",
        ),
        (
            hers(success()),
            issues(alice()),
            "Taken",
            "success A 1 paid",
        ),
        (failed(), issues(alice()), "Taken", "failed A 1"),
        (refused(), issues(alice()), "Taken", "refused"),
        (closed(false), issues(alice()), "Taken", "closed A"),
        (
            closed(true),
            issues(alice()),
            "Taken",
            "closed A by operator",
        ),
        (Slot::Damaged, issues(alice()), "Damaged", "damaged"),
        (Slot::Absent, late.clone(), "Late", "absent"),
        (Slot::Damaged, late, "Late", "damaged"),
    ]);
}
