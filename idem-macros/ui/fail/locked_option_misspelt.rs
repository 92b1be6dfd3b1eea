use idem_core::{Error, locked};

#[locked(prefx = "stock", key = item, lese = 10)]
async fn take(item: u32) -> Result<u32, Error> {
    Ok(item)
}

fn main() {}
