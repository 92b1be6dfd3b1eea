use idem_core::{Error, locked};

#[locked(prefix = "stock", key = item, fingerprint = item)]
async fn take(item: u32) -> Result<u32, Error> {
    Ok(item)
}

fn main() {}
