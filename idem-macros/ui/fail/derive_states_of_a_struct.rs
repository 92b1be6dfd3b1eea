use idem_core::States;

#[derive(States)]
struct Order;

fn main() {}
