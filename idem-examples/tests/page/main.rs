//! The page as people meet it: a headless Chromium, its mouse and its keyboard.

mod browser;
mod callbacks;
mod forms;
mod keyboard;
mod languages;
mod paying;
mod records;
mod shop;
mod shopping;

#[path = "../service/client.rs"]
#[allow(
    dead_code,
    reason = "shared with the suite `service`, which uses all of it"
)]
mod client;
#[path = "../service/server.rs"]
#[allow(
    dead_code,
    reason = "shared with the suite `service`, which uses all of it"
)]
mod server;
