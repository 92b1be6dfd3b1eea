//! One payment, asked for again and again.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use crate::client::{Answer, Client};
use crate::server::Service;

fn pay_at_once(client: &Client, order_no: &str, count: usize) -> Vec<Answer> {
    thread::scope(|scope| {
        let clicks: Vec<_> = (0..count)
            .map(|_| scope.spawn(|| client.pay(order_no).unwrap()))
            .collect();
        clicks
            .into_iter()
            .map(|click| click.join().unwrap())
            .collect()
    })
}

fn assert_one_receipt(client: &Client, order_no: &str, answers: &[Answer]) {
    let executed = answers.iter().filter(|answer| answer.outcome == "executed");
    let executed: Vec<_> = executed.collect();
    let [first] = executed[..] else {
        panic!("not one execution: {answers:?}");
    };
    assert_eq!(first.status, 200);
    for answer in answers {
        match answer.status {
            200 => assert_eq!(answer.body, first.body),
            409 => {
                assert_eq!(answer.body["code"], "in_progress");
                assert_eq!(answer.body["message"], "This order is being paid.");
                assert!(matches!(answer.retry_after, Some(1..=5)), "{answer:?}");
            }
            _ => panic!("{answer:?}"),
        }
    }
    assert_eq!(client.charges(order_no).unwrap(), 1);
}

pub(crate) fn charges_once(service: &Service, clicks: usize) -> Result<()> {
    let client = service.client();
    let order_no = client.create_order("to be paid")?;
    let answers = pay_at_once(&client, &order_no, clicks);
    assert_eq!(answers.len(), clicks);
    assert_one_receipt(&client, &order_no, &answers);
    Ok(())
}

#[test]
fn a_double_click_charges_once() -> Result<()> {
    charges_once(&Service::start()?, 2)
}

#[test]
fn a_click_while_a_slow_provider_is_asked_is_told_when_to_come_back() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    client.set_delay(Duration::from_millis(2_500))?;
    let order_no = client.create_order("r-1")?;
    let answers = pay_at_once(&client, &order_no, 3);
    assert_one_receipt(&client, &order_no, &answers);
    let refused = answers.iter().filter(|answer| answer.status == 409);
    assert_eq!(refused.count(), 2);
    Ok(())
}

// C01
#[test]
fn a_storm_of_fifty_charges_once() -> Result<()> {
    charges_once(&Service::start()?, 50)
}

// X01
#[test]
fn a_client_that_hangs_up_and_retries_gets_the_receipt_of_one_charge() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    client.set_delay(Duration::from_millis(1_500))?;
    let order_no = client.create_order("r-1")?;
    let first = client.send_payment(&order_no)?;
    client.wait_for_claim(&order_no)?;
    drop(first);
    // The payment goes on without its client.
    client.wait_for_success(&order_no)?;
    let retried = client.pay(&order_no)?;
    assert_eq!((retried.status, &*retried.outcome), (200, "replayed"));
    assert_eq!(client.charges(&order_no)?, 1);
    Ok(())
}

#[test]
fn a_retry_while_the_first_payment_runs_gets_its_receipt() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    client.set_delay(Duration::from_millis(800))?;
    let order_no = client.create_order("r-1")?;
    let first = client.send_payment(&order_no)?;
    client.wait_for_claim(&order_no)?;
    drop(first);
    let retried = client.pay_until_answered(&order_no)?;
    assert_eq!(retried.status, 200);
    assert_eq!(client.charges(&order_no)?, 1);
    Ok(())
}
