use idem_core::{Error, idempotent};

struct User {
    id: u64,
    weight: f64,
}

struct Form {
    token: String,
    amount: u32,
}

#[idempotent(prefix = "order:submit", token = "form.amount", subject = "user.id")]
async fn submit(user: User, form: Form) -> Result<u32, Error> {
    let _ = (user.id, user.weight, form.token);
    Ok(form.amount)
}

fn main() {}
