//! Three who wait for one key, again and again, one after the other or together. The first to come
//! begins an attendance, which tells them something once and goes when nobody waits any more; in some
//! runs one of them dies at once. Everybody is told, and attended to for as long as he waits, or told
//! that nobody attends; nobody attends to a key for which somebody waits elsewhere.

use std::sync::Arc;

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Mutex;
use shuttle::{future, thread};

use super::board::Board;
use crate::primitives::{step, watch};

const KEY: u8 = 7;

#[derive(Default)]
struct Process {
    board: Board<u8>,
    attended: Mutex<Vec<watch::Sender<u64>>>,
    /// Who dies; nobody, if there is no such one.
    dies: usize,
}

struct Attendance {
    process: Arc<Process>,
    sender: watch::Sender<u64>,
}

impl Drop for Attendance {
    fn drop(&mut self) {
        self.process.board.give_up(&KEY, &self.sender);
    }
}

const WAITING: usize = 3;
const TIMES: usize = 4;

pub(crate) fn scene() {
    let process = Arc::new(Process {
        dies: thread_rng().gen_range(0..2 * WAITING * TIMES),
        ..Process::default()
    });
    let mut waiting = Vec::new();
    for who in 0..WAITING {
        let process = process.clone();
        waiting.push(thread::spawn(move || {
            for time in 0..TIMES {
                wait(&process, who + WAITING * time);
            }
        }));
    }
    for thread in waiting {
        thread.join().expect("somebody who waits is told");
    }
}

fn wait(process: &Arc<Process>, who: usize) {
    let (mut changes, first) = process.board.join(&KEY);
    if let Some(sender) = first {
        begin(process, sender, who == process.dies);
    }
    let mut is_attended = true;
    while is_attended && *changes.borrow_and_update() == 0 {
        is_attended = future::block_on(changes.changed()).is_ok();
    }
    step();
    step();
    // Then a call looks for itself.
    is_attended &= changes.has_changed().is_ok();
    assert!(is_attended || process.dies < WAITING * TIMES, "nobody attends");
}

fn begin(process: &Arc<Process>, sender: watch::Sender<u64>, dies: bool) {
    {
        let mut attended = process.attended.lock().expect("a lock");
        let is_waited_for = |other: &watch::Sender<u64>| other.receiver_count() > 0;
        assert!(!attended.iter().any(is_waited_for), "two attend to one key");
        if !dies {
            attended.push(sender.clone());
        }
    }
    let attendance = Attendance {
        process: process.clone(),
        sender,
    };
    drop(thread::spawn(move || {
        if !dies {
            future::block_on(attend(attendance));
        }
    }));
}

async fn attend(attendance: Attendance) {
    let Attendance { process, sender } = &attendance;
    step();
    sender.send_modify(|changes| *changes += 1);
    loop {
        sender.closed().await;
        step();
        if process.board.leave(&KEY, sender) {
            return;
        }
    }
}
