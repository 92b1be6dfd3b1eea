//! Three who want attention at their moments, and one who goes before his; time passes, the last of
//! those moments comes. The task ends now and then, as by a panic. Each of them gets attention, from
//! one task at a time; when they are gone and the engine with them, the task ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use shuttle::rand::{Rng, thread_rng};
use shuttle::{future, thread};

use super::appointments::Appointments;
use crate::primitives::{Instant, watch};

const MOMENTS: [u64; 3] = [2, 1, 2];
const FAR: u64 = 9;

struct Engine {
    diary: Arc<Diary>,
    running: watch::Sender<()>,
}

#[derive(Default)]
struct Diary {
    appointments: Appointments<watch::Sender<()>>,
    has_task: AtomicBool,
}

struct Task {
    diary: Arc<Diary>,
    engine: Weak<Engine>,
    running: watch::Sender<()>,
}

pub(crate) fn scene() {
    Instant::begin();
    let (running, mut end) = watch::channel(());
    let engine = Arc::new(Engine {
        diary: Arc::default(),
        running,
    });
    let mut threads = vec![thread::spawn(goes(engine.clone()))];
    for moment in MOMENTS {
        threads.push(thread::spawn(waits(engine.clone(), moment)));
    }
    for moment in 1..=2 {
        Instant(moment).come();
    }
    for thread in threads {
        thread.join().expect("somebody who got attention");
    }
    drop(engine);
    let is_running = future::block_on(end.changed()).is_ok();
    assert!(!is_running);
}

fn waits(engine: Arc<Engine>, moment: u64) -> impl FnOnce() {
    move || {
        let (id, mut attention) = enter(&engine, moment);
        let got_it = future::block_on(attention.changed()).is_ok();
        assert!(got_it, "lost");
        assert!(Instant::now() >= Instant(moment), "too early");
        assert!(engine.diary.appointments.remove(id).is_some());
    }
}

fn goes(engine: Arc<Engine>) -> impl FnOnce() {
    move || {
        let (id, attention) = enter(&engine, FAR);
        drop(engine.diary.appointments.remove(id));
        assert!(attention.has_changed().is_err(), "an appointment is left");
    }
}

fn enter(engine: &Arc<Engine>, moment: u64) -> (u64, watch::Receiver<()>) {
    let (sender, attention) = watch::channel(());
    let start = || Task::start(&engine.diary, &Arc::downgrade(engine), &engine.running);
    let appointments = &engine.diary.appointments;
    let id = appointments.add(sender, Instant(moment), start);
    (id, attention)
}

impl Task {
    fn start(diary: &Arc<Diary>, engine: &Weak<Engine>, running: &watch::Sender<()>) {
        let task = Self {
            diary: diary.clone(),
            engine: engine.clone(),
            running: running.clone(),
        };
        drop(future::spawn(task.run()));
    }

    async fn run(self) {
        let is_second = self.diary.has_task.swap(true, Ordering::SeqCst);
        assert!(!is_second, "two tasks");
        let appointments = &self.diary.appointments;
        loop {
            let now = Instant::now();
            let take = |_, sender: &mut watch::Sender<()>| (sender.clone(), Instant(FAR));
            let (due, next) = appointments.take_due(now, now, take);
            let Some(engine) = self.engine.upgrade() else {
                return;
            };
            for sender in due {
                sender.send_replace(());
            }
            if thread_rng().gen_bool(0.5) {
                return;
            }
            drop(engine);
            appointments.sleep(next).await;
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.diary.has_task.store(false, Ordering::SeqCst);
        let goes_on = self.engine.strong_count() > 0;
        let start = || Self::start(&self.diary, &self.engine, &self.running);
        self.diary.appointments.ended(goes_on, start);
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.diary.appointments.wake();
    }
}
