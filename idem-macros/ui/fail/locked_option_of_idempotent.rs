use idem_core::{Error, locked};

#[locked(prefix = "stock", key = item, expire = 600)]
async fn take(item: u32) -> Result<u32, Error> {
    Ok(item)
}

fn main() {}
