use std::fs;
use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;

use idem_tests::redis::{Fsync, RedisOptions, RedisServer};
use idem_tests::resp::ask;
use idem_tests::wait::{need, until};

use crate::{SOON, has_process};

fn pid(server: &RedisServer) -> u32 {
    server.info("process_id").unwrap().parse().unwrap()
}

#[test]
fn a_server_answers_as_soon_as_it_is_started() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    assert_eq!(server.cli(&["SET", "a", "1"]).unwrap(), "OK");
    assert_eq!(server.cli(&["GET", "a"]).unwrap(), "1");
    assert_eq!(server.cli(&["GET", "b"]).unwrap(), "(nil)");
    assert_eq!(server.calls("get").unwrap(), 2);
    assert_eq!(server.calls("evalsha").unwrap(), 0);
    assert_eq!(server.cli(&["CONFIG", "GET", "save"]).unwrap(), "save\n");
    let wrong = server.cli(&["LPUSH", "a", "1"]).unwrap_err().to_string();
    assert!(wrong.starts_with("WRONGTYPE"), "{wrong}");
}

#[test]
fn a_dropped_server_leaves_no_process_and_no_folder() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let (pid, data) = (pid(&server), server.data());
    assert!(has_process(pid) && data.exists());
    drop(server);
    assert!(!has_process(pid) && !data.parent().unwrap().exists());
}

#[test]
fn a_panic_stops_a_server_even_when_it_is_frozen() {
    let (tell, told) = mpsc::channel();
    let test = thread::spawn(move || {
        let server = RedisServer::start(RedisOptions::new()).unwrap();
        tell.send(pid(&server)).unwrap();
        server.freeze().unwrap();
        panic!("as a failing test does");
    });
    assert!(test.join().is_err());
    assert!(!has_process(told.recv().unwrap()));
}

#[test]
fn a_killed_server_refuses_connections_and_comes_back_on_its_port() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    server.cli(&["SET", "a", "1"]).unwrap();
    server.kill().unwrap();
    assert!(!server.is_running());
    assert!(TcpStream::connect(server.address()).is_err());
    server.restart().unwrap();
    assert_eq!(server.cli(&["GET", "a"]).unwrap(), "(nil)");
}

#[test]
fn an_append_only_file_survives_a_restart_but_not_an_empty_one() {
    let server = RedisServer::start(RedisOptions::new().aof(Fsync::Always)).unwrap();
    server.cli(&["SET", "a", "1"]).unwrap();
    server.restart().unwrap();
    assert_eq!(server.cli(&["GET", "a"]).unwrap(), "1");
    server.restart_empty().unwrap();
    assert_eq!(server.cli(&["GET", "a"]).unwrap(), "(nil)");
}

#[test]
fn a_frozen_server_accepts_and_is_silent_until_it_is_thawed() {
    let server = RedisServer::start(RedisOptions::new()).unwrap();
    let pid = pid(&server);
    server.freeze().unwrap();
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    assert!(state.contains(") T "), "{state}");
    assert!(TcpStream::connect(server.address()).is_ok());
    server.thaw().unwrap();
    assert_eq!(server.cli(&["PING"]).unwrap(), "PONG");
}

#[test]
fn passwords_users_and_memory_limits_hold() {
    let options = RedisOptions::new()
        .password("secret")
        .user("app", "pass", "~idem:* +get +set")
        .max_memory("2mb", "noeviction");
    let server = RedisServer::start(options).unwrap();
    assert!(server.url().starts_with("redis://:secret@127.0.0.1:"));
    let refused = ask(server.address(), None, &["PING"])
        .unwrap_err()
        .to_string();
    assert!(refused.starts_with("NOAUTH"), "{refused}");
    assert!(
        server
            .cli(&["ACL", "LIST"])
            .unwrap()
            .contains("user app on")
    );
    let big = "x".repeat(4 << 20);
    let full = server.cli(&["SET", "a", &big]).unwrap_err().to_string();
    assert!(full.starts_with("OOM"), "{full}");
}

#[test]
fn two_servers_never_share_a_port_even_while_one_is_down() {
    let first = RedisServer::start(RedisOptions::new()).unwrap();
    first.kill().unwrap();
    let others: Vec<_> = (0..4)
        .map(|_| RedisServer::start(RedisOptions::new()).unwrap())
        .collect();
    assert!(others.iter().all(|other| other.port() != first.port()));
    first.restart().unwrap();
}

#[test]
fn a_replica_can_be_cut_off_and_comes_back() {
    let master = RedisServer::start(RedisOptions::new().replicated()).unwrap();
    let follow = format!("replicaof 127.0.0.1 {}", master.port());
    let replica = RedisServer::start(RedisOptions::new().replicated().line(follow)).unwrap();
    let online = |count| {
        until("replicas", SOON, || {
            need(master.online_replicas()? == count, count)
        })
    };
    online(1).unwrap();
    master.cut_replicas().unwrap();
    online(0).unwrap();
    master.cli(&["SET", "a", "1"]).unwrap();
    assert_eq!(replica.cli(&["GET", "a"]).unwrap(), "(nil)");
    master.mend_replicas().unwrap();
    online(1).unwrap();
    let copied = || need(replica.cli(&["GET", "a"])? == "1", "no copy");
    until("the copy", SOON, copied).unwrap();
}

#[test]
fn a_server_that_cannot_start_shows_its_log() {
    let failed = RedisServer::start(RedisOptions::new().line("no-such-directive 1")).unwrap_err();
    let shown = format!("{failed:#}");
    assert!(shown.contains("the server ended"), "{shown}");
    assert!(shown.contains("no-such-directive"), "{shown}");
}

#[test]
fn a_missing_program_is_named_with_its_package() {
    let missing = idem_tests::program::find("no-such-server", "NO_SUCH_SERVER", "its-package");
    let text = missing.unwrap_err().to_string();
    assert!(text.contains("no-such-server") && text.contains("apt-get install its-package"));
}
