//! Servers that die or freeze in a payment, with their records in Redis.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use idem_tests::redis::{RedisOptions, RedisServer};

use crate::client::Client;
use crate::server::Place;

/// A payment by a provider so slow that there is time to do something meanwhile.
fn begin_slow_payment(client: &Client) -> Result<(String, thread::JoinHandle<Result<u16>>)> {
    client.set_delay(Duration::from_millis(2_500))?;
    let order_no = client.create_order("r-1")?;
    let (payer, paid) = (client.clone(), order_no.clone());
    let payment = thread::spawn(move || Ok(payer.pay(&paid)?.status));
    client.wait_for_claim(&order_no)?;
    Ok((order_no, payment))
}

// E01, E09
#[test]
fn after_a_kill_behind_the_charge_the_charge_is_found_and_not_repeated() -> Result<()> {
    let redis = RedisServer::start(RedisOptions::new())?;
    let service = Place::with(&redis)?.start("service")?;
    let client = service.client();
    let (order_no, payment) = begin_slow_payment(&client)?;
    client.wait_for_charge(&order_no)?;

    let service = service.kill_and_restart()?;
    assert!(payment.join().unwrap().is_err());
    let client = service.client();
    let order = client.get(&format!("/orders/{order_no}"))?.body;
    assert_eq!(
        (&order["status"], &order["charges"]),
        (&"unpaid".into(), &1.into())
    );
    let answer = client.pay_until_answered(&order_no)?;
    assert_eq!((answer.status, &*answer.outcome), (200, "recovered"));
    let order = client.get(&format!("/orders/{order_no}"))?.body;
    assert_eq!(
        (&order["status"], &order["charges"]),
        (&"paid".into(), &1.into())
    );
    Ok(())
}

// E01
#[test]
fn after_a_kill_before_the_charge_the_payment_runs_again() -> Result<()> {
    let redis = RedisServer::start(RedisOptions::new())?;
    let service = Place::with(&redis)?.start("service")?;
    let (order_no, payment) = begin_slow_payment(&service.client())?;

    let service = service.kill_and_restart()?;
    assert!(payment.join().unwrap().is_err());
    let client = service.client();
    assert_eq!(client.charges(&order_no)?, 0);
    let answer = client.pay_until_answered(&order_no)?;
    assert_eq!((answer.status, &*answer.outcome), (200, "executed"));
    assert_eq!(client.charges(&order_no)?, 1);
    Ok(())
}

#[test]
fn a_server_that_was_frozen_comes_too_late_to_charge() -> Result<()> {
    let redis = RedisServer::start(RedisOptions::new())?;
    let place = Place::with(&redis)?;
    let mut frozen = place.start("frozen")?;
    let other = place.start("other")?;
    let (order_no, payment) = begin_slow_payment(&frozen.client())?;
    frozen.wait_for_log("asked to charge")?;

    frozen.freeze()?;
    let answer = other.client().pay_until_answered(&order_no)?;
    assert_eq!((answer.status, &*answer.outcome), (200, "executed"));
    frozen.thaw()?;
    frozen.wait_for_log("refused a voided request")?;
    assert_ne!(payment.join().unwrap()?, 500);
    assert_eq!(other.client().charges(&order_no)?, 1);
    Ok(())
}
