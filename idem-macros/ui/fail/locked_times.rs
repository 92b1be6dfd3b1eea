use idem_core::{Error, locked};

#[locked(prefix = "stock", key = item, lease = "500ms", wait = 0)]
async fn take(item: u32) -> Result<u32, Error> {
    Ok(item)
}

#[locked(prefix = "stock", key = item, lease = "25h")]
async fn count(item: u32) -> Result<u32, Error> {
    Ok(item)
}

fn main() {}
