use idem_core::States;

#[derive(Debug, PartialEq, Eq, States)]
enum Order {
    #[state(code = 1)]
    Created,
}

fn main() {}
