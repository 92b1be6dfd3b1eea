//! Runtimes that end, and none at all.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use idem_core::Policy;
use idem_core::record::Status;
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use crate::rig::{Bodies, Held, Rig, dropped_after, until};

fn current_thread() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

/// Runs a future where no runtime is.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

// X03, N33
#[test]
fn a_call_dropped_after_its_runtime_is_gone_is_abandoned() {
    let (rig, held) = (Rig::new(), Held::new());
    let runtime = current_thread();
    let body = async || {
        held.stay().await;
        Ok(1)
    };
    let mut call = Box::pin(rig.run(Policy::new(), body));
    assert!(runtime.block_on(dropped_after(1, call.as_mut())).is_none());
    drop(runtime);
    drop(call);
    block_on(rig.until_idle());
    assert!(block_on(rig.is_abandoned()));
}

// X03
#[test]
fn calls_that_a_runtime_takes_down_with_it_are_abandoned() {
    for runtime in [
        current_thread(),
        Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap(),
    ] {
        let (rig, held) = (Rig::new(), Held::new());
        let call = runtime.block_on(rig.hold(Policy::new(), &held));
        runtime.shutdown_background();
        drop(call);
        // A runtime of several threads lets go in its own time.
        block_on(rig.until_abandoned());
    }
}

// X03
#[test]
fn a_local_set_may_end_with_calls_in_it() {
    let (rig, held) = (Rig::new(), Held::new());
    let runtime = current_thread();
    let local = LocalSet::new();
    let (running, body) = (rig.clone(), held.clone());
    local.spawn_local(async move {
        let not_send = std::rc::Rc::new(1);
        let body = async || {
            body.stay().await;
            Ok(*not_send)
        };
        running.run(Policy::new(), body).await
    });
    local.block_on(&runtime, held.entered());
    drop(runtime);
    drop(local);
    block_on(rig.until_idle());
    assert!(block_on(rig.is_abandoned()));
}

// N33
#[test]
fn an_engine_goes_from_one_runtime_to_the_next() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    for _ in 0..20 {
        let result = current_thread().block_on(rig.count(Policy::new(), &bodies));
        assert_eq!(result.unwrap(), 1);
    }
    assert_eq!(bodies.count(), 1);
}

#[test]
fn a_call_needs_no_runtime_at_all() {
    let (rig, bodies) = (Rig::new(), Bodies::default());
    assert_eq!(block_on(rig.count(Policy::new(), &bodies)).unwrap(), 1);
    assert_eq!(block_on(rig.count(Policy::new(), &bodies)).unwrap(), 1);
    assert_eq!(bodies.count(), 1);
}

#[test]
fn a_call_without_a_runtime_waits_for_one_with_one() {
    let (rig, bodies, held) = (Rig::new(), Bodies::default(), Held::new());
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let first = runtime.block_on(rig.hold(Policy::new(), &held));
    let waiting = {
        let (rig, bodies) = (rig.clone(), bodies.clone());
        let policy = Policy::new()
            .wait_in_progress()
            .wait(Duration::from_secs(10));
        thread::spawn(move || block_on(rig.count(policy, &bodies)))
    };
    runtime.block_on(rig.store.until_calls(idem_tests::faulty::Verb::Claim, 3));
    held.release();
    assert_eq!(runtime.block_on(first).unwrap().unwrap(), 1);
    assert_eq!(waiting.join().unwrap().unwrap(), 1);
    assert_eq!(bodies.count(), 0);
}

#[test]
fn an_engine_that_is_dropped_takes_its_calls_end_with_it() {
    let (rig, held) = (Rig::new(), Held::new());
    let store = rig.store.clone();
    let runtime = current_thread();
    let call = runtime.block_on(rig.hold(Policy::new(), &held));
    let view = rig.clone();
    drop(rig);
    held.release();
    assert_eq!(runtime.block_on(call).unwrap().unwrap(), 1);
    assert_eq!(block_on(view.status()), Some(Status::Success));
    drop(view);
    drop(runtime);
    // Nothing of the engine keeps the store: this handle is the last one.
    block_on(until("the engine is gone", async || store.is_alone()));
}
