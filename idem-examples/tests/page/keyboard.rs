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
async fn whatever_can_be_used_has_a_name() -> Result<()> {
    let shop = Shop::open().await?;
    shop.create_order().await?;
    let nameless = "return [...document.querySelectorAll('input, select, button')]
        .filter((element) => !(element.labels?.[0]?.textContent || element.textContent || element.ariaLabel || '').trim())
        .map((element) => element.outerHTML)";
    assert_eq!(shop.ask(nameless).await?, json!([]));
    Ok(())
}
