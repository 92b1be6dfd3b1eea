//! A function that can find out what an attempt that died has done.

use idem_tests::proxy::{Proxy, Then};
use idem_tests::wait::{need, until};

use crate::death::{Death, assert_final};
use crate::payer::{Call, Payer};
use crate::scene::SOON;

const DOUBTFUL: [(&str, &str); 4] = [
    ("hold:recover", "effect"),
    ("hold:marked:recover", "checkpoint,effect"),
    ("rerun:recover", "effect"),
    ("rerun:marked:recover", "checkpoint,effect"),
];

// E09
#[test]
fn what_was_done_before_the_death_is_settled_without_the_body() {
    for (function, plan) in DOUBTFUL {
        let death = Death::after(function, plan);
        let answer = death.inherit(plan, "done");
        assert_eq!(answer.said(), "recovered", "{function}");
        assert_eq!((death.runs(), death.effects()), (1, 1), "{function}");
        assert_final(&death, &answer);
        assert_eq!(death.scene.ledger.asked(), 1, "{function}");
    }
}

#[test]
fn what_was_not_done_before_the_death_is_done_by_the_body() {
    for (function, plan) in DOUBTFUL {
        let death = Death::after(
            function,
            plan.trim_end_matches("effect").trim_end_matches(','),
        );
        let answer = death.inherit(plan, "not_done");
        assert_eq!(answer.said(), "executed", "{function}");
        assert_eq!((death.runs(), death.effects()), (2, 1), "{function}");
        assert_final(&death, &answer);
        assert_eq!(death.scene.ledger.asked(), 1, "{function}");
    }
}

#[test]
fn nobody_is_asked_about_a_body_that_died_before_its_checkpoint() {
    for function in ["hold:marked:recover", "rerun:marked:recover"] {
        let death = Death::after(function, "-");
        let answer = death.inherit("checkpoint,effect", "unknown");
        assert_eq!(answer.said(), "executed", "{function}");
        assert_eq!((death.runs(), death.effects()), (2, 1), "{function}");
        assert_eq!(death.scene.ledger.asked(), 0, "{function}");
    }
}

#[test]
fn a_recovery_that_does_not_know_leaves_the_question_open() {
    for function in ["hold:recover", "rerun:recover"] {
        let death = Death::after(function, "effect");
        assert_eq!(death.inherit("effect", "unknown").said(), "outcome_unknown");
        // An error of the recovery is no knowledge either.
        let failed = death.heir.call_or_ask(function, "effect", "fail");
        assert_eq!(failed.said(), "outcome_unknown");
        let answer = death.heir.call_or_ask(function, "effect", "done");
        assert_eq!(answer.said(), "recovered", "{function}");
        assert_eq!(
            (death.runs(), death.scene.ledger.asked()),
            (1, 3),
            "{function}"
        );
    }
}

/// Takes over, and stays in the recovery until the gate `look-up` is opened: then it was not done.
fn asks(death: &Death) -> Call {
    death.abandoned();
    let recovery = "say:asked,park:look-up,not_done";
    let call = death.heir.begin_or_ask(death.function, "effect", recovery);
    death.heir.at("asked");
    call
}

#[test]
fn a_death_inside_the_recovery_leaves_the_question_to_the_next() {
    let death = Death::after("hold:recover", "effect");
    asks(&death);
    death.heir.kill();
    let third = death.scene.payer();
    assert_eq!(third.call("hold:recover", "effect").said(), "in_progress");
    let answer = third.insist("hold:recover", "effect", "done");
    assert_eq!(answer.said(), "recovered");
    assert_eq!((death.runs(), death.scene.ledger.asked()), (1, 2));
}

// N26
#[test]
fn of_two_heirs_only_the_holder_asks() {
    let death = Death::after("hold:recover", "-");
    let other = death.scene.payer();
    let call = asks(&death);
    for _ in 0..5 {
        let refused = other.call_or_ask("hold:recover", "effect", "not_done");
        assert_eq!(refused.said(), "in_progress");
    }
    death.heir.open("look-up");
    assert_eq!(death.heir.answer(call).said(), "executed");
    let late = other.call_or_ask("hold:recover", "effect", "not_done");
    assert_eq!(late.said(), "replayed");
    assert_eq!((death.effects(), death.scene.ledger.asked()), (1, 1));
}

// N27
#[test]
fn a_takeover_whose_reply_was_lost_is_still_in_doubt_when_it_is_sent_again() {
    let death = Death::after("hold:recover", "effect");
    death.abandoned();
    let (proxy, heir) = by_proxy(&death);
    proxy.drop_reply_to("EVALSHA", Then::Cut);
    let answer = heir.call_or_ask("hold:recover", "effect", "done");
    assert!(!proxy.is_armed());
    assert_eq!(answer.said(), "recovered");
    assert_eq!((death.runs(), death.scene.ledger.asked()), (1, 1));
}

// N37
#[test]
fn a_takeover_that_was_given_up_before_its_body_leaves_the_doubt_behind() {
    let death = Death::after("hold:recover", "effect");
    death.abandoned();
    let (proxy, heir) = by_proxy(&death);
    proxy.drop_reply_to("EVALSHA", Then::Hang);
    let call = heir.begin_or_ask("hold:recover", "effect", "not_done");
    until("the lost takeover", SOON, || {
        need(!proxy.is_armed(), "armed")
    })
    .unwrap();
    heir.drop(call);
    // The lease of the takeover is ten seconds: only its give-up can be so early.
    let answer = death.inherit("effect", "done");
    assert_eq!(answer.said(), "recovered");
    assert_eq!((death.runs(), death.scene.ledger.asked()), (1, 1));
}

fn by_proxy(death: &Death) -> (Proxy, Payer) {
    let proxy = Proxy::start(death.scene.server.address()).unwrap();
    let heir = death.scene.patient_payer_by(&proxy.url());
    (proxy, heir)
}
