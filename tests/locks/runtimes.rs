//! Guards that outlive their runtime, and runtimes that take guards with them.

use std::sync::mpsc;

use idem_core::LockGuard;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use crate::rig::Rig;
use crate::scene::{held, record, until_free};

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn several_threads() -> Runtime {
    Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

// X03
#[test]
fn a_guard_dropped_after_its_runtime_has_ended_is_released() {
    for runtime in [current_thread(), several_threads()] {
        let rig = Rig::new();
        let guard = runtime.block_on(held(&rig));
        drop(runtime);
        drop(guard);
        current_thread().block_on(until_free(&rig));
    }
}

// X03
#[test]
fn guards_that_a_runtime_takes_down_with_it_are_released() {
    for runtime in [current_thread(), several_threads()] {
        let rig = Rig::new();
        let task = {
            let rig = rig.clone();
            let (sender, held_now) = mpsc::channel();
            let task = runtime.spawn(async move {
                let _guard = held(&rig).await;
                sender.send(()).unwrap();
                std::future::pending::<()>().await;
            });
            runtime.block_on(async {
                while held_now.try_recv().is_err() {
                    tokio::task::yield_now().await;
                }
            });
            task
        };
        runtime.shutdown_background();
        drop(task);
        current_thread().block_on(until_free(&rig));
    }
}

// X03
#[test]
fn a_local_set_may_end_with_guards_in_it() {
    let rig = Rig::new();
    let runtime = current_thread();
    let local = LocalSet::new();
    let guard: LockGuard = local.block_on(&runtime, held(&rig));
    local.spawn_local(async move {
        let _guard = guard;
        std::future::pending::<()>().await;
    });
    local.block_on(&runtime, tokio::task::yield_now());
    assert!(runtime.block_on(record(&rig)).is_some());
    drop(runtime);
    drop(local);
    current_thread().block_on(until_free(&rig));
}

#[test]
fn a_guard_is_released_on_another_runtime_than_it_was_acquired_on() {
    let rig = Rig::new();
    let guard = current_thread().block_on(held(&rig));
    several_threads().block_on(guard.release()).unwrap();
    assert!(current_thread().block_on(record(&rig)).is_none());
}
