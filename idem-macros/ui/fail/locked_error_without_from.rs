use idem_core::locked;

struct StockError;

#[locked(prefix = "stock", key = item)]
async fn take(item: u32) -> Result<u32, StockError> {
    let _ = StockError;
    Ok(item)
}

fn main() {}
