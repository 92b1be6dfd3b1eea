//! No mouse.

use anyhow::{Result, bail};
use fantoccini::key::Key;
use serde_json::json;

use crate::shop::Shop;

impl Shop {
    /// Tabs on until this element has the focus.
    async fn tab_to(&self, css: &str) -> Result<()> {
        let has_focus = format!("return document.activeElement.matches({})", json!(css));
        for _ in 0..40 {
            if self.ask(&has_focus).await? == true {
                return Ok(());
            }
            self.press(Key::Tab.into()).await?;
        }
        bail!("no way to {css} by Tab")
    }

    /// Presses a button.
    async fn press_at(&self, css: &str) -> Result<()> {
        self.tab_to(css).await?;
        self.press(' ').await
    }

    /// Types over what stands in a field.
    async fn type_into(&self, css: &str, text: &str) -> Result<()> {
        self.tab_to(css).await?;
        for key in text.chars() {
            self.press(key).await?;
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_whole_purchase_is_possible_by_keyboard() -> Result<()> {
    let shop = Shop::open().await?;
    shop.tab_to("#create [name=item]").await?;
    shop.press(Key::Down.into()).await?;
    shop.tab_to("#create [name=quantity]").await?;
    shop.press('2').await?;
    shop.press(Key::Enter.into()).await?;
    shop.wait_for("#orders", |orders| orders.contains("unpaid"))
        .await?;
    let order_no = shop.text("#pay-title .chosen").await?;

    shop.tab_to("#pay [data-scene=once]").await?;
    shop.press(Key::Enter.into()).await?;
    shop.wait_for("#pay-panel tbody", |answers| answers.contains("receipt"))
        .await?;
    let order = shop.client().get(&format!("/orders/{order_no}"))?.body;
    assert_eq!(
        (&order["item"], &order["quantity"]),
        (&"cup".into(), &2.into())
    );
    assert_eq!(
        (&order["status"], &order["charges"]),
        (&"paid".into(), &1.into())
    );
    Ok(())
}

#[tokio::test]
async fn an_order_is_chosen_by_the_arrows() -> Result<()> {
    let shop = Shop::open().await?;
    for request_id in ["r-1", "r-2"] {
        shop.client().create_order(request_id)?;
    }
    shop.wait_for("#orders tr:nth-child(2)", |order| !order.is_empty())
        .await?;
    let first = shop.text("#pay-title .chosen").await?;
    shop.tab_to("#orders input").await?;
    shop.press(Key::Down.into()).await?;
    shop.wait_for("#pay-title .chosen", |chosen| chosen != first)
        .await?;
    shop.press(Key::Up.into()).await?;
    shop.wait_for("#pay-title .chosen", |chosen| chosen == first)
        .await?;
    Ok(())
}

#[tokio::test]
async fn a_form_is_sent_and_opened_anew_by_keyboard() -> Result<()> {
    let shop = Shop::open().await?;
    let token = shop.wait_for_token().await?;
    shop.tab_to("#form [name=item]").await?;
    shop.press(Key::Down.into()).await?;
    shop.type_into("#form [name=quantity]", "2").await?;
    shop.press(Key::Enter.into()).await?;
    shop.wait_for("#form-panel .sum", |sum| sum == "1 request → 1 order")
        .await?;
    let orders = shop.client().get("/orders")?.body;
    assert_eq!(
        (&orders[0]["item"], &orders[0]["quantity"]),
        (&"cup".into(), &2.into())
    );

    shop.press_at("#form [name=anew]").await?;
    shop.wait_for("#token", |another| another != token).await?;
    shop.press_at("#form [name=fast]").await?;
    shop.wait_for("#form-panel .sum", |sum| sum == "2 requests → 1 order")
        .await?;
    assert_eq!(shop.count("#orders tr").await?, 2);
    Ok(())
}

#[tokio::test]
async fn somebody_else_logs_in_by_keyboard() -> Result<()> {
    let shop = Shop::open().await?;
    shop.wait_for_token().await?;
    shop.tab_to("#user").await?;
    shop.press(Key::Down.into()).await?;
    shop.wait_for_user("bob").await
}

#[tokio::test]
async fn the_provider_notifies_by_keyboard() -> Result<()> {
    let shop = Shop::open().await?;
    shop.create_order().await?;
    for (scene, sum) in [
        ("forged", "1 notification → 0 payments"),
        ("five", "5 notifications → 1 payment"),
        ("refund", "2 notifications → 1 refund"),
    ] {
        shop.press_at(&format!("#callback [data-scene={scene}]"))
            .await?;
        shop.wait_for("#callback-panel .sum", |seen| seen == sum)
            .await?;
    }
    Ok(())
}

#[tokio::test]
async fn a_flash_sale_is_held_by_keyboard() -> Result<()> {
    let shop = Shop::open().await?;
    shop.type_into("#sale [name=items]", "2").await?;
    shop.type_into("#sale [name=buyers]", "5").await?;
    shop.tab_to("#sale [name=way]").await?;
    shop.press(Key::Down.into()).await?;
    shop.press_at("#sale button.main").await?;
    shop.wait_for("#sale-panel .sum", |sum| sum == "5 buyers → 2 sold, 0 left")
        .await?;
    shop.wait_for("#records", |records| {
        records.contains("order:buy-in-turn::")
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn the_language_is_switched_by_keyboard() -> Result<()> {
    let shop = Shop::open().await?;
    for title in ["订单服务", "Order service"] {
        shop.press_at("#lang").await?;
        shop.wait_for("h1", |seen| seen == title).await?;
    }
    Ok(())
}

#[tokio::test]
async fn whatever_can_be_used_has_a_name() -> Result<()> {
    let shop = Shop::open().await?;
    shop.create_order().await?;
    let nameless = "return [...document.querySelectorAll('input, select, button')]
        .filter((element) => !(element.labels?.[0]?.textContent || element.textContent || element.ariaLabel || '').trim())
        .map((element) => element.outerHTML)";
    assert_eq!(shop.ask(nameless).await?, json!([]));
    Ok(())
}
