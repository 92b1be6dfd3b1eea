use idem_tests::mariadb::MariaDbServer;
use idem_tests::postgres::PostgresServer;

use crate::has_process;

#[test]
fn a_postgres_server_comes_back_and_leaves_no_process() {
    let server = PostgresServer::start().unwrap();
    let first = server.id().unwrap();
    server.restart().unwrap();
    let second = server.id().unwrap();
    assert!(!has_process(first) && has_process(second));
    drop(server);
    assert!(!has_process(second));
}

#[test]
fn a_mariadb_server_comes_back_and_leaves_no_process() {
    let server = MariaDbServer::start().unwrap();
    let first = server.id().unwrap();
    server.restart().unwrap();
    let second = server.id().unwrap();
    assert!(!has_process(first) && has_process(second));
    drop(server);
    assert!(!has_process(second));
}
