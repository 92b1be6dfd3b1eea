//! Messages from a real broker that ship orders.

use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;
use idem_core::consumer::MessageId;
use idem_examples::rabbit::{Link, Queues, Rabbit};
use idem_examples::scenes::messages::QUEUE;
use idem_tests::mariadb::MariaDbServer;
use idem_tests::postgres::PostgresServer;
use idem_tests::rabbit::RabbitServer;
use idem_tests::wait::{need, until};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::client::Client;
use crate::server::Place;

/// The first message can not be read before the broker has elected a leader for each queue.
const PATIENCE: Duration = Duration::from_mins(1);

/// A broker, and a line to it.
struct Broker {
    server: RabbitServer,
    runtime: Runtime,
    link: Link,
    queues: Queues,
}

impl Broker {
    fn start() -> Result<Self> {
        let server = RabbitServer::start()?;
        let runtime = Runtime::new()?;
        let rabbit = Rabbit::new(server.url(), QUEUE);
        Ok(Self {
            link: runtime.block_on(rabbit.connect())?,
            queues: rabbit.queues().clone(),
            server,
            runtime,
        })
    }

    fn place_on(&self, database_url: String) -> Result<Rc<Place>> {
        Place::on_and_fed_by(database_url, self.server.url())
    }

    fn publish(&self, id: &str, payload: &Value) -> Result<()> {
        let id = MessageId::new(id)?;
        let payload = payload.to_string();
        self.runtime
            .block_on(self.link.publish(&id, payload.as_bytes()))
    }

    fn wait_for(&self, queue: &str, count: u32) -> Result<()> {
        until(queue, PATIENCE, || {
            let seen = self.runtime.block_on(self.link.count(queue))?;
            need(seen == count, seen)
        })
    }
}

fn wait_for_status(client: &Client, order_no: &str, status: &str) -> Result<()> {
    until(status, PATIENCE, || {
        let order = client.get(&format!("/orders/{order_no}"))?.body;
        need(order["status"] == status, &order)
    })
}

// V01
#[test]
fn a_shipment_that_is_published_three_times_is_shipped_once() -> Result<()> {
    let broker = Broker::start()?;
    ships_once(&broker, &Place::fed_by(broker.server.url())?)
}

// V01
#[test]
fn a_shipment_is_shipped_once_in_postgresql_too() -> Result<()> {
    let (broker, server) = (Broker::start()?, PostgresServer::start()?);
    ships_once(&broker, &broker.place_on(server.url())?)
}

// V01
#[test]
fn a_shipment_is_shipped_once_in_mariadb_too() -> Result<()> {
    let (broker, server) = (Broker::start()?, MariaDbServer::start()?);
    ships_once(&broker, &broker.place_on(server.url())?)
}

fn ships_once(broker: &Broker, place: &Rc<Place>) -> Result<()> {
    let mut service = place.start("service")?;
    let client = service.client();
    let order_no = client.create_order("r-1")?;
    assert_eq!(client.pay(&order_no)?.status, 200);
    let shipment = json!({ "order_no": order_no });
    // The same message again, and another one that says the same.
    for id in ["m-1", "m-1", "m-2"] {
        broker.publish(id, &shipment)?;
    }
    wait_for_status(&client, &order_no, "shipped")?;
    let record = client.get("/records")?.body[0].clone();
    assert_eq!(record["key"], format!("order:ship::{order_no}"));

    // It finishes what it has begun; nothing is left then, and nothing was dropped as dead.
    service.terminate()?;
    assert!(service.wait_for_end(PATIENCE)?.success());
    for queue in [broker.queues.main().to_owned(), broker.queues.dead()] {
        broker.wait_for(&queue, 0)?;
    }
    let after = place.start("after")?;
    let order = after.client().get(&format!("/orders/{order_no}"))?.body;
    // Paid, and shipped.
    assert_eq!(order["version"], 3);
    Ok(())
}

#[test]
fn a_shipment_that_comes_before_the_payment_waits_for_it() -> Result<()> {
    let broker = Broker::start()?;
    let service = Place::fed_by(broker.server.url())?.start("service")?;
    let client = service.client();
    let order_no = client.create_order("r-1")?;
    broker.publish("m-1", &json!({ "order_no": order_no }))?;
    broker.wait_for(&broker.queues.delay(Duration::from_secs(1)), 1)?;
    assert_eq!(client.pay(&order_no)?.status, 200);
    wait_for_status(&client, &order_no, "shipped")?;
    Ok(())
}

#[test]
fn what_can_not_be_read_or_shipped_goes_to_the_dead_and_stops_nobody() -> Result<()> {
    let broker = Broker::start()?;
    let service = Place::fed_by(broker.server.url())?.start("service")?;
    let client = service.client();
    let order_no = client.create_order("r-1")?;
    assert_eq!(client.pay(&order_no)?.status, 200);
    broker.publish("m-1", &json!("no shipment"))?;
    broker.publish("m-2", &json!({ "order_no": "A-0" }))?;
    broker.publish("m-3", &json!({ "order_no": order_no }))?;
    wait_for_status(&client, &order_no, "shipped")?;
    broker.wait_for(&broker.queues.dead(), 2)?;
    for cause in [
        "the message can not be read: invalid type",
        "there is no order to be shipped",
    ] {
        service.wait_for_log(cause)?;
    }
    Ok(())
}
