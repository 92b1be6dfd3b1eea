//! The live list.

use std::time::Duration;

use anyhow::Result;

use crate::shop::Shop;

#[tokio::test]
async fn a_record_is_seen_while_it_runs_and_after() -> Result<()> {
    let shop = Shop::open().await?;
    let order_no = shop.create_order().await?;
    shop.client().set_delay(Duration::from_millis(2_500))?;
    shop.click("#pay [data-scene=once]").await?;
    let key = format!("order:pay::{order_no}");
    // Key, status, attempt, age, lease left, expires in.
    let begins = |state: &str| format!("{key} {state} 1 ");
    let running = begins("processing");
    let row = "#records tr:first-child";
    let seen = shop
        .wait_for(row, |text| text.starts_with(&running))
        .await?;
    let lease_left: f32 = seen.split(' ').nth(5).unwrap_or_default().parse()?;
    assert!((0.1..=5.0).contains(&lease_left), "{seen}");

    let done = begins("success");
    let seen = shop.wait_for(row, |text| text.starts_with(&done)).await?;
    assert!(seen.contains(" s — "), "{seen}");
    Ok(())
}
