use idem_core::KeyPart;

#[derive(KeyPart)]
enum Channel {
    Web,
    Shop(u32),
    Partner { id: u32 },
}

fn main() {}
