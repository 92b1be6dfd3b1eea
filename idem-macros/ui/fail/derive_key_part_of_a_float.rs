use idem_core::KeyPart;

#[derive(KeyPart)]
struct Amount(f64);

fn main() {}
