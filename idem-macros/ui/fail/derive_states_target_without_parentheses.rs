use idem_core::States;

#[derive(Debug, Clone, Copy, PartialEq, Eq, States)]
enum Order {
    #[state(code = 1, to = Paid)]
    Created,
    #[state(code = 2)]
    Paid,
}

fn main() {}
