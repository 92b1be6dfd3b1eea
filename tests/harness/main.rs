//! The harness itself: each server, the proxy and the workers do what the suites rely on.

mod brokers;
mod cluster;
mod databases;
mod process;
mod proxy;
mod redis;
mod sentinel;
mod tls;

use std::time::Duration;

const SOON: Duration = Duration::from_secs(10);

fn has_process(id: u32) -> bool {
    std::path::Path::new(&format!("/proc/{id}")).exists()
}
