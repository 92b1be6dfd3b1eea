//! Whether a result was given before the store knew of it: the engine says so in an event, within
//! the call.

use std::cell::Cell;
use std::fmt::Debug;
use std::future::Future;

use anyhow::Result;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

tokio::task_local! {
    static UNCONFIRMED: Cell<bool>;
}

/// Listens to the engine's events in this process.
pub(crate) fn listen() -> Result<()> {
    Ok(tracing::subscriber::set_global_default(Listener)?)
}

/// Awaits `call`, and says whether its result was given without the store's word.
pub(crate) async fn is_confirmed<T>(call: impl Future<Output = T>) -> (T, bool) {
    UNCONFIRMED
        .scope(Cell::new(false), async {
            let result = call.await;
            (result, !UNCONFIRMED.with(Cell::get))
        })
        .await
}

struct Listener;

impl Subscriber for Listener {
    fn enabled(&self, event: &Metadata<'_>) -> bool {
        event.is_event() && *event.level() == Level::ERROR
    }

    fn event(&self, event: &Event<'_>) {
        event.record(&mut Words);
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

struct Words;

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" && format!("{value:?}").starts_with("unconfirmed") {
            // Outside of a call nobody is given a result.
            let _ = UNCONFIRMED.try_with(|unconfirmed| unconfirmed.set(true));
        }
    }
}
