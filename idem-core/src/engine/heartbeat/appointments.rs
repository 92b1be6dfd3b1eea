//! What wants attention at its moment, and the one task that gives it.

use std::collections::HashMap;
use std::sync::PoisonError;

use crate::primitives::{Instant, Mutex, MutexGuard, Notify, no_later_than};

/// As with the driver's alarms, what is removed early leaves the task alone: it wakes when it meant
/// to and looks again.
#[derive(Debug)]
pub(crate) struct Appointments<T> {
    book: Mutex<Book<T>>,
    earlier: Notify,
}

#[derive(Debug)]
struct Book<T> {
    entries: HashMap<u64, Entry<T>>,
    next_id: u64,
    /// When the task will look by itself. A new task looks at once, whatever this says.
    looks_at: Option<Instant>,
    has_task: bool,
}

#[derive(Debug)]
struct Entry<T> {
    what: T,
    due: Instant,
}

impl<T> Default for Appointments<T> {
    fn default() -> Self {
        let book = Book {
            entries: HashMap::new(),
            next_id: 0,
            looks_at: None,
            has_task: false,
        };
        Self {
            book: Mutex::new(book),
            earlier: Notify::default(),
        }
    }
}

impl<T> Appointments<T> {
    /// Enters `what`, under the number given; has a task started if there is none.
    pub(crate) fn add(&self, what: T, due: Instant, start: impl FnOnce()) -> u64 {
        let mut book = self.book();
        book.next_id += 1;
        let id = book.next_id;
        book.entries.insert(id, Entry { what, due });
        let has_task = std::mem::replace(&mut book.has_task, true);
        let is_earlier = book.looks_at.is_none_or(|moment| due < moment);
        if is_earlier {
            book.looks_at = Some(due);
        }
        drop(book);
        if !has_task {
            start();
        } else if is_earlier {
            self.wake();
        }
        id
    }

    /// What was entered under this number, to be dropped outside the lock.
    pub(crate) fn remove(&self, id: u64) -> Option<T> {
        let removed = self.book().entries.remove(&id);
        removed.map(|entry| entry.what)
    }

    /// Sets another moment, not before the one that there is: the task is not woken for it.
    pub(crate) fn put_off(&self, id: u64, until: impl FnOnce(&mut T) -> Instant) {
        if let Some(entry) = self.book().entries.get_mut(&id) {
            entry.due = until(&mut entry.what);
        }
    }

    /// What `take` makes of whatever is due, with the moment at which it is due again, and when to
    /// look next. What is due by `soon` goes along, if anything is due now.
    pub(crate) fn take_due<D>(
        &self,
        now: Instant,
        soon: Instant,
        mut take: impl FnMut(u64, &mut T) -> (D, Instant),
    ) -> (Vec<D>, Option<Instant>) {
        let mut book = self.book();
        let mut taken = Vec::new();
        if book.first_due().is_some_and(|due| due <= now) {
            for (id, entry) in &mut book.entries {
                if entry.due <= soon {
                    let (what, again) = take(*id, &mut entry.what);
                    entry.due = again;
                    taken.push(what);
                }
            }
        }
        book.looks_at = book.first_due();
        (taken, book.looks_at)
    }

    /// What `choose` makes of whatever it wants.
    pub(crate) fn filter_map<R>(&self, choose: impl Fn(u64, &T) -> Option<R>) -> Vec<R> {
        let book = self.book();
        let entries = book.entries.iter();
        entries
            .filter_map(|(id, entry)| choose(*id, &entry.what))
            .collect()
    }

    /// The task's sleep: until `next`, or until it is woken.
    pub(crate) async fn sleep(&self, next: Option<Instant>) {
        let earlier = self.earlier.notified();
        match next {
            Some(moment) => no_later_than(moment, earlier).await,
            None => earlier.await,
        }
    }

    /// Wakes the task; if it does not sleep, it will not do so the next time.
    pub(crate) fn wake(&self) {
        self.earlier.notify_one();
    }

    /// The task has ended. Has another one started for what is left, if it `goes_on`.
    pub(crate) fn ended(&self, goes_on: bool, start: impl FnOnce()) {
        let mut book = self.book();
        book.has_task = goes_on && !book.entries.is_empty();
        let has_task = book.has_task;
        drop(book);
        if has_task {
            start();
        }
    }

    fn book(&self) -> MutexGuard<'_, Book<T>> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Book<T> {
    fn first_due(&self) -> Option<Instant> {
        self.entries.values().map(|entry| entry.due).min()
    }
}
