//! Where this process dies. Nothing happens at any point in a process that has set no trap.

use std::process::{abort, exit};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Signal, getpid, kill_process};

use super::Point;

static TRAP: OnceLock<(Point, u32)> = OnceLock::new();
/// Since when sends are counted.
static BEGAN: OnceLock<Instant> = OnceLock::new();
/// How many there were.
static SENDS: AtomicU32 = AtomicU32::new(0);
/// Nobody sees what is sent: it goes into a file.
static NO_WIRE: AtomicBool = AtomicBool::new(false);
/// Then a send counts as this long; a transaction in a file takes a few dozen.
const SEND: Duration = Duration::from_micros(100);
static ENDS_WITH_AN_ANSWER: AtomicBool = AtomicBool::new(false);

/// This process dies at `point`, at the `nth` send if it is one of those where something is sent.
/// Only the first trap counts.
pub fn set(point: Point, nth: u32) {
    let _ = TRAP.set((point, nth.max(1)));
}

/// Whether this process is to die.
#[must_use]
pub fn is_set() -> bool {
    TRAP.get().is_some()
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
        let _ = BEGAN.set(Instant::now());
        if NO_WIRE.load(Ordering::SeqCst) {
            die_in(SEND.saturating_mul(nth - 1));
        }
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

/// The end of what is sent at `point`. If this is the point, there were less sends than it was told
/// to die at: it says how many, and ends in peace.
pub fn all_sent(point: Point) {
    let Some((_, nth)) = TRAP.get().filter(|(set, _)| *set == point) else {
        return;
    };
    let all = if NO_WIRE.load(Ordering::SeqCst) {
        let time = BEGAN.get().map_or(Duration::ZERO, Instant::elapsed);
        time.as_micros() / SEND.as_micros() + 1
    } else {
        let sends = SENDS.load(Ordering::SeqCst);
        if sends >= *nth {
            // It is being killed, and its answer was quicker.
            stay();
        }
        sends.into()
    };
    println!("{all}");
    exit(0);
}

/// Something is about to be sent: the how manieth that is counted.
pub(super) fn sending() -> Option<u32> {
    BEGAN.get()?;
    Some(SENDS.fetch_add(1, Ordering::SeqCst) + 1)
}

/// It has been sent.
pub(super) fn sent(number: Option<u32>) {
    if let (Some(number), Some((_, nth))) = (number, TRAP.get())
        && number == *nth
    {
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
