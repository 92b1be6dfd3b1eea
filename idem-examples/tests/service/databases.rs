//! The scenes with their tables in PostgreSQL and MariaDB. SQLite is what all other tests use.

use anyhow::Result;
use idem_tests::mariadb::MariaDbServer;
use idem_tests::postgres::PostgresServer;

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
