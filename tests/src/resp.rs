//! The smallest Redis client that can ask a server anything: one connection per question, so that
//! it notices nothing of what a test does to other connections.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail};

const LIMIT: Duration = Duration::from_secs(5);

/// An answer in RESP2.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A status or a bulk string.
    Bytes(Vec<u8>),
    /// An integer.
    Int(i64),
    /// An array.
    List(Vec<Reply>),
    /// A null bulk string or array.
    Nil,
    /// An error inside an array; an error as the whole answer is an `Err`.
    Error(String),
}

impl fmt::Display for Reply {
    /// As `redis-cli` prints it into a pipe: bytes as they are (lossily), a list one item a line, nil as `(nil)`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => out.write_str(&String::from_utf8_lossy(bytes)),
            Self::Int(number) => number.fmt(out),
            Self::Nil => out.write_str("(nil)"),
            Self::Error(text) => out.write_str(text),
            Self::List(items) => {
                let lines: Vec<String> = items.iter().map(ToString::to_string).collect();
                out.write_str(&lines.join("\n"))
            }
        }
    }
}

/// Sends one command on a new connection, after AUTH with `password` if there is one.
///
/// # Errors
/// When the server cannot be reached, is silent for 5 s, or answers with an error, whose text is
/// then the error's.
pub fn ask<A: AsRef<[u8]>>(
    server: SocketAddr,
    password: Option<&str>,
    command: &[A],
) -> Result<Reply> {
    let stream = TcpStream::connect_timeout(&server, LIMIT)
        .with_context(|| format!("no server at {server}"))?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    let mut wire = BufReader::new(stream);
    if let Some(password) = password {
        call(&mut wire, &["AUTH", password])?;
    }
    call(&mut wire, command)
}

fn call<A: AsRef<[u8]>>(wire: &mut BufReader<TcpStream>, command: &[A]) -> Result<Reply> {
    wire.get_mut().write_all(&encode(command))?;
    match read(wire)? {
        Reply::Error(text) => bail!(text),
        reply => Ok(reply),
    }
}

fn encode<A: AsRef<[u8]>>(command: &[A]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
    for part in command.iter().map(AsRef::as_ref) {
        bytes.extend_from_slice(format!("${}\r\n", part.len()).as_bytes());
        bytes.extend_from_slice(part);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn read(wire: &mut BufReader<TcpStream>) -> Result<Reply> {
    let mut line = String::new();
    wire.read_line(&mut line)?;
    let Some((kind, rest)) = line.trim_end().split_at_checked(1) else {
        bail!("the server closed the connection");
    };
    Ok(match kind {
        "+" => Reply::Bytes(rest.as_bytes().to_vec()),
        "-" => Reply::Error(rest.to_owned()),
        ":" => Reply::Int(rest.parse()?),
        "$" => bulk(wire, rest.parse()?)?,
        "*" => list(wire, rest.parse()?)?,
        _ => bail!("no RESP2 reply: {line:?}"),
    })
}

fn bulk(wire: &mut BufReader<TcpStream>, length: i64) -> Result<Reply> {
    let Ok(length) = usize::try_from(length) else {
        return Ok(Reply::Nil);
    };
    let mut bytes = vec![0; length + 2];
    wire.read_exact(&mut bytes)?;
    bytes.truncate(length);
    Ok(Reply::Bytes(bytes))
}

fn list(wire: &mut BufReader<TcpStream>, length: i64) -> Result<Reply> {
    let Ok(length) = usize::try_from(length) else {
        return Ok(Reply::Nil);
    };
    let items: Result<Vec<Reply>> = (0..length).map(|_| read(wire)).collect();
    Ok(Reply::List(items?))
}
