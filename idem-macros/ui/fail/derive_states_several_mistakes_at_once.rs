use idem_core::States;

#[derive(Debug, Clone, Copy, PartialEq, Eq, States)]
enum Order {
    #[state(code = 1, to(Piad, Sent))]
    Created,
    #[state(code = 1, label = "paid")]
    Paid,
    Sent(u8),
}

fn main() {}
