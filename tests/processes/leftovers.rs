//! What a call leaves behind: a record that expires, and nothing else.

use std::thread;
use std::time::Duration;

use crate::payer::Payer;
use crate::scene::{LEASE, LIMIT, Scene};
use crate::storm::Tally;

/// How many keys there are, and how many of them never end, or later than an unknown outcome is kept.
fn keys(scene: &Scene) -> (usize, usize) {
    const LONGEST: Duration = Duration::from_hours(8 * 24);
    scene.server.keys(LONGEST).unwrap()
}

// L02, E13
#[test]
fn ten_thousand_quick_calls_leave_no_renewal_and_no_key_without_an_end() {
    const CALLS: usize = 10_000;
    let lease = LEASE * 3;
    let scene = Scene::new();
    let payer = Payer::start(&scene.server.url(), &scene.ledger, lease, LIMIT);
    let load = payer.tell("load", &format!("hold order - 64 {CALLS}"));
    let mut looks = 0;
    while scene.ledger.text().lines().count() < CALLS {
        assert_eq!(keys(&scene).1, 0);
        looks += 1;
    }
    assert_eq!(Tally::read(&payer.line(load)).get("executed"), CALLS);
    assert_eq!(keys(&scene), (CALLS, 0), "after {looks} looks");
    let scripts = scene.server.calls("evalsha").unwrap();
    // A heartbeat of each call would have come in this time.
    thread::sleep(lease / 2);
    assert_eq!(scene.server.calls("evalsha").unwrap(), scripts);
}

// E13
#[test]
fn failed_dropped_and_abandoned_calls_leave_only_keys_that_end() {
    let scene = Scene::new();
    let payer = scene.payer();
    for plan in ["fail", "effect", "sleep:20,checkpoint,effect"] {
        for function in ["hold", "rerun", "hold:marked", "wait", "brief", "unguarded"] {
            let order = format!("{function}{}-{plan}", plan.len()).replace([':', ','], "-");
            let load = payer.tell("load", &format!("{function} {order} {plan} 8 32"));
            assert_eq!(keys(&scene).1, 0);
            payer.line(load);
        }
    }
    for number in 0..20 {
        let order = format!("dropped-{number}");
        let call = payer.begin_for(&order, "hold", "say:here,park:never", "-");
        payer.at("here");
        payer.drop(call);
    }
    let (all, eternal) = keys(&scene);
    assert!(all > 100, "{all}");
    assert_eq!(eternal, 0);
}

// E13, E14
#[test]
fn a_duplicate_does_not_prolong_a_record() {
    let scene = Scene::new();
    let payer = scene.payer();
    assert_eq!(payer.call("hold", "effect").said(), "executed");
    let expire = Duration::from_mins(10);
    let kept = scene.ttl("hold").unwrap();
    assert!(
        kept <= expire && kept + Duration::from_secs(5) > expire,
        "{kept:?}"
    );
    for _ in 0..100 {
        assert_eq!(payer.call("hold", "effect").said(), "replayed");
    }
    assert!(scene.ttl("hold").unwrap() < kept);
}

// E04, E14
#[test]
fn a_body_that_outlives_its_lease_keeps_its_record_all_the_while() {
    let scene = Scene::new();
    let [owner, other] = [scene.payer(), scene.payer()];
    let call = owner.begin("brief", "say:here,park:on,effect");
    owner.at("here");
    // Three leases, and longer than the record would be kept.
    for _ in 0..30 {
        assert_eq!(other.call("brief", "effect").said(), "in_progress");
        assert!(scene.ttl("brief").is_some());
        thread::sleep(LEASE / 10);
    }
    owner.open("on");
    assert_eq!(owner.answer(call).said(), "executed");
    assert_eq!(other.call("brief", "effect").said(), "replayed");
    assert_eq!(owner.count("lease_lost"), 0);
}
