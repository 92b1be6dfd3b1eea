//! A process is killed, or stands still, and another one has its key.

use std::time::{Duration, Instant};

use idem_tests::proxy::{Proxy, Then};

use crate::payer::{Answer, Call, Payer};
use crate::scene::{LEASE, LONG_LEASE, SOON, Scene};

/// What a busy machine may add to a lease.
const SLACK: Duration = Duration::from_secs(2);

/// A key whose owner was killed, and the next who wants it.
pub(crate) struct Death {
    pub(crate) scene: Scene,
    pub(crate) function: &'static str,
    pub(crate) heir: Payer,
    killed: Instant,
}

impl Death {
    /// kill -9 after the body has done what `plan` says. Until the lease ends, the next caller is
    /// told that the key is in use.
    pub(crate) fn after(function: &'static str, plan: &str) -> Self {
        let scene = Scene::new();
        let [owner, heir] = [scene.payer(), scene.payer()];
        owner.begin(function, &format!("{plan},say:here,park:never"));
        owner.at("here");
        owner.kill();
        let killed = Instant::now();
        assert_eq!(heir.call(function, "-").said(), "in_progress");
        Self {
            scene,
            function,
            heir,
            killed,
        }
    }

    /// The first other answer, which comes when the lease has ended and not when the record
    /// expires.
    pub(crate) fn inherit(&self, plan: &str, recovery: &str) -> Answer {
        let answer = self.heir.insist(self.function, plan, recovery);
        let waited = self.killed.elapsed();
        assert!(waited < LEASE + SLACK, "{waited:?} for {answer:?}");
        answer
    }

    /// Waits for the end of the dead owner's lease.
    pub(crate) fn abandoned(&self) {
        self.heir.sees(self.function, "abandoned");
    }

    pub(crate) fn runs(&self) -> usize {
        self.scene.ledger.runs(self.function)
    }

    pub(crate) fn effects(&self) -> usize {
        self.scene.ledger.effects(self.function)
    }
}

/// What a duplicate gets now is what `answer` gave, and no body runs for it.
pub(crate) fn assert_final(death: &Death, answer: &Answer) {
    let runs = death.runs();
    let again = death.heir.call_or_ask(death.function, "effect", "unknown");
    assert_eq!(again.said(), "replayed");
    assert_eq!(again.receipt(), answer.receipt());
    assert_eq!(death.runs(), runs);
    assert_eq!(death.heir.look(death.function), "success");
}

// E01, E02
#[test]
fn a_killed_body_is_held_as_unknown_and_kept_for_longer_than_expire() {
    let death = Death::after("hold", "effect");
    for _ in 0..3 {
        assert_eq!(death.inherit("effect", "-").said(), "outcome_unknown");
    }
    assert_eq!((death.runs(), death.effects()), (1, 1));
    assert!(death.scene.ttl("hold").unwrap() > Duration::from_hours(24));
}

// E01, E06
#[test]
fn a_body_killed_before_its_checkpoint_is_run_again_at_hold() {
    let death = Death::after("hold:marked", "-");
    let answer = death.inherit("checkpoint,effect", "-");
    assert_eq!(answer.said(), "executed");
    assert_eq!((death.runs(), death.effects()), (2, 1));
    assert_final(&death, &answer);
}

// E02
#[test]
fn a_body_killed_after_its_checkpoint_is_held_as_unknown() {
    let death = Death::after("hold:marked", "checkpoint,effect");
    assert_eq!(
        death.inherit("checkpoint,effect", "-").said(),
        "outcome_unknown"
    );
    assert_eq!((death.runs(), death.effects()), (1, 1));
}

// E06
#[test]
fn a_key_kept_for_a_day_is_free_after_the_lease_when_nothing_was_begun() {
    let death = Death::after("day", "-");
    let day = Duration::from_hours(24);
    assert!(death.scene.ttl("day").unwrap() <= day);
    let answer = death.inherit("checkpoint,effect", "-");
    assert_eq!(answer.said(), "executed");
    let kept = death.scene.ttl("day").unwrap();
    assert!(kept + SOON > day && kept <= day, "{kept:?}");
}

// E01
#[test]
fn a_killed_body_is_run_again_at_rerun() {
    let death = Death::after("rerun", "effect");
    let answer = death.inherit("effect", "-");
    assert_eq!(answer.said(), "executed");
    assert_eq!((death.runs(), death.effects()), (2, 2));
    assert_final(&death, &answer);
}

// E01
#[test]
fn a_body_killed_on_either_side_of_its_checkpoint_is_run_again_at_rerun() {
    for before in ["-", "checkpoint"] {
        let death = Death::after("rerun:marked", before);
        let answer = death.inherit("checkpoint,effect", "-");
        assert_eq!(answer.said(), "executed", "killed after {before}");
        assert_eq!((death.runs(), death.effects()), (2, 1));
        assert_final(&death, &answer);
    }
}

// E01
#[test]
fn one_death_after_another_is_inherited() {
    let death = Death::after("rerun", "-");
    death.abandoned();
    death.heir.begin("rerun", "say:alive,park:never");
    death.heir.at("alive");
    death.heir.kill();
    let third = death.scene.payer();
    let answer = third.insist("rerun", "effect", "-");
    assert_eq!(answer.said(), "executed");
    assert_eq!((death.runs(), death.effects()), (3, 1));
}

// E09
#[test]
fn a_process_that_dies_between_its_effect_and_the_settle_leaves_an_unknown_outcome() {
    let scene = Scene::new();
    let [owner, heir] = [scene.payer(), scene.payer()];
    owner.begin("hold", "effect,die");
    owner.ended();
    assert_eq!(heir.insist("hold", "effect", "-").said(), "outcome_unknown");
    assert_eq!(scene.ledger.effects("hold"), 1);
}

// E09
#[test]
fn a_process_that_dies_after_its_settle_was_done_has_finished() {
    let scene = Scene::new();
    let proxy = Proxy::start(scene.server.address()).unwrap();
    let owner = Payer::start(&proxy.url(), &scene.ledger, LONG_LEASE, SOON);
    let heir = scene.payer();
    owner.begin("hold", "effect,say:here,park:end");
    owner.at("here");
    proxy.drop_reply_to("EVALSHA", Then::Hang);
    owner.open("end");
    heir.sees("hold", "success");
    owner.kill();
    assert_eq!(heir.call("hold", "effect").said(), "replayed");
    assert_eq!(scene.ledger.effects("hold"), 1);
}

// E15, L01
#[test]
fn an_owner_that_stood_still_gets_the_result_of_the_one_who_took_over() {
    let scene = Scene::new();
    let [owner, heir] = [scene.payer(), scene.payer()];
    let late = owner.begin("rerun", "say:here,park:end,effect");
    owner.at("here");
    owner.freeze();
    let winner = heir.insist("rerun", "effect", "-");
    assert_eq!(winner.said(), "executed");
    owner.thaw();
    owner.open("end");
    let late = owner.answer(late);
    // It hears of the loss from a heartbeat, or at its settle.
    match late.said() {
        "lease_lost" => {}
        _ => assert_eq!(late.receipt(), winner.receipt()),
    }
    let again = heir.call("rerun", "effect");
    assert_eq!(again.said(), "replayed");
    assert_eq!(again.receipt(), winner.receipt());
}

// L01, N01
#[test]
fn an_owner_that_stood_still_before_its_checkpoint_cannot_pass_it() {
    let scene = Scene::new();
    let [owner, heir] = [scene.payer(), scene.payer()];
    let late = owner.begin("hold:marked", "say:here,park:end,checkpoint,effect");
    owner.at("here");
    owner.freeze();
    let winner = heir.insist("hold:marked", "checkpoint,effect", "-");
    assert_eq!(winner.said(), "executed");
    owner.thaw();
    owner.open("end");
    assert_eq!(owner.answer(late).said(), "lease_lost");
    assert_eq!(scene.ledger.effects("hold:marked"), 1);
    assert!(owner.count("lease_lost") >= 1);
}

// E02
#[test]
fn an_owner_that_stood_still_after_its_checkpoint_still_settles_at_hold() {
    let scene = Scene::new();
    let [owner, heir] = [scene.payer(), scene.payer()];
    let late = owner.begin("hold", "effect,say:here,park:end");
    owner.at("here");
    owner.freeze();
    assert_eq!(heir.insist("hold", "effect", "-").said(), "outcome_unknown");
    owner.thaw();
    owner.open("end");
    let answer = owner.answer(late);
    assert_eq!(answer.said(), "executed");
    let again = heir.call("hold", "effect");
    assert_eq!(again.said(), "replayed");
    assert_eq!(again.receipt(), answer.receipt());
    assert_eq!(scene.ledger.effects("hold"), 1);
}

// E15, N40
#[test]
fn an_owner_that_stood_still_gets_what_a_recovery_found_out() {
    let scene = Scene::new();
    let [owner, heir] = [scene.payer(), scene.payer()];
    let late = owner.begin("hold:recover", "effect,say:here,park:end");
    owner.at("here");
    owner.freeze();
    let winner = heir.insist("hold:recover", "effect", "done");
    assert_eq!(winner.said(), "recovered");
    owner.thaw();
    owner.open("end");
    let late = owner.answer(late);
    match late.said() {
        "lease_lost" => {}
        _ => assert_eq!(late.receipt(), winner.receipt()),
    }
    assert_eq!(
        heir.call("hold:recover", "effect").receipt(),
        winner.receipt()
    );
    assert_eq!(scene.ledger.effects("hold:recover"), 1);
}

/// Drops or drains away a body of a long lease: the next caller does not wait for its end.
fn left(function: &str, plan: &str, leave: impl Fn(&Payer, Call)) -> (Scene, Answer) {
    let scene = Scene::new();
    let [owner, heir] = [(); 2].map(|()| scene.patient_payer());
    let call = owner.begin(function, &format!("{plan},say:here,park:never"));
    owner.at("here");
    leave(&owner, call);
    let answer = heir.insist(function, "checkpoint,effect", "-");
    let kept = LONG_LEASE / 2;
    assert!(answer.took < kept, "{answer:?}");
    (scene, answer)
}

const LEFT: [(&str, &str, &str); 4] = [
    ("hold", "effect", "outcome_unknown"),
    ("hold:marked", "-", "executed"),
    ("hold:marked", "checkpoint,effect", "outcome_unknown"),
    ("rerun", "-", "executed"),
];

// X01
#[test]
fn a_body_that_is_dropped_says_so_to_the_other_processes_at_once() {
    for (function, plan, said) in LEFT {
        let (scene, answer) = left(function, plan, Payer::drop);
        assert_eq!(answer.said(), said, "{function} after {plan}");
        assert_eq!(scene.ledger.effects(function), 1, "{function} after {plan}");
    }
}

// O09
#[test]
fn a_process_that_goes_down_says_so_to_the_other_processes_at_once() {
    for (function, plan, said) in LEFT {
        let (scene, answer) = left(function, plan, |owner, call| {
            let drained = owner.line(owner.tell("drain", "100"));
            assert_eq!(drained, "1");
            assert_eq!(owner.answer(call).said(), "lease_lost");
        });
        assert_eq!(answer.said(), said, "{function} after {plan}");
        assert_eq!(scene.ledger.effects(function), 1, "{function} after {plan}");
    }
}
