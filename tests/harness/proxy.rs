use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use idem_tests::proxy::{Mode, Proxy, Then};
use idem_tests::redis::{RedisOptions, RedisServer};
use idem_tests::wait::{need, until};

use crate::SOON;

/// Long enough to believe that nothing comes.
const SILENCE: Duration = Duration::from_millis(100);

const INCR: &[u8] = b"*2\r\n$4\r\nINCR\r\n$1\r\na\r\n";

struct Wire {
    server: RedisServer,
    proxy: Proxy,
}

impl Wire {
    fn new() -> Self {
        let server = RedisServer::start(RedisOptions::new()).unwrap();
        let proxy = Proxy::start(server.address()).unwrap();
        Self { server, proxy }
    }

    fn connect(&self) -> TcpStream {
        let client = TcpStream::connect(self.proxy.address()).unwrap();
        client.set_read_timeout(Some(SOON)).unwrap();
        client
    }

    /// Waits until the server's counter has this value, whoever raised it.
    fn counted(&self, value: &str) {
        let count = || {
            let seen = self.server.cli(&["GET", "a"])?;
            need(seen == value, seen)
        };
        until("the counter", SOON, count).unwrap();
    }
}

/// What arrives next; empty when the connection was closed.
fn hear(client: &mut TcpStream) -> Vec<u8> {
    let mut bytes = [0; 64];
    match client.read(&mut bytes) {
        Ok(length) => bytes[..length].to_vec(),
        Err(error) if error.kind() == ErrorKind::ConnectionReset => Vec::new(),
        Err(error) => panic!("{error}"),
    }
}

fn ask(client: &mut TcpStream) -> Vec<u8> {
    client.write_all(INCR).unwrap();
    hear(client)
}

fn assert_silent(client: &mut TcpStream) {
    client.set_read_timeout(Some(SILENCE)).unwrap();
    let heard = client.read(&mut [0; 1]);
    assert_eq!(heard.unwrap_err().kind(), ErrorKind::WouldBlock);
    client.set_read_timeout(Some(SOON)).unwrap();
}

#[test]
fn a_proxy_that_passes_counts_bytes_and_commands() {
    let wire = Wire::new();
    let mut client = wire.connect();
    assert_eq!(ask(&mut client), b":1\r\n");
    assert_eq!(ask(&mut client), b":2\r\n");
    client.write_all(b"PING\r\n").unwrap();
    assert_eq!(hear(&mut client), b"+PONG\r\n");
    assert_eq!(wire.proxy.bytes(), 2 * INCR.len() as u64 + 6);
    assert_eq!(wire.proxy.commands(), 3);
    assert_eq!(wire.proxy.commands_called("incr"), 2);
}

#[test]
fn a_cut_closes_open_and_new_connections_until_it_is_mended() {
    let wire = Wire::new();
    let mut old = wire.connect();
    assert_eq!(ask(&mut old), b":1\r\n");
    wire.proxy.set(Mode::Cut);
    assert_eq!(hear(&mut old), b"");
    assert_eq!(hear(&mut wire.connect()), b"");
    wire.proxy.set(Mode::Pass);
    assert_eq!(ask(&mut wire.connect()), b":2\r\n");
}

#[test]
fn a_cut_closes_open_connections_however_soon_it_is_mended() {
    let wire = Wire::new();
    let mut old = wire.connect();
    assert_eq!(ask(&mut old), b":1\r\n");
    wire.proxy.set(Mode::Cut);
    wire.proxy.set(Mode::Pass);
    assert_eq!(hear(&mut old), b"");
    assert_eq!(ask(&mut wire.connect()), b":2\r\n");
}

#[test]
fn a_black_hole_swallows_both_ways_and_closes_what_it_robbed() {
    let wire = Wire::new();
    let (mut robbed, mut quiet) = (wire.connect(), wire.connect());
    assert_eq!(ask(&mut robbed), b":1\r\n");
    assert_eq!(ask(&mut quiet), b":2\r\n");
    wire.proxy.set(Mode::BlackHole);
    let mut new = wire.connect();
    for client in [&mut robbed, &mut new] {
        client.write_all(INCR).unwrap();
        assert_silent(client);
    }
    wire.counted("2");
    wire.proxy.set(Mode::Pass);
    assert_eq!(hear(&mut robbed), b"");
    assert_eq!(hear(&mut new), b"");
    assert_eq!(ask(&mut quiet), b":3\r\n");
}

#[test]
fn a_black_hole_hides_the_death_of_the_server() {
    let wire = Wire::new();
    let mut client = wire.connect();
    assert_eq!(ask(&mut client), b":1\r\n");
    wire.proxy.set(Mode::BlackHole);
    wire.server.kill().unwrap();
    assert_silent(&mut client);
    wire.proxy.set(Mode::Pass);
    assert_eq!(hear(&mut client), b"");
}

#[test]
fn a_held_wire_delivers_late_what_was_sent_even_by_a_client_that_gave_up() {
    let wire = Wire::new();
    let (mut patient, mut gone) = (wire.connect(), wire.connect());
    assert_eq!(ask(&mut patient), b":1\r\n");
    assert_eq!(ask(&mut gone), b":2\r\n");
    wire.proxy.set(Mode::Hold);
    gone.write_all(INCR).unwrap();
    drop(gone);
    patient.write_all(INCR).unwrap();
    assert_silent(&mut patient);
    wire.counted("2");
    wire.proxy.set(Mode::Pass);
    assert_eq!(hear(&mut patient)[..1], *b":");
    wire.counted("4");
}

#[test]
fn a_delay_counts_for_its_direction_only() {
    let wire = Wire::new();
    let mut client = wire.connect();
    let delay = Duration::from_millis(300);
    wire.proxy.set(Mode::Delay {
        requests: delay,
        replies: Duration::ZERO,
    });
    let start = Instant::now();
    client.write_all(INCR).unwrap();
    assert_silent(&mut client);
    assert_eq!(wire.server.cli(&["GET", "a"]).unwrap(), "(nil)");
    assert_eq!(hear(&mut client), b":1\r\n");
    assert!(start.elapsed() >= delay);

    wire.proxy.set(Mode::Delay {
        requests: Duration::ZERO,
        replies: delay,
    });
    let start = Instant::now();
    client.write_all(INCR).unwrap();
    wire.counted("2");
    assert_eq!(hear(&mut client), b":2\r\n");
    assert!(start.elapsed() >= delay);
}

#[test]
fn a_dropped_reply_is_lost_after_its_command_ran_and_earlier_replies_pass() {
    let wire = Wire::new();
    let mut client = wire.connect();
    wire.proxy.drop_reply_to("incr", Then::Cut);
    client
        .write_all(&[b"PING\r\n", INCR, b"PING\r\n"].concat())
        .unwrap();
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).unwrap();
    assert_eq!(heard, b"+PONG\r\n");
    assert!(!wire.proxy.is_armed());
    wire.counted("1");
    assert_eq!(ask(&mut wire.connect()), b":2\r\n");
}

#[test]
fn a_connection_may_hang_after_a_dropped_reply_while_others_go_on() {
    let wire = Wire::new();
    let mut client = wire.connect();
    wire.proxy.drop_next_reply(Then::Hang);
    client.write_all(INCR).unwrap();
    assert_silent(&mut client);
    client.write_all(INCR).unwrap();
    assert_silent(&mut client);
    wire.counted("1");
    assert_eq!(ask(&mut wire.connect()), b":2\r\n");
}

#[test]
fn a_client_of_a_dead_server_is_closed_and_of_a_dropped_proxy_too() {
    let wire = Wire::new();
    let mut client = wire.connect();
    assert_eq!(ask(&mut client), b":1\r\n");
    wire.server.kill().unwrap();
    assert_eq!(hear(&mut client), b"");
    assert_eq!(hear(&mut wire.connect()), b"");
    wire.server.restart().unwrap();
    let mut client = wire.connect();
    assert_eq!(ask(&mut client), b":1\r\n");
    drop(wire.proxy);
    assert_eq!(hear(&mut client), b"");
}

#[test]
fn a_replica_can_follow_its_master_through_the_proxy() {
    let wire = Wire::new();
    let follow = format!("replicaof 127.0.0.1 {}", wire.proxy.address().port());
    let replica = RedisServer::start(RedisOptions::new().line(follow)).unwrap();
    wire.server.cli(&["SET", "a", "7"]).unwrap();
    let copied = || need(replica.cli(&["GET", "a"])? == "7", "no copy");
    until("the copy", 3 * SOON, copied).unwrap();
}
