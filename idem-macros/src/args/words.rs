//! What sets the attributes apart: their names, and which options each has.

use super::{HABITS, OPTIONS, unknown};
use crate::mistakes::{list, nearest};

/// The words of one attribute.
pub(crate) struct Words {
    /// How messages call it.
    pub(crate) name: &'static str,
    options: &'static [&'static str],
    /// What is said about an option that it does not have.
    pub(super) unknown: fn(&str) -> String,
}

pub(crate) const IDEMPOTENT: Words = Words {
    name: "idempotent",
    options: OPTIONS,
    unknown,
};

pub(crate) const LOCKED: Words = Words {
    name: "locked",
    options: LOCK_OPTIONS,
    unknown: unknown_of_lock,
};

impl Words {
    pub(super) fn know(&self, option: &str) -> bool {
        self.options.contains(&option)
    }
}

const LOCK_OPTIONS: &[&str] = &[
    "prefix", "key", "lease", "wait", "message", "engine", "crate",
];

/// What people write on a lock, and what it is called here.
const LOCK_HABITS: &[(&str, &str)] = &[
    ("expire", "`lease`, which is renewed while the body runs"),
    ("ttl", "`lease`, which is renewed while the body runs"),
    ("watchdog", "`lease`, which is renewed while the body runs"),
    (
        "timeout",
        "`wait`, or `lease` (how long a silent holder keeps the lock)",
    ),
    ("wait_timeout", "`wait`"),
    ("acquire_timeout", "`wait`"),
    (
        "in_progress",
        "`wait`; without it a call on a held lock is refused",
    ),
];

fn unknown_of_lock(name: &str) -> String {
    let snake = crate::key::snake_case(name);
    let shared = HABITS
        .iter()
        .filter(|(_, ours)| LOCK_OPTIONS.iter().any(|option| names(ours, option)));
    if let Some((_, ours)) = LOCK_HABITS
        .iter()
        .chain(shared)
        .find(|(habit, _)| *habit == snake)
    {
        return format!("there is no option `{name}`; on a lock it is {ours}");
    }
    match nearest(&snake, LOCK_OPTIONS.iter().copied()) {
        Some(near) => format!("there is no option `{name}`; did you mean `{near}`?"),
        None => format!(
            "a lock has no option `{name}`; its options are {}",
            list(LOCK_OPTIONS.iter().copied())
        ),
    }
}

fn names(ours: &str, option: &str) -> bool {
    ours.strip_prefix('`')
        .and_then(|rest| rest.strip_prefix(option))
        .is_some_and(|rest| rest.starts_with('`'))
}
