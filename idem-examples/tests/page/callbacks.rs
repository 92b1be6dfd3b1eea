//! The provider's notifications.

use anyhow::Result;
use serde_json::json;

use crate::shop::Shop;

#[tokio::test]
async fn one_notification_sent_five_times_is_one_payment() -> Result<()> {
    let shop = Shop::open().await?;
    let order_no = shop.create_order().await?;
    shop.click("#callback [data-scene=five]").await?;
    shop.wait_for("#callback-panel .sum", |sum| {
        sum == "5 notifications → 1 payment"
    })
    .await?;
    let answers = shop.text("#callback-panel tbody").await?;
    assert_eq!(answers.matches("success").count(), 5, "{answers}");
    assert_eq!(answers.matches("executed").count(), 1, "{answers}");
    shop.wait_for("#orders", |orders| orders.contains(" paid 1"))
        .await?;
    shop.wait_for("#records", |records| records.contains("order:notify::"))
        .await?;

    shop.click("#callback [data-scene=refund]").await?;
    shop.wait_for("#callback-panel .sum", |sum| {
        sum == "2 notifications → 1 refund"
    })
    .await?;
    shop.wait_for("#orders", |orders| orders.contains(" refunded 1"))
        .await?;
    let payments = shop
        .client()
        .get(&format!("/orders/{order_no}/payments"))?
        .body;
    assert_eq!(payments.as_array().map(Vec::len), Some(2));
    Ok(())
}

#[tokio::test]
async fn a_forged_notification_is_refused_and_spoils_nothing() -> Result<()> {
    let shop = Shop::open().await?;
    let order_no = shop.create_order().await?;
    shop.click("#callback [data-scene=forged]").await?;
    shop.wait_for("#callback-panel .sum", |sum| {
        sum == "1 notification → 0 payments"
    })
    .await?;
    let answers = shop.text("#callback-panel tbody").await?;
    assert!(
        answers.contains("401") && answers.contains("forged"),
        "{answers}"
    );
    let path = format!("/orders/{order_no}/payments");
    assert_eq!(shop.client().get(&path)?.body, json!([]));

    shop.click("#pay [data-scene=once]").await?;
    shop.wait_for("#pay-panel .sum", |sum| sum == "1 request → 1 charge")
        .await?;
    assert_eq!(shop.client().charges(&order_no)?, 1);
    shop.click("#callback [data-scene=five]").await?;
    shop.wait_for("#callback-panel .sum", |sum| {
        sum == "5 notifications → 1 payment"
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_refund_of_what_nobody_paid_is_told_and_charges_nobody() -> Result<()> {
    let shop = Shop::open().await?;
    let order_no = shop.create_order().await?;
    shop.click("#callback [data-scene=refund]").await?;
    shop.wait_for("#callback-panel .sum", |sum| {
        sum == "no charge yet: nothing to give back"
    })
    .await?;
    assert_eq!(shop.client().charges(&order_no)?, 0);
    Ok(())
}
