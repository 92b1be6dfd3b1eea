//! What the engine says in its events.

use std::fmt::{Debug, Write};

use tracing::field::Field;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Hears the engine's events of one level, each as the text of its fields, and nothing else.
#[derive(Debug)]
pub struct Events<F> {
    level: Level,
    hear: F,
}

impl<F: Fn(&str) + Send + Sync + 'static> Events<F> {
    /// Calls `hear` for each event, in whose text fields stand as `name=value`.
    pub const fn of(level: Level, hear: F) -> Self {
        Self { level, hear }
    }
}

impl<F: Fn(&str) + Send + Sync + 'static> Subscriber for Events<F> {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == self.level && metadata.target().starts_with("idem_core")
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = String::new();
        event.record(&mut |field: &Field, value: &dyn Debug| {
            // Writing to a string can not fail.
            let _ = write!(text, "{}={value:?} ", field.name());
        });
        (self.hear)(&text);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
