use std::time::Instant;

use idem_tests::wait::{need, until};

use super::assert_attribute_holds;
use crate::scene::{LIMIT, SOON, Scene};

#[test]
fn when_sentinels_replace_a_killed_master_what_was_copied_stays_done() {
    let scene = Scene::sentinels();
    let group = &scene.server;
    assert_attribute_holds(&scene, "before");
    let [payer, other] = [(); 2].map(|()| scene.patient_payer());
    let done = payer.call_for("done", "hold", "effect");
    let call = payer.begin_for("begun", "hold", "effect,say:here,park:on", "-");
    payer.at("here");
    group.master().unwrap().wait_copied().unwrap();
    let killed = group.kill_master().unwrap();

    let refused = other.call_for("begun", "hold", "effect");
    assert_eq!(refused.said(), "store");
    assert!(refused.took < LIMIT * 2, "{:?}", refused.took);
    group.wait_failed_over(killed).unwrap();
    let failed_over = Instant::now();
    until("the first answer after the fail-over", SOON, || {
        let answer = other.call_for("begun", "hold", "effect");
        need(answer.said() == "in_progress", answer)
    })
    .unwrap();
    println!("answers {:?} after the fail-over", failed_over.elapsed());
    payer.open("on");
    let answer = payer.answer(call);
    assert_eq!(answer.said(), "executed");
    until("the settle", SOON, || {
        let again = other.call_for("begun", "hold", "effect");
        need(again.said() == "replayed", again)
    })
    .unwrap();
    assert_eq!(scene.ledger.effects_for("hold", "begun"), 1);
    assert_eq!(
        other.call_for("done", "hold", "effect").receipt(),
        done.receipt()
    );
    killed.restart().unwrap();
    group.wait_ready().unwrap();
    assert_attribute_holds(&scene, "after");
}

// R08
#[test]
fn a_master_that_stands_still_is_replaced_and_comes_back_without_its_old_word() {
    let scene = Scene::sentinels();
    let group = &scene.server;
    let [payer, other] = [(); 2].map(|()| scene.patient_payer());
    let done = payer.call_for("done", "hold", "effect");
    let master = group.master().unwrap();
    master.wait_copied().unwrap();
    master.freeze().unwrap();
    assert_eq!(payer.call_for("during", "hold", "effect").said(), "store");
    group.wait_failed_over(master).unwrap();
    let failed_over = Instant::now();
    let answer = until("the first answer of the new master", SOON, || {
        let answer = payer.call_for("during", "hold", "effect");
        need(["executed", "replayed"].contains(&answer.said()), &answer)?;
        Ok(answer)
    })
    .unwrap();
    println!("answers {:?} after the fail-over", failed_over.elapsed());
    master.thaw().unwrap();
    group.wait_ready().unwrap();
    for payer in [&payer, &other] {
        let again = payer.call_for("during", "hold", "effect");
        assert_eq!(again.receipt(), answer.receipt());
        let again = payer.call_for("done", "hold", "effect");
        assert_eq!(again.receipt(), done.receipt());
    }
    assert_eq!(scene.ledger.doubles("effect"), 0);
}

// N08
#[test]
fn what_was_not_copied_before_a_fail_over_is_lost_and_runs_again() {
    const ORDERS: usize = 20;
    let scene = Scene::sentinels();
    let group = &scene.server;
    let payer = scene.patient_payer();
    let pay = |name: &str, said: &str| {
        let told =
            (0..ORDERS).map(|number| payer.call_for(&format!("{name}-{number}"), "hold", "effect"));
        told.filter(|answer| answer.said() == said).count()
    };
    assert_eq!(pay("copied", "executed"), ORDERS);
    let master = group.master().unwrap();
    master.wait_copied().unwrap();
    master.cut_replicas().unwrap();
    assert_eq!(pay("alone", "executed"), ORDERS);
    group
        .wait_failed_over(group.kill_master().unwrap())
        .unwrap();
    until("the first answer after the fail-over", SOON, || {
        let answer = payer.call_for("first", "hold", "effect");
        need(["executed", "replayed"].contains(&answer.said()), answer)
    })
    .unwrap();
    assert_eq!(pay("copied", "replayed"), ORDERS);
    let lost = pay("alone", "executed");
    println!(
        "of {ORDERS} records that no replica had, {lost} were lost, and their bodies ran again"
    );
    assert_eq!(lost, ORDERS);
    assert_eq!(scene.ledger.doubles("effect"), lost);
}
