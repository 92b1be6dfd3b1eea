//! What the suites share: real servers, a faulty wire between them and a client, and worker
//! processes. Everything listens on loopback, keeps its files in a temporary folder, and ends with
//! its handle, also when a test panics; see [`process`] for what happens when the test itself is
//! killed.
//!
//! The handles block the calling thread and take `&self`, so that tasks and threads can share one.
//! A start takes 20 ms for a server and a few seconds for a cluster; everything else is quick
//! enough to be called from async tests as it is.
#![allow(
    clippy::missing_errors_doc,
    reason = "every call fails alike: a program is missing, has ended, or did not do it in time, and the error says which"
)]

pub mod attempt;
pub mod body;
pub mod changed;
pub mod changed_rows;
pub mod cluster;
pub mod database;
pub mod differential;
pub mod elsewhere;
pub mod events;
pub mod faulty;
pub mod history;
pub mod long;
pub mod mariadb;
pub mod mortal;
pub mod nats;
pub mod port;
pub mod postgres;
pub mod process;
pub mod program;
pub mod proxy;
pub mod rabbit;
pub mod redis;
pub mod resp;
pub mod rig;
pub mod round_trips;
pub mod sentinel;
pub mod tls;
pub mod wait;
pub mod wheels;
