//! How often a client has to wait for a PostgreSQL server.
#![allow(
    clippy::missing_panics_doc,
    reason = "for tests only, where what does not work panics"
)]

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};

/// A port that stands before the server, and how often a client had to wait for it.
pub async fn counting(server: u16) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = count.clone();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server))
                .await
                .unwrap();
            let (mut asks, answered) = client.into_split();
            let (answers, mut asked) = server.into_split();
            tokio::spawn(count_ready(answers, counted.clone(), answered));
            tokio::spawn(async move { copy(&mut asks, &mut asked).await });
        }
    });
    (port, count)
}

/// Counts how often the server says that it is ready for the next message.
async fn count_ready(
    mut from: impl AsyncRead + Unpin,
    count: Arc<AtomicUsize>,
    mut to: impl AsyncWriteExt + Unpin,
) {
    let mut header = [0; 5];
    while from.read_exact(&mut header).await.is_ok() {
        let [kind, length @ ..] = header;
        let mut message = vec![0; u32::from_be_bytes(length) as usize - length.len()];
        from.read_exact(&mut message).await.unwrap();
        if kind == b'Z' {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let message = [&header[..], &message].concat();
        if to.write_all(&message).await.is_err() {
            return;
        }
    }
}
