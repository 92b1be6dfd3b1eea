//! Broken protocols: each is found out, by the law that it breaks.

use std::collections::BTreeSet;

use idem_model::{Law, Mutant, Plan};
use stateright::HasDiscoveries;

use crate::explore;
use crate::real::{RERUN_MARKS, STEPS, copied, doubted, short_lived, taken_over};

/// One send of each operation, which may be copied.
const fn of(attempts: usize, base: Plan) -> Plan {
    Plan {
        attempts,
        sends: 1,
        release: false,
        horizon: 2,
        ..base
    }
}

/// `law` falls; its counterexample is told.
fn falls(mutant: Mutant, law: Law, plan: Plan) {
    falls_within(None, mutant, law, plan);
}

fn falls_within(steps: Option<usize>, mutant: Mutant, law: Law, plan: Plan) {
    let plan = Plan { mutant, ..plan };
    let finish_when = HasDiscoveries::AnyOf(BTreeSet::from([law.name()]));
    let (fallen, worlds) = explore(plan, 1, steps, finish_when);
    let found = fallen.iter().find(|(name, _)| *name == law.name());
    assert!(
        found.is_some(),
        "{mutant:?} keeps {} in {worlds} worlds, but breaks {fallen:?}",
        law.name()
    );
    let how = found.map_or("", |(_, how)| how.lines().next().unwrap_or_default());
    println!(
        "{mutant:?}: {} falls after {worlds} worlds: {how}",
        law.name()
    );
}

macro_rules! falls {
    ($($name:ident: $mutant:ident breaks $law:ident in $plan:expr;)*) => {
        $(#[test]
        fn $name() {
            falls(Mutant::$mutant, Law::$law, $plan);
        })*
    };
}

falls! {
    an_owner_that_is_not_compared: OwnerNotCompared breaks One in of(3, Plan::HOLD);
    a_checkpoint_that_is_not_compared: CheckpointNotCompared breaks One in of(2, Plan::MARKS);
    an_own_reply_that_is_not_recognised: OwnReplyNotRecognised breaks Nine in of(1, Plan::HOLD);
    a_takeover_flag_that_a_resend_loses: TakeoverFlagLostOnResend breaks Nine in of(2, Plan::RERUN);
    a_deadline_that_is_ignored: NotAfterIgnored breaks Ten in Plan { horizon: 5, ..of(1, Plan::HOLD) };
    a_closed_claim_that_is_accepted: ClosedClaimAccepted breaks Nine in of(1, Plan::HOLD);
    a_recover_that_is_asked_before_the_claim: RecoverBeforeTheClaim breaks Five in of(3, Plan::RECOVER);
    a_give_up_that_drops_a_doubt: GiveUpDropsTheDoubt breaks Five in Plan { copies: false, ..of(3, Plan::RECOVER) };
    an_adoption_at_any_age: AdoptedAtAnyAge breaks Two in Plan { copies: false, ..short_lived(of(2, Plan::RERUN)) };
    a_forget_that_is_not_compared: ForgetNotCompared breaks Nine in Plan { words: 1, copies: false, ..of(1, Plan::HOLD) };
    a_resolve_that_is_not_compared: ResolveNotCompared breaks Nine in Plan { words: 1, copies: false, ..of(2, Plan::MARKS) };
    a_mark_that_is_shorter_than_the_call_limit: MarkShorterThanTheLimit breaks Nine in Plan { release: true, ..of(1, Plan::HOLD) };
    a_lease_that_is_the_ttl: LeaseAsTtl breaks Five in Plan { horizon: 3, copies: false, ..of(2, Plan::HOLD) };
    a_record_that_is_deleted_on_error: DeletedOnError breaks Two in of(2, Plan::HOLD);
    a_live_lease_that_is_taken: LiveLeaseTaken breaks One in of(2, Plan::MARKS);
    a_lease_that_lasts_until_expiry: LeaseUntilExpiry breaks Four in Plan { horizon: 3, ..of(1, Plan::MARKS) };
    a_fence_that_begins_again: FenceBeginsAgain breaks Six in of(2, Plan::HOLD);
    a_lease_that_duplicates_prolong: LeaseProlongedByDuplicates breaks Answered in of(1, Plan::HOLD);
    a_supersession_that_says_settled: SupersededIsSettled breaks Three in Plan { copies: false, ..of(2, Plan::RERUN) };
    a_refusal_given_in_doubt: RefusedInDoubt breaks Refusal in Plan { refusals: 1, ..of(1, Plan::HOLD) };
    the_protocol_of_the_textbooks: Textbook breaks Five in Plan { horizon: 3, copies: false, ..of(2, Plan::HOLD) };
}

/// In the very plans that the real verbs are held to in an ordinary check.
#[test]
fn what_is_broken_about_a_doubt_falls_within_the_bounds_of_an_ordinary_check() {
    let (recover, steps) = (Plan::RECOVER, Some(STEPS));
    falls(Mutant::RecoverBeforeTheClaim, Law::Five, copied(recover));
    falls_within(
        steps,
        Mutant::GiveUpDropsTheDoubt,
        Law::Five,
        taken_over(recover),
    );
    falls_within(
        Some(STEPS - 3),
        Mutant::RefusedBehindADoubt,
        Law::Refusal,
        doubted(RERUN_MARKS),
    );
}
