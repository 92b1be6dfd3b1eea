//! Impatience at the button.

use anyhow::Result;

use crate::shop::Shop;

#[tokio::test]
async fn a_double_click_on_pay_is_one_charge() -> Result<()> {
    let shop = Shop::open().await?;
    let order_no = shop.create_order().await?;
    shop.double_click("#pay [data-scene=once]").await?;
    shop.wait_for("#pay-panel .sum", |sum| sum == "2 requests → 1 charge")
        .await?;
    let answers = shop
        .wait_for("#pay-panel tbody", |answers| {
            answers.matches("receipt").count() == 2
        })
        .await?;
    assert_eq!(answers.matches("executed").count(), 1, "{answers}");
    assert_eq!(shop.client().charges(&order_no)?, 1);
    Ok(())
}

#[tokio::test]
async fn pay_pressed_three_times_fast_is_one_charge() -> Result<()> {
    let shop = Shop::open().await?;
    let order_no = shop.create_order().await?;
    shop.click("#pay [data-scene=fast]").await?;
    shop.wait_for("#pay-panel .sum", |sum| sum == "3 requests → 1 charge")
        .await?;
    shop.wait_for("#orders", |orders| orders.contains(" paid 1"))
        .await?;
    assert_eq!(shop.client().charges(&order_no)?, 1);
    Ok(())
}
