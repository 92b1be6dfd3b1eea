//! The Redis store against real servers.

mod attempt;
mod cost;
mod dice;
mod laws;
mod steps;
