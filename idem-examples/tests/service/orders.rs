//! Orders, created again and again.

use std::collections::HashSet;
use std::thread;

use anyhow::Result;
use serde_json::json;

use crate::server::Service;

#[test]
fn one_request_id_makes_one_order() -> Result<()> {
    creates_one_order(&Service::start()?)
}

pub(crate) fn creates_one_order(service: &Service) -> Result<()> {
    let client = service.client();
    let create = || client.create_order("r-1").unwrap();
    let numbers: Vec<_> = thread::scope(|scope| {
        let clicks: Vec<_> = (0..20).map(|_| scope.spawn(create)).collect();
        clicks
            .into_iter()
            .map(|click| click.join().unwrap())
            .collect()
    });
    assert!(numbers.iter().all(|number| *number == numbers[0]));
    assert_eq!(client.get("/orders")?.body.as_array().unwrap().len(), 1);
    assert_ne!(client.create_order("r-2")?, numbers[0]);
    Ok(())
}

// N16
#[test]
fn ids_that_look_alike_make_different_orders() -> Result<()> {
    tells_ids_apart(&Service::start()?)
}

pub(crate) fn tells_ids_apart(service: &Service) -> Result<()> {
    let client = service.client();
    let ids = ["look-a", "look-A", "look-á", "look-a "];
    let numbers: HashSet<_> = ids.map(|id| client.create_order(id).unwrap()).into();
    assert_eq!(numbers.len(), ids.len());
    let padded = client.pay(&format!("{}%20", numbers.iter().next().unwrap()))?;
    assert_eq!(padded.body["code"], "no_such_order");
    Ok(())
}

// K10
#[test]
fn one_request_id_with_another_order_is_refused() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    client.create_order("r-1")?;
    let other = json!({ "request_id": "r-1", "item": "pot", "quantity": 2 });
    let answer = client.post("/orders", &other)?;
    assert_eq!(
        (answer.status, &answer.body["code"]),
        (422, &"mismatch".into())
    );
    Ok(())
}

#[test]
fn an_order_that_makes_no_sense_is_refused_and_leaves_no_record() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    for (body, code) in [
        (json!({ "item": "tea", "quantity": 1 }), "missing_key"),
        (
            json!({ "request_id": "\u{200b} ", "item": "tea", "quantity": 1 }),
            "missing_key",
        ),
        (
            json!({ "request_id": "r-1", "item": "tea", "quantity": 0 }),
            "invalid_order",
        ),
        (
            json!({ "request_id": "r-2", "item": "sofa", "quantity": 1 }),
            "invalid_order",
        ),
    ] {
        let answer = client.post("/orders", &body)?;
        assert_eq!((answer.status, &answer.body["code"]), (400, &code.into()));
    }
    assert_eq!(client.get("/records")?.body, json!([]));
    assert_eq!(client.get("/orders")?.body, json!([]));
    Ok(())
}

#[test]
fn a_number_that_no_database_can_keep_finds_nothing_and_leaves_no_record() -> Result<()> {
    finds_nothing_under_a_nul(&Service::start()?)
}

pub(crate) fn finds_nothing_under_a_nul(service: &Service) -> Result<()> {
    let client = service.client();
    let nothing = (404, &"not_found".into());
    let paid = client.pay("unkept%00")?;
    assert_eq!((paid.status, &paid.body["code"]), nothing);
    for path in [
        "/orders/unkept%00",
        "/orders/unkept%00/payments",
        "/sales/unkept%00",
    ] {
        let answer = client.get(path)?;
        assert_eq!((answer.status, &answer.body["code"]), nothing, "{path}");
    }
    let records = client.get("/records")?.body;
    assert!(!records.to_string().contains("unkept"), "{records}");
    Ok(())
}

#[test]
fn a_body_that_does_not_say_what_it_is_is_not_taken_for_none() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    let order_no = client.create_order("r-1")?;
    let path = format!("/orders/{order_no}/pay");
    let status = client.status_of_unnamed(&path, r#"{"card":"declined"}"#)?;
    assert_eq!((status, client.charges(&order_no)?), (415, 0));
    // The good card is what nothing means.
    assert_eq!(client.status_of_unnamed(&path, "")?, 200);
    Ok(())
}

#[test]
fn a_body_that_is_no_json_is_refused_in_json() -> Result<()> {
    let service = Service::start()?;
    let answer = service.client().post("/orders", &json!([1, 2]))?;
    assert_eq!(
        (answer.status, &answer.body["code"]),
        (422, &"bad_input".into())
    );
    Ok(())
}
