//! SIGTERM.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use crate::server::{Place, Service};

const PATIENCE: Duration = Duration::from_secs(15);

#[test]
fn a_payment_that_runs_at_the_signal_is_answered() -> Result<()> {
    let mut service = Service::start()?;
    let client = service.client();
    client.set_delay(Duration::from_millis(1_500))?;
    let order_no = client.create_order("r-1")?;
    let (payer, paid) = (client.clone(), order_no.clone());
    let payment = thread::spawn(move || payer.pay(&paid));
    client.wait_for_claim(&order_no)?;

    service.terminate()?;
    let answer = payment.join().unwrap()?;
    assert_eq!((answer.status, &*answer.outcome), (200, "executed"));
    assert!(service.wait_for_end(PATIENCE)?.success());
    Ok(())
}

#[test]
fn a_payment_whose_client_has_gone_is_finished_before_the_end() -> Result<()> {
    let place = Place::alone()?;
    let mut service = place.start("service")?;
    let client = service.client();
    client.set_delay(Duration::from_millis(1_500))?;
    let order_no = client.create_order("r-1")?;
    let first = client.send_payment(&order_no)?;
    client.wait_for_claim(&order_no)?;
    drop(first);

    service.terminate()?;
    assert!(service.wait_for_end(PATIENCE)?.success());
    let order = place
        .start("after")?
        .client()
        .get(&format!("/orders/{order_no}"))?;
    assert_eq!(
        (&order.body["status"], &order.body["charges"]),
        (&"paid".into(), &1.into())
    );
    Ok(())
}
