//! An order service: what `idem` does, in a service that can be read in one sitting.
//!
//! [`scenes`] holds the annotated functions; everything else is the service around them: tables in
//! [`orders`], [`payments`] and [`stock`], a simulated payment provider in [`gateway`], HTTP in [`app`] and [`answer`].

pub mod answer;
pub mod apart;
pub mod app;
pub mod causes;
pub mod config;
pub mod database;
pub mod gateway;
pub mod input;
pub mod orders;
mod page;
pub mod payments;
pub mod purge;
pub mod rabbit;
pub mod records;
pub mod scenes;
pub mod seal;
pub mod serve;
pub mod session;
pub mod shop;
pub mod stock;

/// The code in the README, compiled with what it uses.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
