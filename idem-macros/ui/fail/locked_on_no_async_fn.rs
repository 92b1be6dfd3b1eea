use idem_core::{Error, locked};

#[locked(prefix = "stock", key = item)]
fn take(item: u32) -> Result<u32, Error> {
    Ok(item)
}

#[locked(prefix = "stock", key = item)]
async fn count(item: u32) -> u32 {
    item
}

#[locked(prefix = "stock", key = item)]
struct Stock;

fn main() {}
