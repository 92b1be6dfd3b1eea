use std::path::Path;
use std::process::{Command, Stdio};

use idem_tests::redis::RedisOptions;
use idem_tests::tls::TlsRedis;

/// What `redis-cli` says that trusts `authority`; it does not check the server's name.
fn ping(server: &TlsRedis, authority: &Path) -> String {
    let done = Command::new("redis-cli")
        .args([
            "--tls",
            "-h",
            "localhost",
            "-p",
            &server.port().to_string(),
            "--cacert",
        ])
        .arg(authority)
        .arg("PING")
        .output()
        .unwrap();
    String::from_utf8([done.stdout, done.stderr].concat()).unwrap()
}

/// Whether a client is content that checks the server's name as `check` says.
fn is_content(server: &TlsRedis, check: [&str; 2]) -> bool {
    let done = Command::new("openssl")
        .args(["s_client", "-brief", "-verify_return_error", "-CAfile"])
        .arg(server.ca())
        .args(["-connect", &format!("127.0.0.1:{}", server.port())])
        .args(check)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    done.status.success()
}

#[test]
fn a_client_that_trusts_the_authority_gets_in_and_another_does_not() {
    let server = TlsRedis::start(RedisOptions::new()).unwrap();
    assert_eq!(ping(&server, &server.ca()), "PONG\n");
    let refused = ping(&server, &server.stranger_ca());
    assert!(refused.contains("certificate verify failed"), "{refused}");
}

#[test]
fn the_certificate_is_good_for_localhost_only() {
    let server = TlsRedis::start(RedisOptions::new()).unwrap();
    assert!(is_content(&server, ["-verify_hostname", "localhost"]));
    assert!(!is_content(&server, ["-verify_ip", "127.0.0.1"]));
}
