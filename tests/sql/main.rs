//! The SQL stores against real databases.

mod backlog;
mod connecting;
mod history;
mod mysql;
mod outage;
mod postgres;
mod secrecy;
mod sqlite;
mod stands;
