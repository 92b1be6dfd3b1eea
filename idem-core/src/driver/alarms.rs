//! Wakers by the moment at which they are due, and the task that wakes them.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::PoisonError;
use std::task::{Poll, Waker};

use crate::primitives::{Instant, Mutex, MutexGuard, Notify, no_later_than};

/// A call that ends early removes its alarm but does not disturb the thread: the thread wakes at
/// the moment it had in mind and looks again. So it is woken about once per limit, not per call.
#[derive(Default)]
pub(crate) struct Alarms {
    set: Mutex<Set>,
    earlier: Notify,
}

#[derive(Default)]
struct Set {
    due: BTreeMap<(Instant, u64), Waker>,
    next_id: u64,
    /// When the thread will look by itself.
    looks_at: Option<Instant>,
}

impl Alarms {
    /// `future`, or `None` if it is not ready by `deadline`.
    pub(crate) async fn by<F: Future>(&self, deadline: Instant, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        let mut alarm = Alarm {
            alarms: self,
            deadline,
            id: None,
        };
        poll_fn(|context| {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            // The first time, an alarm that is due rings at once: no clock is read for it.
            if alarm.is_set() && Instant::now() >= deadline {
                return Poll::Ready(None);
            }
            alarm.set(context.waker());
            Poll::Pending
        })
        .await
    }

    /// Wakes what is due, for ever.
    pub(crate) async fn ring(&self) {
        loop {
            let next = self.wake_what_is_due();
            let earlier = self.earlier.notified();
            match next {
                Some(moment) => no_later_than(moment, earlier).await,
                None => earlier.await,
            }
        }
    }

    fn wake_what_is_due(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut set = self.lock();
        let later = set.due.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut set.due, later);
        set.looks_at = set.due.keys().next().map(|(moment, _)| *moment);
        let next = set.looks_at;
        drop(set);
        for waker in due.into_values() {
            // Somebody else's code, which may panic: the thread is everybody's.
            let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
        }
        next
    }

    /// Whether an alarm is set at this very moment.
    #[cfg(test)]
    pub(super) fn has_any_at(&self, moment: Instant) -> bool {
        self.lock().due.keys().any(|(due, _)| *due == moment)
    }

    fn lock(&self) -> MutexGuard<'_, Set> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Alarm<'a> {
    alarms: &'a Alarms,
    deadline: Instant,
    id: Option<u64>,
}

impl Alarm<'_> {
    fn is_set(&self) -> bool {
        self.id.is_some()
    }

    fn set(&mut self, waker: &Waker) {
        let mut set = self.alarms.lock();
        let id = *self.id.get_or_insert_with(|| {
            set.next_id += 1;
            set.next_id
        });
        let place = (self.deadline, id);
        let replaced = match set.due.get(&place) {
            Some(known) if known.will_wake(waker) => None,
            _ => set.due.insert(place, waker.clone()),
        };
        let is_earlier = set.looks_at.is_none_or(|moment| self.deadline < moment);
        if is_earlier {
            set.looks_at = Some(self.deadline);
        }
        drop(set);
        // Dropping a waker is somebody else's code, and may end a task with alarms of its own.
        drop(replaced);
        if is_earlier {
            self.alarms.earlier.notify_one();
        }
    }
}

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            let waker = self.alarms.lock().due.remove(&(self.deadline, id));
            // As above: outside of the lock.
            drop(waker);
        }
    }
}
