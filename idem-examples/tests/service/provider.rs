//! What the provider does, and what that means for the retry.

use anyhow::Result;

use crate::server::Service;

// E07
#[test]
fn a_declined_card_leaves_the_order_to_be_paid_by_another() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    let order_no = client.create_order("r-1")?;
    for _ in 0..2 {
        let declined = client.pay_by(&order_no, "declined")?;
        assert_eq!((declined.status, &*declined.outcome), (402, "executed"));
        assert_eq!(declined.body["code"], "declined");
    }
    assert_eq!(client.payment_record(&order_no)?["status"], "failed");
    let paid = client.pay(&order_no)?;
    assert_eq!((paid.status, &*paid.outcome), (200, "executed"));
    assert_eq!(client.charges(&order_no)?, 1);
    Ok(())
}

// E09, N03
#[test]
fn a_charge_whose_answer_was_lost_is_found_by_the_retry() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    let order_no = client.create_order("r-1")?;
    let lost = client.pay_by(&order_no, "answer_lost")?;
    assert_eq!(lost.status, 504);
    assert_eq!(lost.body["code"], "provider_timed_out");
    assert_eq!(client.payment_record(&order_no)?["status"], "abandoned");
    let found = client.pay(&order_no)?;
    assert_eq!((found.status, &*found.outcome), (200, "recovered"));
    let again = client.pay(&order_no)?;
    assert_eq!((again.body, &*again.outcome), (found.body, "replayed"));
    assert_eq!(client.charges(&order_no)?, 1);
    Ok(())
}

#[test]
fn an_order_that_does_not_exist_is_not_paid_and_leaves_no_record() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    let answer = client.pay("A-0")?;
    assert_eq!(answer.status, 404);
    assert_eq!(answer.body["code"], "no_such_order");
    assert!(client.payment_record("A-0").is_err());
    Ok(())
}
