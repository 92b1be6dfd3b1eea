//! Orders and a flash sale.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use crate::shop::Shop;

const PATIENCE: Duration = Duration::from_secs(30);

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
async fn create_pressed_again_before_its_answer_could_be_read_is_the_same_order() -> Result<()> {
    let shop = Shop::open().await?;
    // The second press comes with the answer to the first, however long that takes, but after the
    // page has dealt with it.
    let twice = "const done = arguments[0], button = document.querySelector('#create button.main');
        const answers = document.querySelector('#create-panel tbody');
        const again = () => { button.click(); done(); };
        const observer = new MutationObserver(() => { observer.disconnect(); setTimeout(again); });
        observer.observe(answers, { childList: true });
        button.click();";
    shop.run(twice).await?;
    shop.wait_for("#create-panel .sum", |sum| sum == "2 requests → 1 order")
        .await?;
    shop.wait_for("#create-panel tbody", |answers| {
        answers.contains("replayed")
    })
    .await?;
    assert_eq!(shop.count("#orders tr").await?, 1);
    Ok(())
}

#[tokio::test]
async fn create_pressed_a_while_later_is_another_order() -> Result<()> {
    let shop = Shop::open().await?;
    let first = shop.create_order().await?;
    let until_another = |order_no: &str| !order_no.is_empty() && order_no != first;
    while !until_another(&shop.text("#pay-title .chosen").await?) {
        shop.click("#create button.main").await?;
        shop.wait_for("#create-panel .sum", |sum| sum.ends_with("→ 1 order"))
            .await?;
    }
    Ok(())
}

#[tokio::test]
async fn an_order_that_is_changed_after_its_answer_was_lost_can_be_made() -> Result<()> {
    let shop = Shop::open().await?;
    let lose_one = "const { fetch } = window;
        window.fetch = async (path, request) => {
          const response = await fetch(path, request);
          if (request?.method !== 'POST' || path !== '/orders') return response;
          window.fetch = fetch;
          throw new TypeError('lost');
        };";
    shop.ask(lose_one).await?;
    shop.click("#create button.main").await?;
    shop.wait_for("#create-panel tbody", |answers| {
        answers.contains("no answer")
    })
    .await?;
    shop.ask("document.querySelector('#create [name=quantity]').value = 2")
        .await?;
    shop.click("#create button.main").await?;
    shop.wait_for("#create-panel tbody", |answers| {
        answers.contains("mismatch")
    })
    .await?;
    let deadline = Instant::now() + PATIENCE;
    while shop.count("#orders tr").await? < 2 {
        ensure!(Instant::now() < deadline, "it is refused for ever");
        shop.click("#create button.main").await?;
    }
    let orders = shop.client().get("/orders")?.body;
    assert_eq!(orders[0]["quantity"], 2);
    Ok(())
}

#[tokio::test]
async fn a_flash_sale_of_ten_under_two_hundred_buyers_sells_ten() -> Result<()> {
    sells_ten(&Shop::open().await?).await
}

async fn sells_ten(shop: &Shop) -> Result<()> {
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

#[tokio::test]
async fn a_flash_sale_by_a_lock_sells_ten_as_well() -> Result<()> {
    let shop = Shop::open().await?;
    let way = shop.find("#sale [name=way]").await?;
    way.select_by_value("buy-in-turn").await?;
    sells_ten(&shop).await?;
    shop.wait_for("#records", |records| {
        records.contains("order:buy-in-turn::")
    })
    .await?;
    Ok(())
}
