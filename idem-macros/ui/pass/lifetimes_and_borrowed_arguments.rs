//! M01
use idem_core::{Error, idempotent};

struct Order {
    no: String,
}

#[idempotent(prefix = "named", key = "order.no")]
async fn named<'a>(order: &'a Order) -> Result<String, Error> {
    Ok(order.no.clone())
}

#[idempotent(prefix = "elided", key = "order.no")]
async fn elided(order: &Order, note: &str) -> Result<String, Error> {
    Ok(format!("{} {note}", order.no))
}

#[idempotent(prefix = "borrowed", key = "order.no", on_duplicate = "reject")]
async fn borrowed<'a>(order: &'a Order) -> Result<&'a str, Error> {
    Ok(&order.no)
}

#[idempotent(prefix = "unique", key = "order.no")]
async fn unique(order: &mut Order) -> Result<(), Error> {
    order.no.push('x');
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    idem_core::Idempotency::memory().install().unwrap();
    let mut order = Order { no: "A".into() };
    assert_eq!(named(&order).await.unwrap(), "A");
    assert_eq!(elided(&order, "n").await.unwrap(), "A n");
    assert_eq!(borrowed(&order).await.unwrap(), "A");
    unique(&mut order).await.unwrap();
    assert_eq!(order.no, "Ax");
}
