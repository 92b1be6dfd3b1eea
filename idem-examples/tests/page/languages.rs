//! The switch.

use anyhow::Result;

use crate::shop::Shop;

#[tokio::test]
async fn the_page_speaks_chinese_at_a_click_and_remembers_it() -> Result<()> {
    let shop = Shop::open().await?;
    shop.create_order().await?;
    assert_eq!(shop.text("h1").await?, "Order service");
    shop.click("#lang").await?;
    for _ in ["switched", "reloaded"] {
        assert_eq!(shop.text("h1").await?, "订单服务");
        assert_eq!(
            shop.ask("return document.documentElement.lang").await?,
            "zh-Hans"
        );
        shop.wait_for("#orders", |orders| orders.contains("未支付"))
            .await?;
        shop.reload().await?;
    }
    shop.click("#lang").await?;
    assert_eq!(shop.text("h1").await?, "Order service");
    Ok(())
}

#[tokio::test]
async fn no_text_is_missing_in_either_language() -> Result<()> {
    let shop = Shop::open().await?;
    let untold = "return [...document.querySelectorAll('[data-t]')]
        .filter((element) => [element.dataset.t, ''].includes(element.textContent))
        .map((element) => element.dataset.t)";
    for language in ["en", "zh-Hans"] {
        assert_eq!(
            shop.ask("return document.documentElement.lang").await?,
            language
        );
        assert_eq!(shop.ask(untold).await?, serde_json::json!([]));
        shop.click("#lang").await?;
    }
    Ok(())
}
