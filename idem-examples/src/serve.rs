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

/// How long open requests, and then running bodies, may go on after the signal.
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
