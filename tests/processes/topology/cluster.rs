use idem_tests::cluster::Cluster;
use idem_tests::wait::{need, until};

use super::assert_attribute_holds;
use crate::payer::Payer;
use crate::scene::{LIMIT, SOON, Scene};
use crate::storm::Tally;

fn key(function: &str, order: &str) -> String {
    format!("idem:{function}::{order}")
}

/// An order whose key is served by the same node as that of `order`, or by another.
fn neighbour(cluster: &Cluster, order: &str, is_near: bool) -> String {
    let port = |order: &str| {
        let slot = cluster.slot_of(&key("hold", order)).unwrap();
        cluster.master_of(slot).unwrap().port()
    };
    let home = port(order);
    let names = (0..).map(|number| format!("near-{number}"));
    names
        .into_iter()
        .find(|name| (port(name) == home) == is_near)
        .unwrap()
}

// N07
#[test]
fn orders_in_different_slots_of_a_cluster_just_work() {
    let scene = Scene::cluster();
    let slots = ["1", "2", "3"].map(|order| scene.server.slot_of(&key("hold", order)).unwrap());
    assert!(
        slots[0] != slots[1] && slots[1] != slots[2] && slots[0] != slots[2],
        "{slots:?}"
    );
    let [payer, other] = [(); 2].map(|()| scene.patient_payer());
    for order in ["1", "2", "3"] {
        let first = payer.call_for(order, "hold", "effect");
        assert_eq!(first.said(), "executed");
        let again = other.call_for(order, "hold", "effect");
        assert_eq!(again.said(), "replayed");
        assert_eq!(again.receipt(), first.receipt());
        assert_eq!(scene.ledger.effects_for("hold", order), 1);
    }
    assert_attribute_holds(&scene, "cluster");
    moves(&scene, &payer, &other);
}

/// The slot of a body under way goes to another node, step by step, and back.
fn moves(scene: &Scene<Cluster>, payer: &Payer, other: &Payer) {
    let cluster = &scene.server;
    let slot = cluster.slot_of(&key("hold", "moved")).unwrap();
    let target = cluster.master_of((slot + 8192) % 16384).unwrap();
    let call = payer.begin_for("moved", "hold", "effect,say:here,park:on", "-");
    payer.at("here");
    let moving = cluster.begin_move(slot, target).unwrap();
    assert_eq!(
        other.call_for("moved", "hold", "effect").said(),
        "in_progress"
    );
    moving.finish().unwrap();
    assert_eq!(
        other.call_for("moved", "hold", "effect").said(),
        "in_progress"
    );
    payer.open("on");
    let answer = payer.answer(call);
    assert_eq!(answer.said(), "executed");
    assert_eq!(payer.count("unconfirmed"), 0);
    let again = other.call_for("moved", "hold", "effect");
    assert_eq!(again.receipt(), answer.receipt());
    assert_eq!(scene.ledger.effects_for("hold", "moved"), 1);
}

#[test]
fn a_cluster_that_loses_a_master_goes_on_with_its_replica() {
    let scene = Scene::cluster();
    let cluster = &scene.server;
    let [payer, other] = [(); 2].map(|()| scene.patient_payer());
    let away = neighbour(cluster, "lost", false);
    let first = payer.call_for("done", "hold", "effect");
    let near = neighbour(cluster, "lost", true);
    let done = payer.call_for(&near, "hold", "effect");
    let call = payer.begin_for("lost", "hold", "effect,say:here,park:on", "-");
    payer.at("here");
    let master = cluster
        .master_of(cluster.slot_of(&key("hold", "lost")).unwrap())
        .unwrap();
    master.wait_copied().unwrap();
    cluster.kill_master_of(&key("hold", "lost")).unwrap();

    let refused = other.call_for("lost", "hold", "effect");
    assert!(
        ["store", "in_progress"].contains(&refused.said()),
        "{refused:?}"
    );
    assert!(refused.took < LIMIT * 2, "{:?}", refused.took);
    // The other masters' keys know nothing of it.
    assert_eq!(other.call_for(&away, "hold", "effect").said(), "executed");

    cluster.wait_failed_over(&key("hold", "lost")).unwrap();
    until("the first answer after the fail-over", SOON, || {
        let answer = other.call_for("lost", "hold", "effect");
        need(answer.said() == "in_progress", answer)
    })
    .unwrap();
    payer.open("on");
    let answer = payer.answer(call);
    assert_eq!(answer.said(), "executed");
    until("the settle", SOON, || {
        let again = other.call_for("lost", "hold", "effect");
        need(again.said() == "replayed", again)
    })
    .unwrap();
    assert_eq!(scene.ledger.effects_for("hold", "lost"), 1);
    assert_eq!(
        other.call_for(&near, "hold", "effect").receipt(),
        done.receipt()
    );
    assert_eq!(
        other.call_for("done", "hold", "effect").receipt(),
        first.receipt()
    );
    assert_attribute_holds(&scene, "after");
}

// N08
#[test]
fn what_a_cluster_loses_when_a_master_dies_under_load_is_counted() {
    const CALLS: usize = 6000;
    let scene = Scene::cluster();
    let cluster = &scene.server;
    let payer = scene.patient_payer();
    let load = payer.tell("load", &format!("hold order effect 16 {CALLS}"));
    until("half of the load", SOON * 2, || {
        let done = scene.ledger.text().lines().count() / 2;
        need(done > CALLS / 4, done)
    })
    .unwrap();
    cluster.kill_master_of(&key("hold", "any")).unwrap();
    let first = Tally::read(&payer.line(load));
    cluster.wait_failed_over(&key("hold", "any")).unwrap();
    let again = payer.tell("load", &format!("hold order effect 16 {CALLS}"));
    let again = Tally::read(&payer.line(again));
    let [told_done, told_store] = ["executed", "store"].map(|name| first.get(name));
    assert_eq!(told_done + told_store, CALLS);
    let doubles = scene.ledger.doubles("effect");
    let [ran, replayed] = ["executed", "replayed"].map(|name| again.get(name));
    let unknown = CALLS - ran - replayed;
    println!(
        "{CALLS} calls while a master died: {told_done} done, {told_store} without an answer; \
         then {ran} ran, {replayed} were replayed, {unknown} were told otherwise; \
         {doubles} effects happened twice"
    );
    // What was acknowledged and lost ran again: no more than was done before.
    assert!(doubles <= told_done, "{doubles}");
    assert_eq!(again.get("store"), 0);
}
