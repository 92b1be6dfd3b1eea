use std::time::Duration;

use idem_tests::process::Worker;
use idem_tests::wait::{need, until};

use crate::{SOON, has_process};

fn echo() -> Worker {
    Worker::start("cat", [] as [&str; 0]).unwrap()
}

#[test]
fn a_worker_answers_lines_and_ends_with_its_input() {
    let worker = echo();
    worker.say("pay A-1").unwrap();
    worker.say("pay A-2").unwrap();
    assert_eq!(worker.hear(SOON).unwrap(), "pay A-1");
    assert_eq!(worker.hear(SOON).unwrap(), "pay A-2");
    assert!(worker.finish(SOON).unwrap().success());
    assert!(worker.hear(SOON).is_err());
}

#[test]
fn a_frozen_worker_answers_only_after_it_is_thawed() {
    let worker = echo();
    worker.freeze().unwrap();
    worker.say("late").unwrap();
    assert!(worker.hear(Duration::from_millis(50)).is_err());
    worker.thaw().unwrap();
    assert_eq!(worker.hear(SOON).unwrap(), "late");
}

#[test]
fn a_killed_worker_is_gone_and_says_so() {
    let worker = echo();
    worker.kill().unwrap();
    assert!(!has_process(worker.id()));
    assert!(worker.hear(SOON).is_err());
    assert!(
        worker
            .freeze()
            .unwrap_err()
            .to_string()
            .contains("has ended")
    );
}

#[test]
fn a_dropped_worker_is_gone() {
    let worker = echo();
    let id = worker.id();
    drop(worker);
    assert!(!has_process(id));
}

#[test]
fn a_test_that_is_killed_takes_its_children_along() {
    let test = Worker::start(env!("CARGO_BIN_EXE_harness-parent"), ["sleep", "60"]).unwrap();
    let child = test.hear(SOON).unwrap().parse().unwrap();
    assert!(has_process(child));
    test.kill().unwrap();
    until("the end of the child", SOON, || {
        need(!has_process(child), child)
    })
    .unwrap();
}
