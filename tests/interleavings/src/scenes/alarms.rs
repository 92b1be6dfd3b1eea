//! Three calls with deadlines, and one that ends before its own; time passes, the last deadline
//! comes. Each of them hears of it.

use std::future::pending;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};

use shuttle::{future, thread};

use super::alarms::Alarms;
use crate::primitives::Instant;

const DEADLINES: [u64; 3] = [2, 1, 2];
const FAR: u64 = 9;

pub(crate) fn scene() {
    Instant::begin();
    let alarms = Arc::new(Alarms::default());
    let ringing = alarms.clone();
    drop(future::spawn(async move { ringing.ring().await }));

    let mut calls = vec![thread::spawn(for_a_while(alarms.clone()))];
    for deadline in DEADLINES {
        calls.push(thread::spawn(until(alarms.clone(), deadline)));
    }
    for moment in 1..=2 {
        Instant(moment).come();
    }
    for call in calls {
        call.join().expect("a call that ends");
    }
}

fn until(alarms: Arc<Alarms>, deadline: u64) -> impl FnOnce() {
    move || {
        let never = alarms.by(Instant(deadline), pending::<()>());
        assert!(future::block_on(never).is_none());
        assert!(Instant::now() >= Instant(deadline), "too early");
    }
}

/// Sets an alarm far away, and goes: nothing of it is left.
fn for_a_while(alarms: Arc<Alarms>) -> impl FnOnce() {
    move || {
        let nobody = Arc::new(Nobody);
        let waker = Waker::from(nobody.clone());
        let mut call = Box::pin(alarms.by(Instant(FAR), pending::<()>()));
        let polled = call.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
        drop((call, waker));
        assert_eq!(Arc::strong_count(&nobody), 1, "an alarm is left");
    }
}

struct Nobody;

impl Wake for Nobody {
    fn wake(self: Arc<Self>) {}
}
