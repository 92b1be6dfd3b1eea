//! The order service as its users meet it: the real program, over HTTP, in a folder of its own.

mod client;
mod crashes;
mod duplicates;
mod orders;
mod page;
mod provider;
mod server;
mod stopping;
