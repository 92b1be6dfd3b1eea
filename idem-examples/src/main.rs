//! `cargo run -p idem-examples`: prints its address and serves.

use std::io::stderr;

use anyhow::Context;
use idem_examples::config::{Config, Orders};
use idem_examples::database::Dialect;
use idem_examples::scenes::messages::{self, QUEUE};
use idem_examples::shop::Shop;
use idem_examples::{app, database, purge, serve};
use tracing_subscriber::filter::LevelFilter;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_max_level(LevelFilter::INFO)
        .with_writer(stderr)
        .init();
    let config = Config::from_env()?;
    let file = &config.orders_file;
    let ledger = database::ledger(file)
        .await
        .with_context(|| format!("ORDERS_FILE {} can not be opened", file.display()))?;
    match &config.orders {
        Orders::File => run(&config, Shop::new(database::sqlite(file).await?, ledger)).await,
        Orders::Postgres(url) => {
            let pool = database::postgres(url).await.context(UNUSABLE)?;
            run(&config, Shop::new(pool, ledger)).await
        }
        Orders::MySql(url) => {
            let pool = database::mysql(url).await.context(UNUSABLE)?;
            run(&config, Shop::new(pool, ledger)).await
        }
    }
}

const UNUSABLE: &str = "DATABASE_URL can not be used";

async fn run<DB: Dialect>(config: &Config, shop: Shop<DB>) -> anyhow::Result<()> {
    let idem = config.engine().await?;
    idem.install()?;
    let listener = config.listen().await?;

    println!("order page  http://{}/", listener.local_addr()?);
    println!("orders      {}", config.orders());
    println!("records     {}", config.records());
    let router = app::router(shop.clone(), idem.clone(), &config.seal).await?;
    let pool = shop.pool.clone();
    let purging = async {
        purge::keep_purged(pool, serve::told_to_stop()?).await;
        anyhow::Ok(())
    };
    let consuming = async {
        if let Some(url) = &config.amqp_url {
            println!("messages    from RabbitMQ, queue {QUEUE}");
            let listening = messages::listen(shop, url, serve::told_to_stop()?);
            serve::within_patience(listening, serve::told_to_stop()?).await;
        }
        anyhow::Ok(())
    };
    let serving = serve::until_told_to_stop(listener, router, &idem);
    tokio::try_join!(serving, consuming, purging)?;
    Ok(())
}
