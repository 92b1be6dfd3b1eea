//! What the page shows.

use std::time::Duration;

use anyhow::Result;
use idem_tests::redis::{RedisOptions, RedisServer};

use crate::server::{Place, Service};

#[test]
fn the_page_is_whole_in_itself() -> Result<()> {
    let service = Service::start()?;
    let client = service.client();
    let page = client.text("/")?;
    assert!(page.starts_with("<!doctype html>"));
    let mut files = vec!["style.css".to_owned(), "main.js".to_owned()];
    assert!(
        files
            .iter()
            .all(|file| page.contains(&format!("\"/page/{file}\"")))
    );
    let mut next = 0;
    while let Some(file) = files.get(next).cloned() {
        let text = client.text(&format!("/page/{file}"))?;
        for from_elsewhere in ["http://", "https://", "url(", "@import"] {
            assert!(!text.contains(from_elsewhere), "{file}: {from_elsewhere}");
        }
        let imported = text
            .split("\"./")
            .skip(1)
            .filter_map(|rest| rest.split('"').next());
        for import in imported.map(str::to_owned) {
            if !files.contains(&import) {
                files.push(import);
            }
        }
        next += 1;
    }
    assert!(files.len() > 10, "{files:?}");
    Ok(())
}

#[test]
fn an_unknown_path_is_refused_in_json() -> Result<()> {
    let service = Service::start()?;
    for path in ["/nowhere", "/orders/A-0", "/page/mod.rs"] {
        let answer = service.client().get(path)?;
        assert_eq!(
            (answer.status, &answer.body["code"]),
            (404, &"not_found".into())
        );
    }
    Ok(())
}

#[test]
fn records_are_listed_while_they_run_and_after() -> Result<()> {
    lists_records(&Service::start()?)
}

#[test]
fn records_in_redis_are_listed_in_the_same_way() -> Result<()> {
    let redis = RedisServer::start(RedisOptions::new())?;
    lists_records(&Place::with(&redis)?.start("service")?)
}

fn lists_records(service: &Service) -> Result<()> {
    let client = service.client();
    client.set_delay(Duration::from_secs(2))?;
    let order_no = client.create_order("r-1")?;
    let _waiting = client.send_payment(&order_no)?;

    let running = client.wait_for_claim(&order_no)?;
    assert_eq!(running["status"], "processing");
    assert_eq!(running["attempt"], 1);
    assert!(
        matches!(running["lease_left_ms"].as_u64(), Some(1..=5_000)),
        "{running}"
    );

    let done = client.wait_for_success(&order_no)?;
    assert!(done["lease_left_ms"].is_null(), "{done}");
    let day = 24 * 3600 * 1000;
    assert!(done["expires_in_ms"].as_u64().unwrap() <= day, "{done}");
    Ok(())
}
