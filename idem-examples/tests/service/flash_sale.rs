//! Ten items, and many who want one.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use anyhow::Result;
use idem_tests::postgres::PostgresServer;
use idem_tests::wait::{need, until};
use serde_json::json;
use sqlx::{Connection, PgConnection};
use tokio::runtime::Builder;

use crate::client::{Answer, Client};
use crate::server::{Place, Service};

const ITEMS: u64 = 10;
const PATIENCE: Duration = Duration::from_secs(30);

fn open(client: &Client, sale_no: &str) -> Result<()> {
    let sale = client.put(&format!("/sales/{sale_no}"), &json!({ "available": ITEMS }))?;
    assert_eq!((sale.status, &sale.body["available"]), (200, &ITEMS.into()));
    Ok(())
}

fn buy(client: &Client, sale_no: &str, request_id: &str) -> Answer {
    click(client, &format!("/sales/{sale_no}/buy"), request_id)
}

fn buy_in_turn(client: &Client, sale_no: &str, request_id: &str) -> Answer {
    click(client, &format!("/sales/{sale_no}/buy-in-turn"), request_id)
}

fn click(client: &Client, path: &str, request_id: &str) -> Answer {
    let click = json!({ "request_id": request_id, "buyer": format!("buyer of {request_id}") });
    client.post(path, &click).unwrap()
}

fn at_once(count: usize, buy: impl Fn(usize) -> Answer + Sync) -> Vec<Answer> {
    thread::scope(|scope| {
        let buy = &buy;
        let clicks: Vec<_> = (0..count).map(|n| scope.spawn(move || buy(n))).collect();
        clicks
            .into_iter()
            .map(|click| click.join().unwrap())
            .collect()
    })
}

fn assert_sold(client: &Client, sale_no: &str, sold: u64) -> Result<()> {
    let sale = client.get(&format!("/sales/{sale_no}"))?.body;
    assert_eq!(
        (&sale["sold"], &sale["available"]),
        (&sold.into(), &(ITEMS - sold).into())
    );
    Ok(())
}

// N22
pub(crate) fn sells_what_there_is(service: &Service) -> Result<()> {
    let client = service.client();
    open(&client, "rush")?;
    assert_ten_tickets(&at_once(200, |n| {
        buy(&client, "rush", &format!("rush-{n}"))
    }));
    assert_sold(&client, "rush", ITEMS)
}

// N22
pub(crate) fn sells_what_there_is_in_turn(service: &Service) -> Result<()> {
    let client = service.client();
    open(&client, "queue")?;
    let request = |n| format!("queue-{}", n / 2);
    assert_ten_tickets(&at_once(40, |n| buy_in_turn(&client, "queue", &request(n))));
    assert_sold(&client, "queue", ITEMS)
}

fn assert_ten_tickets(answers: &[Answer]) {
    let tickets = answers.iter().filter(|answer| answer.status == 201);
    let buyers: HashSet<_> = tickets
        .map(|answer| answer.body["buyer"].as_str())
        .collect();
    assert_eq!(buyers.len(), 10);
    for refused in answers.iter().filter(|answer| answer.status != 201) {
        assert_eq!(
            (refused.status, &refused.body["code"]),
            (409, &"sold_out".into())
        );
    }
}

// N22
pub(crate) fn sells_one_to_one_request(service: &Service) -> Result<()> {
    let client = service.client();
    open(&client, "calm")?;
    let answers = at_once(20, |_| buy(&client, "calm", "calm-1"));
    assert!(
        answers
            .iter()
            .all(|answer| answer.status == 201 && answer.body == answers[0].body)
    );
    assert_sold(&client, "calm", 1)
}

#[test]
fn ten_items_under_two_hundred_buyers_are_sold_to_ten() -> Result<()> {
    sells_what_there_is(&Service::start()?)
}

#[test]
fn ten_items_are_sold_to_ten_who_stand_in_a_queue() -> Result<()> {
    sells_what_there_is_in_turn(&Service::start()?)
}

#[test]
fn twenty_clicks_of_one_request_buy_one() -> Result<()> {
    sells_one_to_one_request(&Service::start()?)
}

#[test]
fn one_request_that_asks_for_another_sale_too_gets_no_second_ticket() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    open(&client, "a")?;
    open(&client, "b")?;
    assert_eq!(buy(&client, "a", "r-1").status, 201);
    let other = buy_in_turn(&client, "b", "r-1");
    assert_eq!(
        (other.status, &other.body["code"]),
        (422, &"another_purchase".into())
    );
    assert_sold(&client, "a", 1)?;
    assert_sold(&client, "b", 0)
}

/// The first attempt was killed while its commit was held up, and is followed by the next one.
#[test]
fn who_has_bought_the_last_one_is_not_told_that_nothing_is_left() -> Result<()> {
    const FIRST: &str = "BEGIN;
        INSERT INTO purchases (request_id, sale_no, buyer) VALUES ('r-1', 's', 'buyer of r-1');
        UPDATE sales SET available = 0 WHERE sale_no = 's'";
    const WAITING: &str = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    let server = PostgresServer::start()?;
    let service = Place::on(server.url())?.start("service")?;
    let client = service.client();
    client.put("/sales/s", &json!({ "available": 1 }))?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let connect = async || PgConnection::connect(&server.url()).await;
    let mut first = runtime.block_on(connect())?;
    let mut aside = runtime.block_on(connect())?;
    runtime.block_on(sqlx::raw_sql(FIRST).execute(&mut first))?;

    let next = client.clone();
    let next = thread::spawn(move || buy(&next, "s", "r-1"));
    until("an attempt that waits for the first", PATIENCE, || {
        let waiting = sqlx::query_scalar(WAITING).fetch_one(&mut aside);
        let waiting: i64 = runtime.block_on(waiting)?;
        need(waiting == 1, waiting)
    })?;
    runtime.block_on(sqlx::raw_sql("COMMIT").execute(&mut first))?;
    let answer = next.join().unwrap();
    assert_eq!(
        (answer.status, &answer.body["buyer"]),
        (201, &"buyer of r-1".into())
    );
    let sale = client.get("/sales/s")?.body;
    assert_eq!((&sale["sold"], &sale["available"]), (&1.into(), &0.into()));
    Ok(())
}

#[test]
fn one_who_was_too_late_may_try_again() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    assert_eq!(buy(&client, "not-yet", "early").status, 409);
    open(&client, "not-yet")?;
    assert_eq!(buy(&client, "not-yet", "early").status, 201);
    assert_sold(&client, "not-yet", 1)
}

#[test]
fn a_sale_is_opened_once() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    open(&client, "s")?;
    assert_eq!(buy(&client, "s", "r-1").status, 201);
    let again = client.put("/sales/s", &json!({ "available": 99 }))?;
    assert_eq!(again.body["available"], ITEMS - 1);
    let nameless = client.put(&format!("/sales/{}", "x".repeat(17)), &json!({}))?;
    assert_eq!(nameless.body["code"], "invalid_sale");
    Ok(())
}

/// The databases differ in what they keep; what one of them would refuse, the service does.
#[test]
fn a_name_that_a_database_can_not_keep_is_refused_and_buys_nothing() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    open(&client, "sale")?;
    let long = "x".repeat(101);
    for (request_id, buyer) in [(&*long, "b"), ("r-1", &*long), ("r\0", "b"), ("r-1", "b\0")] {
        let click = json!({ "request_id": request_id, "buyer": buyer });
        for way in ["buy", "buy-in-turn"] {
            let answer = client.post(&format!("/sales/sale/{way}"), &click)?;
            let refused = (400, &"invalid_purchase".into());
            assert_eq!((answer.status, &answer.body["code"]), refused, "{click}");
        }
    }
    let order = json!({ "request_id": "r\0", "item": "tea", "quantity": 1 });
    assert_eq!(client.post("/orders", &order)?.status, 400);
    assert_sold(&client, "sale", 0)
}
