//! A server that answers, and refuses.

use std::time::Duration;

use idem_tests::redis::RedisOptions;

use crate::ledger::Ledger;
use crate::payer::Payer;
use crate::scene::Scene;

const FULL: &[&str] = &["CONFIG", "SET", "maxmemory", "1"];
const ROOMY: &[&str] = &["CONFIG", "SET", "maxmemory", "0"];

// R06
#[test]
fn out_of_memory_no_body_begins_and_what_is_done_is_still_replayed() {
    let scene = Scene::new();
    let payer = scene.patient_payer();
    let first = payer.call("rerun", "effect");
    assert_eq!(first.said(), "executed");
    scene.server.cli(FULL).unwrap();
    assert_eq!(payer.call("hold", "effect").said(), "store");
    assert_eq!(scene.ledger.runs("hold"), 0);
    let again = payer.call("rerun", "effect");
    assert_eq!(again.said(), "replayed");
    assert_eq!(again.receipt(), first.receipt());
    scene.server.cli(ROOMY).unwrap();
    assert_eq!(payer.call("hold", "effect").said(), "executed");
}

// R06
#[test]
fn out_of_memory_a_body_that_has_begun_settles() {
    for (plan, said, status) in [
        ("effect", "executed", "success"),
        ("fail", "declined", "failed"),
    ] {
        let scene = Scene::new();
        let payer = scene.patient_payer();
        let call = payer.begin(
            "hold:marked",
            &format!("checkpoint,say:here,park:on,{plan}"),
        );
        payer.at("here");
        scene.server.cli(FULL).unwrap();
        payer.open("on");
        assert_eq!(payer.answer(call).said(), said);
        if !gets_through(&scene) {
            scene.server.cli(ROOMY).unwrap();
        }
        payer.sees("hold:marked", status);
        assert_eq!(
            scene.ledger.effects("hold:marked"),
            usize::from(plan == "effect")
        );
        assert!(scene.ttl("hold:marked").unwrap() <= Duration::from_mins(10));
        assert_eq!(payer.count("unconfirmed"), u64::from(!gets_through(&scene)));
    }
}

// R06
#[test]
fn out_of_memory_a_checkpoint_is_passed_or_no_effect_happens() {
    let scene = Scene::new();
    let payer = scene.patient_payer();
    let call = payer.begin("hold:marked", "say:here,park:on,checkpoint,effect");
    payer.at("here");
    scene.server.cli(FULL).unwrap();
    payer.open("on");
    let (said, effects) = if gets_through(&scene) {
        ("executed", 1)
    } else {
        ("store", 0)
    };
    assert_eq!(payer.answer(call).said(), said);
    assert_eq!(scene.ledger.effects("hold:marked"), effects);
    scene.server.cli(ROOMY).unwrap();
    let again = payer.insist("hold:marked", "checkpoint,effect", "-");
    assert!(
        ["executed", "replayed"].contains(&again.said()),
        "{again:?}"
    );
    assert_eq!(scene.ledger.effects("hold:marked"), 1);
}

/// Whether the server lets a script say that it may write when memory is out: not before Redis 7.
fn gets_through(scene: &Scene) -> bool {
    let version = scene.server.info("redis_version").unwrap();
    !version.starts_with("6.")
}

/// A server that was demoted: it follows one that is not there.
fn demote(scene: &Scene) {
    scene.server.cli(&["REPLICAOF", "127.0.0.1", "1"]).unwrap();
}

fn promote(scene: &Scene) {
    scene.server.cli(&["REPLICAOF", "NO", "ONE"]).unwrap();
}

#[test]
fn a_server_that_became_a_replica_begins_nothing_until_it_is_master_again() {
    let scene = Scene::new();
    let payer = scene.patient_payer();
    assert_eq!(payer.call("rerun", "effect").said(), "executed");
    demote(&scene);
    for _ in 0..5 {
        assert_eq!(payer.call("hold", "effect").said(), "store");
    }
    assert_eq!(scene.ledger.runs("hold"), 0);
    promote(&scene);
    assert_eq!(payer.call("hold", "effect").said(), "executed");
    assert_eq!(scene.ledger.effects("hold"), 1);
}

#[test]
fn a_body_over_which_its_server_became_a_replica_is_settled_when_it_is_master_again() {
    let scene = Scene::new();
    let payer = scene.patient_payer();
    let call = payer.begin("hold", "effect,say:here,park:on");
    payer.at("here");
    demote(&scene);
    payer.open("on");
    let answer = payer.answer(call);
    assert_eq!(answer.said(), "executed");
    assert_eq!(payer.count("unconfirmed"), 1);
    promote(&scene);
    payer.sees("hold", "success");
    assert_eq!(payer.call("hold", "effect").receipt(), answer.receipt());
    assert_eq!(scene.ledger.effects("hold"), 1);
}

#[test]
fn a_wrong_password_is_a_typed_error_at_the_start() {
    let scene = Scene::over(RedisOptions::new().password("right"));
    let complaint = Payer::fail(&scene.server.url_as("", "wrong"), &Ledger::new());
    assert!(complaint.starts_with("failed store "), "{complaint}");
    assert!(!complaint.contains("wrong"), "{complaint}");
    let none = format!("redis://{}/", scene.server.address());
    let complaint = Payer::fail(&none, &Ledger::new());
    assert!(complaint.starts_with("failed store "), "{complaint}");
    let right = scene.patient_payer();
    assert_eq!(right.call("hold", "effect").said(), "executed");
}

#[test]
fn a_server_that_is_not_there_is_a_typed_error_at_the_start() {
    let scene = Scene::new();
    scene.server.kill().unwrap();
    let complaint = Payer::fail(&scene.server.url(), &Ledger::new());
    assert!(complaint.starts_with("failed store "), "{complaint}");
}

/// Everything on our keys, and no channel.
const MUTE: &str = "~idem:* +@all resetchannels";

// N36
#[test]
fn a_user_without_channels_settles_and_its_waiters_look_now_and_then() {
    let scene = Scene::over(RedisOptions::new().user("mute", "secret", MUTE));
    let url = scene.server.url_as("mute", "secret");
    let [owner, waiter] = [(); 2].map(|()| scene.patient_payer_by(&url));
    let call = owner.begin("wait", "effect,say:here,park:on");
    owner.at("here");
    let waiting = waiter.begin("wait", "effect");
    owner.sees("wait", "awaited");
    owner.open("on");
    let answer = owner.answer(call);
    assert_eq!(answer.said(), "executed");
    let shared = waiter.answer(waiting);
    assert_eq!(shared.said(), "waited");
    assert_eq!(shared.receipt(), answer.receipt());
    assert!(shared.took < Duration::from_secs(4), "{:?}", shared.took);
    assert_eq!(scene.ledger.effects("wait"), 1);
    assert_eq!(owner.count("unconfirmed"), 0);
    let denied = scene.server.cli(&["ACL", "LOG"]).unwrap();
    assert!(denied.contains("channel"), "nothing was denied: {denied}");
}
