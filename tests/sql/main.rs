//! The SQL stores against real databases.

mod attempt;
mod scenes;
mod sqlite;
