//! The SQL stores against real databases.

mod connecting;
mod history;
mod mysql;
mod postgres;
mod sqlite;
mod stands;
