//! The Redis store against real servers.

mod attempt;
mod cost;
mod dice;
mod expiry;
mod faults;
mod foreign;
mod laws;
mod outage;
mod push;
mod rights;
mod runtimes;
mod setup;
mod steps;
mod tls;
mod topologies;
mod versions;
