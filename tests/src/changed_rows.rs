//! Sessions in which MariaDB counts the rows that an UPDATE has changed. Those of sqlx ask for the
//! rows that it has found, as their handshake says; other drivers, and proxies that speak for them, do
//! not.
#![allow(
    clippy::missing_panics_doc,
    reason = "for tests only, where what does not work panics"
)]

use std::io;
use std::net::Ipv4Addr;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

/// `CLIENT_FOUND_ROWS`, in the lowest byte of what a client says that it can.
const FOUND_ROWS: u8 = 2;

/// The length of a packet, and its number.
const HEADER: usize = 4;

/// A port that stands before the server, whose sessions count so. Without TLS: what is encrypted can
/// not be changed, which [`is_counting_them`] would show.
pub async fn counting_changed_rows(server: u16) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            // That a session ends is no fault.
            tokio::spawn(pass(client, server));
        }
    });
    port
}

/// Passes on a session, but for one wish of its client.
async fn pass(mut client: TcpStream, server: u16) -> io::Result<()> {
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await?;
    let mut header = [0; HEADER];
    server.read_exact(&mut header).await?;
    client.write_all(&header).await?;
    let [low, middle, high, _] = header;
    let greeting = u32::from_le_bytes([low, middle, high, 0]);
    copy(&mut (&mut server).take(greeting.into()), &mut client).await?;
    let mut wishes = [0; HEADER + 1];
    client.read_exact(&mut wishes).await?;
    wishes[HEADER] &= !FOUND_ROWS;
    server.write_all(&wishes).await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

/// Whether an UPDATE that finds a row and changes nothing counts none.
pub async fn is_counting_them(connection: &mut sqlx::MySqlConnection) -> bool {
    let table = "CREATE TEMPORARY TABLE one AS SELECT 1 AS number";
    sqlx::raw_sql(table)
        .execute(&mut *connection)
        .await
        .unwrap();
    let update = sqlx::query("UPDATE one SET number = 1");
    let updated = update.execute(&mut *connection).await.unwrap();
    let drop = "DROP TEMPORARY TABLE one";
    sqlx::raw_sql(drop).execute(connection).await.unwrap();
    updated.rows_affected() == 0
}
