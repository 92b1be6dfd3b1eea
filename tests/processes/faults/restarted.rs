//! A server that goes down and comes back, with its records or without.

use std::time::Duration;

use idem_tests::redis::{Fsync, RedisOptions};
use idem_tests::wait::{need, until};

use crate::payer::Payer;
use crate::scene::{LIMIT, SOON, Scene};
use crate::storm::Tally;

fn persistent() -> Scene {
    Scene::over(RedisOptions::new().aof(Fsync::Always))
}

#[test]
fn the_next_call_after_the_server_is_back_works() {
    let scene = persistent();
    let payer = scene.patient_payer();
    let first = payer.call("hold", "effect");
    assert_eq!(first.said(), "executed");
    scene.server.kill().unwrap();
    for _ in 0..20 {
        let answer = payer.call("rerun", "effect");
        assert_eq!(answer.said(), "store");
        assert!(answer.took < LIMIT, "{:?}", answer.took);
    }
    assert_eq!(scene.ledger.runs("rerun"), 0);
    scene.server.restart().unwrap();
    assert_eq!(payer.call("rerun", "effect").said(), "executed");
    let again = payer.call("hold", "effect");
    assert_eq!(again.said(), "replayed");
    assert_eq!(again.receipt(), first.receipt());
}

#[test]
fn a_server_that_was_killed_and_is_back_before_the_next_call_is_not_noticed() {
    let scene = persistent();
    let payer = scene.patient_payer();
    assert_eq!(payer.call("hold", "effect").said(), "executed");
    scene.server.restart().unwrap();
    assert_eq!(payer.call("hold", "effect").said(), "replayed");
    assert_eq!(payer.call("rerun", "effect").said(), "executed");
}

#[test]
fn a_body_over_which_the_server_restarted_settles_its_record() {
    let scene = persistent();
    let payer = scene.patient_payer();
    let call = payer.begin("hold", "effect,say:here,park:on");
    payer.at("here");
    scene.server.restart().unwrap();
    payer.open("on");
    let answer = payer.answer(call);
    assert_eq!(answer.said(), "executed");
    payer.sees("hold", "success");
    assert_eq!(payer.count("record_lost"), 0);
    assert_eq!(payer.call("hold", "effect").receipt(), answer.receipt());
    assert_eq!(scene.ledger.effects("hold"), 1);
}

#[test]
fn a_body_over_which_all_records_vanished_settles_anew_and_says_so() {
    let scene = Scene::new();
    let payer = scene.patient_payer();
    let call = payer.begin("hold", "effect,say:here,park:on");
    payer.at("here");
    scene.server.restart_empty().unwrap();
    assert_eq!(payer.look("hold"), "absent");
    payer.open("on");
    let answer = payer.answer(call);
    assert_eq!(answer.said(), "executed");
    payer.sees("hold", "success");
    assert_eq!(payer.count("record_lost"), 1);
    let again = payer.call("hold", "effect");
    assert_eq!(again.said(), "replayed");
    assert_eq!(again.receipt(), answer.receipt());
    assert_eq!(scene.ledger.effects("hold"), 1);
    assert!(scene.ttl("hold").unwrap() <= Duration::from_mins(10));
}

#[test]
fn a_heartbeat_writes_a_vanished_record_anew() {
    let scene = Scene::new();
    let lease = Duration::from_secs(3);
    let payer = Payer::start(&scene.server.url(), &scene.ledger, lease, LIMIT);
    let other = scene.payer();
    let call = payer.begin("hold", "effect,say:here,park:on");
    payer.at("here");
    scene.server.restart_empty().unwrap();
    until("the record", SOON, || {
        let seen = payer.look("hold");
        need(seen == "processing", seen)
    })
    .unwrap();
    assert_eq!(other.call("hold", "effect").said(), "in_progress");
    assert!(scene.ttl("hold").is_some());
    payer.open("on");
    let answer = payer.answer(call);
    assert_eq!(answer.said(), "executed");
    assert_eq!(payer.count("record_lost"), 1);
    assert_eq!(other.call("hold", "effect").receipt(), answer.receipt());
    assert_eq!(scene.ledger.effects("hold"), 1);
}

// R11
#[test]
fn with_the_server_down_a_function_that_may_run_unguarded_does_and_is_settled_later() {
    let scene = persistent();
    let payer = scene.patient_payer();
    assert_eq!(payer.call("brief", "-").said(), "executed");
    scene.server.kill().unwrap();
    let refused = payer.call("hold", "effect");
    assert_eq!(refused.said(), "store");
    assert_eq!(scene.ledger.runs("hold"), 0);
    let answer = payer.call("unguarded", "effect");
    assert_eq!(answer.said(), "unguarded");
    assert_eq!(payer.count("unguarded"), 1);
    assert_eq!(scene.ledger.effects("unguarded"), 1);
    scene.server.restart().unwrap();
    assert_eq!(payer.call("unguarded", "effect").said(), "executed");
}

// R01
#[test]
fn scripts_that_are_flushed_under_load_are_not_noticed() {
    let scene = Scene::new();
    let payer = scene.patient_payer();
    let load = payer.tell("load", "hold order effect 32 3000");
    let mut flushes = 0;
    until("the end of the load", SOON * 2, || {
        scene.server.cli(&["SCRIPT", "FLUSH"])?;
        flushes += 1;
        need(scene.ledger.text().lines().count() >= 6000, flushes)
    })
    .unwrap();
    let tally = Tally::read(&payer.line(load));
    assert_eq!(tally.get("executed"), 3000, "after {flushes} flushes");
    assert_eq!(scene.ledger.doubles("effect"), 0);
    assert!(scene.server.calls("eval").unwrap() > 0);
    let again = payer.tell("load", "hold order effect 32 3000");
    assert_eq!(Tally::read(&payer.line(again)).get("replayed"), 3000);
}
