//! Whether a result was given before the store knew of it, or that of a lock which was not held to its
//! end: the engine says so in an event, within the call.

use std::cell::Cell;
use std::future::Future;

use anyhow::Result;
use idem_tests::events::Events;
use tracing::Level;

/// How events begin that say so.
const UNSURE: [&str; 2] = ["message=unconfirmed", "message=a lock was not held"];

tokio::task_local! {
    static UNCONFIRMED: Cell<bool>;
}

/// Listens to the engine's events in this process.
pub(crate) fn listen() -> Result<()> {
    let hear = |text: &str| {
        if UNSURE.iter().any(|message| text.contains(message)) {
            // Outside of a call nobody is given a result.
            let _ = UNCONFIRMED.try_with(|unconfirmed| unconfirmed.set(true));
        }
    };
    let events = Events::of(Level::ERROR, hear);
    Ok(tracing::subscriber::set_global_default(events)?)
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
