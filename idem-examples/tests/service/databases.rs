//! The scenes with their tables in PostgreSQL and MariaDB. SQLite is what all other tests use.

use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Result;
use idem_examples::database::{self, Dialect};
use idem_tests::mariadb::MariaDbServer;
use idem_tests::postgres::PostgresServer;
use idem_tests::proxy::{Mode, Proxy};
use idem_tests::wait::{need, until};
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection, MySqlConnection, PgConnection, Postgres};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::callbacks::LATE;
use crate::server::{Place, Service};
use crate::{callbacks, duplicates, flash_sale, forms, orders};

const PATIENCE: Duration = Duration::from_secs(30);

/// What a server says of the transactions that are open on it.
pub(crate) struct Begun {
    runtime: Runtime,
    url: String,
}

impl Begun {
    pub(crate) fn at(server: &PostgresServer) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let url = server.url();
        Ok(Self { runtime, url })
    }

    pub(crate) fn count(&self) -> Result<i64> {
        let count = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'";
        self.runtime.block_on(async {
            let mut server = PgConnection::connect(&self.url).await?;
            Ok(sqlx::query_scalar(count).fetch_one(&mut server).await?)
        })
    }
}

fn every_scene(service: &Service) -> Result<()> {
    orders::creates_one_order(service)?;
    orders::tells_ids_apart(service)?;
    orders::finds_nothing_under_a_nul(service)?;
    forms::takes_a_token_once(service)?;
    duplicates::charges_once(service, 3)?;
    callbacks::notes_each_event_once(service)?;
    callbacks::even_books(service)?;
    flash_sale::sells_what_there_is(service)?;
    flash_sale::sells_what_there_is_in_turn(service)?;
    flash_sale::sells_one_to_one_request(service)
}

#[test]
fn every_scene_works_in_postgresql() -> Result<()> {
    let server = PostgresServer::start()?;
    every_scene(&Place::on(server.url())?.start("service")?)
}

#[test]
fn every_scene_works_in_mariadb() -> Result<()> {
    let server = MariaDbServer::start()?;
    every_scene(&Place::on(server.url())?.start("service")?)
}

/// What the service does with a record that has expired.
const EXPIRE: &str = "DELETE FROM idempotent_record";

fn once_in_the_books(place: &Rc<Place>, expire: impl AsyncFn() -> Result<()>) -> Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let service = place.start("service")?;
    callbacks::writes_no_line_twice(&service, || runtime.block_on(expire()))
}

#[test]
fn an_event_told_again_when_its_record_has_expired_is_once_in_the_books() -> Result<()> {
    let place = Place::alone()?;
    once_in_the_books(&place, async || {
        let file = SqliteConnectOptions::new().filename(place.orders_file());
        let mut database = file.connect().await?;
        sqlx::raw_sql(EXPIRE).execute(&mut database).await?;
        Ok(())
    })
}

#[test]
fn an_event_told_again_is_once_in_the_books_in_postgresql_too() -> Result<()> {
    let server = PostgresServer::start()?;
    once_in_the_books(&Place::on(server.url())?, async || {
        let mut database = PgConnection::connect(&server.url()).await?;
        sqlx::raw_sql(EXPIRE).execute(&mut database).await?;
        Ok(())
    })
}

#[test]
fn an_event_told_again_is_once_in_the_books_in_mariadb_too() -> Result<()> {
    let server = MariaDbServer::start()?;
    once_in_the_books(&Place::on(server.url())?, async || {
        let mut database = MySqlConnection::connect(&server.url()).await?;
        sqlx::raw_sql(EXPIRE).execute(&mut database).await?;
        Ok(())
    })
}

/// Its numbers are not those of charges that this database was told of before.
#[test]
fn a_new_ledger_of_the_provider_meets_no_old_notification() -> Result<()> {
    let server = PostgresServer::start()?;
    for request in ["of the old ledger", "of the new ledger"] {
        callbacks::notes_a_payment(&Place::on(server.url())?.start("service")?, request)?;
    }
    Ok(())
}

#[test]
fn servers_that_start_at_once_make_the_tables_once() -> Result<()> {
    let (postgres, mariadb) = (PostgresServer::start()?, MariaDbServer::start()?);
    for url in [postgres.url(), mariadb.url()] {
        let place = Place::on(url)?;
        let services = place.start_at_once(4)?;
        assert_eq!(services.len(), 4);
    }
    Ok(())
}

#[test]
fn servers_that_start_at_once_share_a_new_file() -> Result<()> {
    let services = Place::alone()?.start_at_once(4)?;
    orders::creates_one_order(&services[3])
}

#[tokio::test]
async fn a_new_file_that_another_writes_to_is_opened_when_that_one_is_done() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("orders.sqlite");
    let another = SqliteConnectOptions::new().filename(&file);
    let mut another = another.create_if_missing(true).connect().await?;
    let begin = sqlx::raw_sql("BEGIN IMMEDIATE");
    begin.execute(&mut another).await?;

    let mut opening = pin!(database::ledger(&file));
    let early = timeout(Duration::from_millis(200), &mut opening).await;
    assert!(early.is_err(), "it is still asked for: {early:?}");
    sqlx::raw_sql("COMMIT").execute(&mut another).await?;
    opening.await?;
    Ok(())
}

#[test]
fn a_begin_that_is_dropped_leaves_no_transaction_on_its_connection() -> Result<()> {
    let server = PostgresServer::start()?;
    let begun = Begun::at(&server)?;
    let proxy = Proxy::start(server.address())?;
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .test_before_acquire(false);
    let pool = runtime.block_on(pool.connect(&PostgresServer::url_at(proxy.address())))?;
    proxy.set(LATE);
    let caller = runtime.spawn({
        let pool = pool.clone();
        async move { Postgres::begin(&pool).await.map(drop) }
    });
    until("a BEGIN that is not answered", PATIENCE, || {
        need(begun.count()? == 1, "none has begun")
    })?;
    caller.abort();
    proxy.set(Mode::Pass);
    runtime.block_on(async {
        assert!(caller.await.unwrap_err().is_cancelled());
        sqlx::raw_sql("CREATE TABLE kept ()").execute(&pool).await
    })?;
    assert_eq!(begun.count()?, 0);
    let mut kept = runtime.block_on(PgConnection::connect(&server.url()))?;
    runtime.block_on(sqlx::raw_sql("SELECT FROM kept").execute(&mut kept))?;
    Ok(())
}
