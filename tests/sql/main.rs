//! The SQL stores against real databases.

mod connecting;
mod history;
mod mysql;
mod outage;
mod postgres;
mod sqlite;
mod stands;
