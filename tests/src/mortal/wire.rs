//! The wire between this process and its server, on which it can die: after bytes have left, or
//! when the answer is there and nobody has heard it.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::thread;

use anyhow::{Context, Result};

use super::trap;

const HOST: &str = "127.0.0.1:";
const PIECE: usize = 64 * 1024;

/// The same URL, by way of a wire of this process. For servers on 127.0.0.1.
pub fn through(url: &str) -> Result<String> {
    let (before, rest) = url.split_once(HOST).context("no server on this machine")?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (server, after) = rest.split_at(digits);
    let server = server.parse().context("no port")?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let own = listener.local_addr()?.port();
    thread::Builder::new().spawn(move || serve(&listener, server))?;
    Ok(format!("{before}{HOST}{own}{after}"))
}

fn serve(listener: &TcpListener, server: u16) {
    for client in listener.incoming().map_while(Result::ok) {
        // A connection that cannot be made is closed, which its client sees.
        let _ = join(client, server);
    }
}

fn join(client: TcpStream, server: u16) -> Result<()> {
    let server = TcpStream::connect((Ipv4Addr::LOCALHOST, server))?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = (client.try_clone()?, client);
    let (from_server, to_server) = (server.try_clone()?, server);
    thread::Builder::new()
        .spawn(move || carry(from_client, to_server, trap::sending, trap::sent))?;
    thread::Builder::new().spawn(move || carry(from_server, to_client, trap::answered, drop))?;
    Ok(())
}

/// Carries bytes until either side ends.
fn carry<T>(mut from: TcpStream, mut to: TcpStream, before: impl Fn() -> T, after: impl Fn(T)) {
    let mut piece = vec![0; PIECE];
    while let Ok(length @ 1..) = from.read(&mut piece) {
        let about = before();
        if to.write_all(&piece[..length]).is_err() {
            break;
        }
        after(about);
    }
    let _ = to.shutdown(Shutdown::Both);
}
