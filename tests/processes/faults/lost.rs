//! The server did it, and the answer got lost.

use std::time::Instant;

use idem_tests::proxy::{Mode, Proxy, Then};
use idem_tests::wait::{need, until};

use crate::payer::{Answer, Call, Payer};
use crate::scene::{LONG_LEASE, SOON, Scene};

struct Wire {
    scene: Scene,
    proxy: Proxy,
    payer: Payer,
    /// Comes by another wire.
    other: Payer,
}

impl Wire {
    fn new() -> Self {
        let scene = Scene::new();
        let proxy = Proxy::start(scene.server.address()).unwrap();
        let payer = scene.patient_payer_by(&proxy.url());
        let other = scene.payer();
        // Whatever a connection asks when it is new has been asked.
        assert_eq!(payer.call("brief", "-").said(), "executed");
        Self {
            scene,
            proxy,
            payer,
            other,
        }
    }

    /// A body that has begun and goes on when the gate `on` is opened.
    fn begun(&self, function: &str, plan: &str) -> Call {
        let call = self.payer.begin(function, plan);
        self.payer.at("here");
        call
    }

    fn lose_next_reply(&self, then: Then) {
        self.proxy.drop_reply_to("EVALSHA", then);
    }

    /// When the next reply has been lost, nothing passes any more.
    fn lose_every_reply(&self) {
        until("a lost reply", SOON, || {
            need(!self.proxy.is_armed(), "none")
        })
        .unwrap();
        self.proxy.set(Mode::BlackHole);
    }

    /// The effect happened once, and a duplicate is told so.
    fn assert_done_once(&self, function: &str, answer: &Answer) {
        assert!(!self.proxy.is_armed(), "no reply was lost");
        assert_eq!(answer.said(), "executed");
        self.other.sees(function, "success");
        let again = self.other.call(function, "effect");
        assert_eq!(again.said(), "replayed");
        assert_eq!(again.receipt(), answer.receipt());
        assert_eq!(self.scene.ledger.effects(function), 1);
    }
}

// N23
#[test]
fn a_claim_whose_reply_was_lost_is_sent_again_and_runs_the_body_once() {
    let wire = Wire::new();
    wire.lose_next_reply(Then::Cut);
    let answer = wire.payer.call("hold", "effect");
    wire.assert_done_once("hold", &answer);
}

// R08, N24
#[test]
fn a_claim_that_was_done_and_never_answered_is_given_up() {
    let wire = Wire::new();
    wire.lose_next_reply(Then::Hang);
    let call = wire.payer.begin("hold", "effect");
    wire.lose_every_reply();
    assert_eq!(wire.payer.answer(call).said(), "store");
    assert_eq!(wire.scene.ledger.runs("hold"), 0);
    assert_eq!(wire.other.call("hold", "effect").said(), "in_progress");
    wire.proxy.set(Mode::Pass);
    let mended = Instant::now();
    let retry = wire.other.insist("hold", "effect", "-");
    // The lost lease was ten seconds: only the give-up ends it so early.
    assert!(mended.elapsed() < LONG_LEASE / 2, "{:?}", mended.elapsed());
    wire.assert_done_once("hold", &retry);
}

// N23, N29
#[test]
fn a_claim_that_arrives_after_its_caller_left_changes_nothing() {
    let wire = Wire::new();
    wire.proxy.set(Mode::Hold);
    assert_eq!(wire.payer.call("hold", "effect").said(), "store");
    let retry = wire.other.call("hold", "effect");
    assert_eq!(retry.said(), "executed");
    let before = wire.proxy.commands_called("EVALSHA");
    wire.proxy.set(Mode::Pass);
    until("the late claim", SOON, || {
        need(wire.proxy.commands_called("EVALSHA") > before, before)
    })
    .unwrap();
    wire.assert_done_once("hold", &retry);
}

// R11
#[test]
fn an_unguarded_body_whose_claim_was_granted_all_the_same_settles_its_record() {
    let wire = Wire::new();
    wire.lose_next_reply(Then::Hang);
    let call = wire.payer.begin("unguarded", "say:here,park:on,effect");
    wire.lose_every_reply();
    wire.payer.at("here");
    assert_eq!(wire.payer.count("unguarded"), 1);
    assert_eq!(wire.other.call("unguarded", "effect").said(), "in_progress");
    wire.proxy.set(Mode::Pass);
    wire.payer.open("on");
    assert_eq!(wire.payer.answer(call).said(), "unguarded");
    wire.other.sees("unguarded", "success");
    assert_eq!(wire.other.call("unguarded", "effect").said(), "replayed");
    assert_eq!(wire.scene.ledger.effects("unguarded"), 1);
}

// N23
#[test]
fn a_settle_whose_reply_was_lost_is_sent_again_and_answered_as_before() {
    for function in ["hold", "rerun", "hold:marked"] {
        let wire = Wire::new();
        let call = wire.begun(function, "checkpoint,effect,say:here,park:on");
        wire.lose_next_reply(Then::Cut);
        wire.payer.open("on");
        let answer = wire.payer.answer(call);
        wire.assert_done_once(function, &answer);
        assert_eq!(wire.payer.count("unconfirmed"), 0, "{function}");
    }
}

#[test]
fn a_settle_that_nobody_answers_gives_the_caller_its_result_and_goes_on() {
    let wire = Wire::new();
    let call = wire.begun("hold", "effect,say:here,park:on");
    wire.proxy.set(Mode::BlackHole);
    wire.payer.open("on");
    let answer = wire.payer.answer(call);
    assert_eq!(wire.payer.count("unconfirmed"), 1);
    assert_eq!(wire.other.look("hold"), "processing");
    assert_eq!(wire.other.call("hold", "effect").said(), "in_progress");
    wire.proxy.set(Mode::Pass);
    wire.assert_done_once("hold", &answer);
}

// N23
#[test]
fn a_checkpoint_whose_reply_was_lost_is_sent_again_and_is_passed() {
    for function in ["hold:marked", "rerun:marked"] {
        let wire = Wire::new();
        let call = wire.begun(function, "say:here,park:on,checkpoint,effect");
        wire.lose_next_reply(Then::Cut);
        wire.payer.open("on");
        let answer = wire.payer.answer(call);
        wire.assert_done_once(function, &answer);
    }
}

#[test]
fn a_checkpoint_that_nobody_answers_lets_no_effect_happen() {
    let wire = Wire::new();
    let call = wire.begun("hold:marked", "say:here,park:on,checkpoint,effect");
    wire.proxy.set(Mode::BlackHole);
    wire.payer.open("on");
    assert_eq!(wire.payer.answer(call).said(), "store");
    wire.proxy.set(Mode::Pass);
    // The body failed by its own account, after a checkpoint that may have been passed or not.
    wire.other.sees("hold:marked", "failed");
    let retry = wire.other.call("hold:marked", "checkpoint,effect");
    wire.assert_done_once("hold:marked", &retry);
}
