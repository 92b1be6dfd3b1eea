//! A body under way whose process, or whose server, is cut off for longer than the lease.

use std::time::Instant;

use idem_tests::proxy::{Mode, Proxy};
use idem_tests::wait::{need, until};

use crate::payer::Payer;
use crate::scene::{LEASE, LIMIT, SOON, Scene};

struct Apart {
    scene: Scene,
    proxy: Proxy,
    owner: Payer,
    heir: Payer,
}

impl Apart {
    fn new() -> Self {
        let scene = Scene::new();
        let proxy = Proxy::start(scene.server.address()).unwrap();
        let owner = Payer::start(&proxy.url(), &scene.ledger, LEASE, LIMIT);
        let heir = scene.payer();
        Self {
            scene,
            proxy,
            owner,
            heir,
        }
    }
}

// L01, L08
#[test]
fn a_body_that_is_cut_off_is_stopped_before_somebody_else_can_run() {
    for function in ["rerun", "hold:marked", "hold:recover"] {
        let apart = Apart::new();
        let call = apart.owner.begin(function, "say:here,park:never");
        apart.owner.at("here");
        let stopped = std::thread::scope(|scope| {
            let owner = scope.spawn(|| {
                assert_eq!(apart.owner.answer(call).said(), "lease_lost", "{function}");
                Instant::now()
            });
            apart.proxy.set(Mode::BlackHole);
            let answer = apart.heir.insist(function, "effect", "not_done");
            let ended = Instant::now();
            assert_eq!(answer.said(), "executed", "{function}");
            (owner.join().unwrap(), ended)
        });
        assert!(stopped.0 < stopped.1, "{function}: {stopped:?}");
        apart.proxy.set(Mode::Pass);
        assert_eq!(apart.owner.call(function, "effect").said(), "replayed");
        assert_eq!(apart.scene.ledger.effects(function), 1);
        assert_eq!(apart.owner.count("lease_lost"), 1);
    }
}

// L01
#[test]
fn a_body_that_is_cut_off_after_its_checkpoint_finishes_at_hold() {
    let apart = Apart::new();
    let call = apart.owner.begin("hold", "effect,say:here,park:on");
    apart.owner.at("here");
    apart.proxy.set(Mode::BlackHole);
    let refused = apart.heir.insist("hold", "effect", "-");
    assert_eq!(refused.said(), "outcome_unknown");
    apart.proxy.set(Mode::Pass);
    apart.owner.open("on");
    let answer = apart.owner.answer(call);
    assert_eq!(answer.said(), "executed");
    apart.heir.sees("hold", "success");
    assert_eq!(
        apart.heir.call("hold", "effect").receipt(),
        answer.receipt()
    );
    assert_eq!(apart.scene.ledger.effects("hold"), 1);
    assert_eq!(apart.owner.count("lease_lost"), 1);
}

// L08
#[test]
fn a_cut_that_is_shorter_than_the_lease_is_not_noticed() {
    let apart = Apart::new();
    let lease = LEASE * 3;
    let owner = Payer::start(&apart.proxy.url(), &apart.scene.ledger, lease, LIMIT);
    let call = owner.begin("rerun", "effect,say:here,park:on");
    owner.at("here");
    for _ in 0..3 {
        apart.proxy.set(Mode::Cut);
        apart.proxy.set(Mode::Pass);
        let before = apart.proxy.commands_called("EVALSHA");
        until("a heartbeat", SOON, || {
            let beats = apart.proxy.commands_called("EVALSHA") - before;
            need(beats > 0, beats)
        })
        .unwrap();
    }
    owner.open("on");
    assert_eq!(owner.answer(call).said(), "executed");
    assert_eq!(owner.count("lease_lost"), 0);
    assert_eq!(owner.count("unconfirmed"), 0);
    assert_eq!(apart.scene.ledger.effects("rerun"), 1);
}

// R08
#[test]
fn a_server_that_stands_still_for_longer_than_the_lease_ends_what_may_run_elsewhere() {
    let scene = Scene::new();
    let payer = scene.payer();
    let stopped = payer.begin("rerun", "say:here,park:never");
    let kept = payer.begin("hold", "effect,say:there,park:on");
    payer.at("here");
    payer.at("there");
    scene.server.freeze().unwrap();
    assert_eq!(payer.answer(stopped).said(), "lease_lost");
    scene.server.thaw().unwrap();
    payer.open("on");
    let answer = payer.answer(kept);
    assert_eq!(answer.said(), "executed");
    payer.sees("hold", "success");
    assert_eq!(payer.insist("rerun", "effect", "-").said(), "executed");
    assert_eq!(scene.ledger.effects("hold"), 1);
    assert_eq!(scene.ledger.effects("rerun"), 1);
}
