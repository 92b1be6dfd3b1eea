use idem_core::States;

#[derive(Debug, Clone, Copy, PartialEq, Eq, States)]
enum Order {
    #[state(code = 1, code = 2)]
    Created,
}

fn main() {}
