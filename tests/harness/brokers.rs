use idem_tests::nats::NatsServer;
use idem_tests::rabbit::RabbitServer;

use crate::has_process;

#[test]
fn a_rabbitmq_broker_comes_back_and_leaves_no_process() {
    let server = RabbitServer::start().unwrap();
    let first = server.ids();
    server.restart().unwrap();
    let second = server.ids();
    assert!(!has_process(first[0]) && second.iter().all(|id| has_process(*id)));
    drop(server);
    assert!(!second.iter().any(|id| has_process(*id)));
}

#[test]
fn a_nats_server_comes_back_and_leaves_no_process() {
    let server = NatsServer::start().unwrap();
    let first = server.id().unwrap();
    server.restart().unwrap();
    let second = server.id().unwrap();
    assert!(!has_process(first) && has_process(second));
    drop(server);
    assert!(!has_process(second));
}
