//! `cargo run -p idem-examples`: prints its address and serves.

use std::io::stderr;

use anyhow::Context;
use idem_examples::config::Config;
use idem_examples::shop::Shop;
use idem_examples::{app, database, serve};
use tracing_subscriber::filter::LevelFilter;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::INFO)
        .with_writer(stderr)
        .init();
    let config = Config::from_env()?;
    let file = config.orders_file.display();
    let pool = database::open(&config.orders_file)
        .await
        .with_context(|| format!("ORDERS_FILE {file} can not be opened"))?;
    let idem = config.engine().await?;
    idem.install()?;
    let listener = config.listen().await?;

    println!("order page  http://{}/", listener.local_addr()?);
    println!("orders      {file}");
    println!("records     {}", config.records());
    let router = app::router(Shop::new(pool), idem.clone());
    serve::until_told_to_stop(listener, router, &idem).await
}
