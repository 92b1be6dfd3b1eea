//! The form with a one-time token.

use anyhow::Result;

use crate::shop::Shop;

impl Shop {
    pub(crate) async fn wait_for_token(&self) -> Result<String> {
        self.wait_for("#token", |token| !token.is_empty()).await
    }

    async fn last_answer_to_form(&self, number: usize) -> Result<String> {
        let row = format!("#form-panel tbody tr:nth-child({number})");
        self.wait_for(&row, |answer| !answer.is_empty()).await
    }

    /// Submits once, and gives the answer.
    async fn submit(&self) -> Result<String> {
        self.click("#form button.main").await?;
        self.last_answer_to_form(1).await
    }
}

#[tokio::test]
async fn a_form_submitted_twice_is_one_order() -> Result<()> {
    let shop = Shop::open().await?;
    shop.wait_for_token().await?;
    shop.double_click("#form button.main").await?;
    shop.wait_for("#form-panel .sum", |sum| sum == "2 requests → 1 order")
        .await?;
    shop.wait_for("#orders", |orders| orders.contains("unpaid"))
        .await?;
    assert_eq!(shop.count("#orders tr").await?, 1);
    Ok(())
}

#[tokio::test]
async fn a_form_that_was_refused_can_be_corrected() -> Result<()> {
    let shop = Shop::open().await?;
    let token = shop.wait_for_token().await?;
    shop.ask("document.querySelector('#form [name=quantity]').value = 0")
        .await?;
    let refused = shop.submit().await?;
    assert!(refused.contains("invalid_order"), "{refused}");
    shop.ask("document.querySelector('#form [name=quantity]').value = 2")
        .await?;
    shop.click("#form button.main").await?;
    shop.wait_for("#form-panel .sum", |sum| sum.ends_with("→ 1 order"))
        .await?;
    assert_eq!(shop.text("#token").await?, token);
    Ok(())
}

#[tokio::test]
async fn a_form_is_worth_nothing_to_somebody_else() -> Result<()> {
    let shop = Shop::open().await?;
    shop.wait_for_token().await?;
    shop.log_in("bob").await?;
    let refused = shop.submit().await?;
    assert!(refused.contains("token_rejected"), "{refused}");
    assert_eq!(shop.count("#orders tr").await?, 0);

    shop.log_in("alice").await?;
    shop.click("#form button.main").await?;
    shop.wait_for("#form-panel .sum", |sum| sum.ends_with("→ 1 order"))
        .await?;
    Ok(())
}
