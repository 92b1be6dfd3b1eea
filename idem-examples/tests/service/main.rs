//! The order service as its users meet it: the real program, over HTTP, in a folder of its own.

mod callbacks;
mod client;
mod crashes;
mod databases;
mod duplicates;
mod flash_sale;
mod forms;
mod messages;
mod orders;
mod page;
mod provider;
mod server;
mod stopping;
