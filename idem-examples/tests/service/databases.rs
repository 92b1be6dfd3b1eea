//! The scenes with their tables in PostgreSQL and MariaDB. SQLite is what all other tests use.

use std::pin::pin;
use std::time::Duration;

use anyhow::Result;
use idem_examples::database;
use idem_tests::mariadb::MariaDbServer;
use idem_tests::postgres::PostgresServer;
use sqlx::ConnectOptions;
use sqlx::sqlite::SqliteConnectOptions;
use tokio::time::timeout;

use crate::server::{Place, Service};
use crate::{callbacks, duplicates, flash_sale, forms, orders};

fn every_scene(service: &Service) -> Result<()> {
    orders::creates_one_order(service)?;
    orders::tells_ids_apart(service)?;
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

/// Its numbers are not those of charges that this database was told of before.
#[test]
fn a_new_ledger_of_the_provider_meets_no_old_notification() -> Result<()> {
    let server = PostgresServer::start()?;
    for _ in 0..2 {
        callbacks::notes_each_event_once(&Place::on(server.url())?.start("service")?)?;
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
