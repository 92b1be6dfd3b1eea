use idem_core::KeyPart;

#[derive(KeyPart)]
struct Request {
    user: u64,
    order_no: String,
}

fn main() {}
