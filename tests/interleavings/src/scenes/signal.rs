//! Two who are busy, and two who wait until nobody is.

use std::sync::Arc;

use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::{future, thread};

use super::signal::Signal;

#[derive(Default)]
struct Busy {
    count: AtomicUsize,
    idle: Signal,
}

pub(crate) fn scene() {
    let busy = Arc::new(Busy::default());
    busy.count.store(2, Ordering::SeqCst);
    let mut threads = Vec::new();
    for _ in 0..2 {
        let busy = busy.clone();
        threads.push(thread::spawn(move || {
            busy.count.fetch_sub(1, Ordering::SeqCst);
            // Also where others still are: who waits has to ask again.
            busy.idle.say();
        }));
    }
    for _ in 0..2 {
        let busy = busy.clone();
        threads.push(thread::spawn(move || {
            let is_idle = || busy.count.load(Ordering::SeqCst) == 0;
            future::block_on(busy.idle.until(is_idle));
            assert!(is_idle(), "somebody is busy");
        }));
    }
    for thread in threads {
        thread.join().expect("a thread that ends");
    }
}
