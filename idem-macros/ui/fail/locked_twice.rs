use idem_core::{Error, locked};

#[locked(prefix = "stock", key = item)]
#[locked(prefix = "shelf", key = item)]
async fn take(item: u32) -> Result<u32, Error> {
    Ok(item)
}

fn main() {}
