//! Orders and a flash sale.

use anyhow::Result;

use crate::shop::Shop;

#[tokio::test]
async fn create_pressed_twice_is_one_order() -> Result<()> {
    let shop = Shop::open().await?;
    shop.double_click("#create button.main").await?;
    shop.wait_for("#create-panel .sum", |sum| sum == "2 requests → 1 order")
        .await?;
    shop.wait_for("#orders", |orders| orders.contains("unpaid 0"))
        .await?;
    assert_eq!(shop.count("#orders tr").await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_flash_sale_of_ten_under_two_hundred_buyers_sells_ten() -> Result<()> {
    let shop = Shop::open().await?;
    shop.click("#sale button.main").await?;
    shop.wait_for("#sale-panel .sum", |sum| {
        sum == "200 buyers → 10 sold, 0 left"
    })
    .await?;
    let answers = shop.text("#sale-panel tbody").await?;
    assert_eq!(answers.matches("bought by").count(), 10);
    assert_eq!(answers.matches("sold_out").count(), 190);
    Ok(())
}
