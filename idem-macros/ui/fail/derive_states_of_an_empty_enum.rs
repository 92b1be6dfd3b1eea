use idem_core::States;

#[derive(Debug, Clone, Copy, PartialEq, Eq, States)]
enum Order {}

fn main() {}
