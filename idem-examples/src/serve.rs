//! Serving, and stopping without leaving anybody in doubt.

use std::future::{Future, IntoFuture};
use std::io;
use std::time::Duration;

use axum::Router;
use idem_core::Idempotency;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::sleep;

/// How long open requests, and then running bodies, may go on after the signal; messages likewise.
const PATIENCE: Duration = Duration::from_secs(10);

/// Serves until SIGTERM or ctrl-c; then takes no new request, answers those it has, and lets the
/// bodies that their clients no longer wait for come to their end.
///
/// # Errors
/// If signals can not be listened to, or the socket fails.
pub async fn until_told_to_stop(
    listener: TcpListener,
    router: Router,
    idem: &Idempotency,
) -> anyhow::Result<()> {
    let told_to_stop = told_to_stop()?;
    let (stop, mut stopping) = watch::channel(false);
    let mut told = stopping.clone();
    let serving = axum::serve(listener, router).with_graceful_shutdown(async move {
        let _ = told.wait_for(|stop| *stop).await;
    });
    let signalled = async move {
        told_to_stop.await;
        tracing::info!("stopping");
        let _ = stop.send(true);
        std::future::pending::<()>().await;
    };
    let out_of_patience = async move {
        let _ = stopping.wait_for(|stop| *stop).await;
        sleep(PATIENCE).await;
    };
    tokio::select! {
        served = serving.into_future() => served?,
        () = signalled => {}
        // A client that never finishes its request must not keep us.
        () = out_of_patience => {}
    }
    let stopped = idem.drain(PATIENCE).await;
    if stopped > 0 {
        tracing::warn!(
            stopped,
            "attempts were stopped; their keys will be recovered"
        );
    }
    Ok(())
}

/// Lets work that ends by itself once it is told to stop come to its end, but not for ever: a broker
/// that does not answer, or a body that hangs, must not keep us.
pub async fn within_patience(work: impl Future<Output = ()>, told: impl Future<Output = ()>) {
    if !ends_within(PATIENCE, work, told).await {
        tracing::warn!("messages in work were let go; the broker delivers them again");
    }
}

async fn ends_within(
    patience: Duration,
    work: impl Future<Output = ()>,
    told: impl Future<Output = ()>,
) -> bool {
    let out_of_patience = async {
        told.await;
        sleep(patience).await;
    };
    tokio::select! {
        () = work => true,
        () = out_of_patience => false,
    }
}

/// Ends at SIGTERM or ctrl-c.
///
/// # Errors
/// If signals can not be listened to.
pub fn told_to_stop() -> io::Result<impl Future<Output = ()>> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn work_that_does_not_stop_when_told_is_let_go() {
        let patience = Duration::from_millis(10);
        assert!(!ends_within(patience, pending(), ready(())).await);
    }

    #[tokio::test]
    async fn work_is_not_hurried_before_it_is_told_to_stop() {
        let work = sleep(Duration::from_millis(50));
        assert!(ends_within(Duration::ZERO, work, pending()).await);
    }
}
