//! Where this process dies. Nothing happens at any point in a process that has set no trap.

use std::process::abort;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rustix::process::{Signal, getpid, kill_process};

use super::Point;

static TRAP: OnceLock<(Point, u32)> = OnceLock::new();
/// How many sends are left to live; 0 if nobody counts.
static SENDS: AtomicU32 = AtomicU32::new(0);
/// Nobody sees what is sent: it goes into a file.
static NO_WIRE: AtomicBool = AtomicBool::new(false);
/// Then a send counts as this long; a transaction in a file takes a few.
const SEND: Duration = Duration::from_millis(1);
static ENDS_WITH_AN_ANSWER: AtomicBool = AtomicBool::new(false);

/// This process dies at `point`, at the `nth` send if it is one of those where something is sent.
/// Only the first trap counts.
pub fn set(point: Point, nth: u32) {
    let _ = TRAP.set((point, nth.max(1)));
}

/// Whether this process dies at `point`.
#[must_use]
pub fn is(point: Point) -> bool {
    TRAP.get().is_some_and(|(set, _)| *set == point)
}

/// A line of a body: if this is the point, says `here` and stays until it is killed.
pub fn at(point: Point) {
    if is(point) {
        println!("here");
        stay();
    }
}

/// From here on sends are counted, if this is the point.
pub fn count_sends(point: Point) {
    if let Some((_, nth)) = TRAP.get().filter(|(set, _)| *set == point) {
        if NO_WIRE.load(Ordering::SeqCst) {
            die_in(SEND * (*nth - 1));
        }
        SENDS.store(*nth, Ordering::SeqCst);
    }
}

/// This process has no wire: instead of sends, time is counted.
pub fn count_time() {
    NO_WIRE.store(true, Ordering::SeqCst);
}

/// Meanwhile this thread goes on.
fn die_in(time: Duration) {
    let timer = move || {
        thread::sleep(time);
        die()
    };
    // Without a thread it dies here.
    if thread::Builder::new().spawn(timer).is_err() {
        die();
    }
}

/// The end of what is sent at `point`, if it was less than was to be counted.
pub fn all_sent(point: Point) {
    if is(point) {
        die();
    }
}

/// Something has been sent.
pub(super) fn sent() {
    let count = SENDS.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
        left.checked_sub(1)
    });
    if count == Ok(1) {
        die();
    }
}

/// From here on the next answer is not heard, if this is the point.
pub fn hear_nothing(point: Point) {
    if is(point) {
        ENDS_WITH_AN_ANSWER.store(true, Ordering::SeqCst);
    }
}

/// Something was answered.
pub fn answered() {
    if ENDS_WITH_AN_ANSWER.load(Ordering::SeqCst) {
        die();
    }
}

/// kill -9 by its own hand.
pub fn die() -> ! {
    if kill_process(getpid(), Signal::KILL).is_err() {
        abort();
    }
    stay()
}

fn stay() -> ! {
    loop {
        thread::park();
    }
}
