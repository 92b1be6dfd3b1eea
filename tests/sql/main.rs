//! The SQL stores against real databases.

mod attempt;
mod limits;
mod mysql;
mod postgres;
mod scenes;
mod sqlite;
