//! A server that stands still: SIGSTOP, later SIGCONT.

use std::thread;
use std::time::{Duration, Instant};

use idem_tests::proxy::Proxy;
use idem_tests::wait::{need, until};

use crate::payer::Payer;
use crate::scene::{LIMIT, LONG_LEASE, ORDER, SOON, Scene};
use crate::storm::Tally;

/// What a busy machine may add to a limit.
const SLACK: Duration = Duration::from_millis(1500);

// R08
#[test]
fn while_the_server_stands_still_each_call_fails_within_the_limit_also_the_hundredth() {
    let limit = Duration::from_millis(100);
    let scene = Scene::new();
    let payer = Payer::start(&scene.server.url(), &scene.ledger, LONG_LEASE, limit);
    // With a limit that a busy machine does not miss.
    let other = scene.patient_payer();
    assert_eq!(payer.call("brief", "-").said(), "executed");
    scene.server.freeze().unwrap();
    let calls: Vec<_> = (0..100).map(|_| payer.call("hold", "effect")).collect();
    let slowest = calls.iter().map(|call| call.took).max().unwrap();
    assert!(calls.iter().all(|call| call.said() == "store"));
    assert!(slowest < limit + SLACK, "{slowest:?}");
    scene.server.thaw().unwrap();
    let connections = scene.server.info("total_connections_received").unwrap();
    println!(
        "100 calls of at most {limit:?}: the slowest took {slowest:?}, {connections} connections"
    );
    let retry = other.insist("hold", "effect", "-");
    assert_eq!(retry.said(), "executed");
    assert_eq!(scene.ledger.effects("hold"), 1);
}

// R08
#[test]
fn a_hundred_calls_at_once_fail_within_the_default_limit() {
    let scene = Scene::new();
    let payer = scene.patient_payer();
    assert_eq!(payer.call("brief", "-").said(), "executed");
    scene.server.freeze().unwrap();
    let tally = payer.tell("load", "hold order effect 100 100");
    let tally = Tally::read(&payer.line(tally));
    scene.server.thaw().unwrap();
    assert_eq!(tally.get("store"), 100);
    let worst = Duration::from_micros(tally.get("worst").try_into().unwrap());
    assert!(worst < LIMIT + SLACK, "{worst:?}");
}

// R08, N38
#[test]
fn after_the_server_goes_on_no_key_is_held_for_a_caller_who_left() {
    let scene = Scene::new();
    let [payer, other] = [(); 2].map(|()| scene.patient_payer());
    assert_eq!(payer.call("brief", "-").said(), "executed");
    scene.server.freeze().unwrap();
    assert_eq!(payer.call("hold", "effect").said(), "store");
    scene.server.thaw().unwrap();
    let thawed = Instant::now();
    let retry = other.insist("hold", "effect", "-");
    let waited = thawed.elapsed();
    assert_eq!(retry.said(), "executed");
    assert!(waited < SLACK, "{waited:?}");
    println!("a retry ran {waited:?} after the server went on");
    assert_eq!(scene.ledger.effects("hold"), 1);
}

// N24, N38
#[test]
fn claims_that_were_dropped_while_the_server_stood_still_hold_nothing() {
    let scene = Scene::new();
    let proxy = Proxy::start(scene.server.address()).unwrap();
    let payer = scene.patient_payer_by(&proxy.url());
    let other = scene.patient_payer();
    assert_eq!(payer.call("brief", "-").said(), "executed");
    let before = proxy.commands_called("EVALSHA");
    scene.server.freeze().unwrap();
    let orders: Vec<String> = (0..50).map(|number| format!("{ORDER}-{number}")).collect();
    let begin = |order: &String| payer.begin_for(order, "hold", "effect", "-");
    let calls: Vec<_> = orders.iter().map(begin).collect();
    until("claims on the wire", SOON, || {
        let sent = proxy.commands_called("EVALSHA") - before;
        need(sent >= 50, sent)
    })
    .unwrap();
    for call in calls {
        payer.drop(call);
    }
    scene.server.thaw().unwrap();
    let thawed = Instant::now();
    for order in &orders {
        until("a key that nobody holds", SOON, || {
            let answer = other.answer(other.begin_for(order, "hold", "effect", "-"));
            need(answer.said() == "executed", answer)
        })
        .unwrap();
    }
    // The leases are longer: only their give-ups can be so early.
    assert!(thawed.elapsed() < LONG_LEASE / 2, "{:?}", thawed.elapsed());
    assert_eq!(scene.ledger.doubles("effect"), 0);
}

// R08
#[test]
fn the_claim_of_a_process_that_died_meanwhile_is_too_late() {
    let scene = Scene::new();
    let proxy = Proxy::start(scene.server.address()).unwrap();
    let payer = scene.patient_payer_by(&proxy.url());
    let other = scene.patient_payer();
    assert_eq!(payer.call("brief", "-").said(), "executed");
    let before = proxy.commands_called("EVALSHA");
    scene.server.freeze().unwrap();
    payer.begin("hold", "effect");
    until("a claim on the wire", SOON, || {
        let sent = proxy.commands_called("EVALSHA") - before;
        need(sent == 1, sent)
    })
    .unwrap();
    // Nobody is left to give it up.
    payer.kill();
    thread::sleep(LIMIT);
    scene.server.thaw().unwrap();
    assert_eq!(other.look("hold"), "absent");
    assert_eq!(other.call("hold", "effect").said(), "executed");
    assert_eq!(scene.ledger.effects("hold"), 1);
}

#[test]
fn a_body_that_ends_while_the_server_stands_still_is_settled_later() {
    let scene = Scene::new();
    let payer = scene.patient_payer();
    let call = payer.begin("hold", "effect,say:here,park:on");
    payer.at("here");
    scene.server.freeze().unwrap();
    payer.open("on");
    let answer = payer.answer(call);
    assert_eq!(answer.said(), "executed");
    assert!(answer.took < LIMIT + 2 * SLACK, "{:?}", answer.took);
    assert_eq!(payer.count("unconfirmed"), 1);
    scene.server.thaw().unwrap();
    payer.sees("hold", "success");
    let again = payer.call("hold", "effect");
    assert_eq!(again.receipt(), answer.receipt());
    assert_eq!(scene.ledger.effects("hold"), 1);
}
