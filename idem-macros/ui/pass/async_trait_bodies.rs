//! M06
use std::sync::Arc;

use async_trait::async_trait;
use idem_core::{Error, Idempotency, Recovered, idempotent};

struct Wrapped<T>(T);

#[async_trait]
trait Pays {
    async fn pay(&self, amount: u32, note: &str) -> Result<String, Error>;
    async fn take(self: Arc<Self>, wrapped: Wrapped<u32>) -> Result<u32, Error>;
    async fn change(&mut self, mut amount: u32) -> Result<u32, Error>;
    async fn fixed(id: u32) -> Result<u32, Error>;

    #[idempotent(prefix = "default", key = "id")]
    async fn default(&self, id: u32) -> Result<u32, Error> {
        Ok(id)
    }
}

fn same(amount: u32) -> u32 {
    amount
}

struct Shop {
    tenant: String,
    engine: Idempotency,
}

impl Shop {
    async fn lookup(&self, _: &Wrapped<u32>) -> Result<Recovered<u32>, Error> {
        Ok(Recovered::NotDone)
    }
}

#[async_trait]
impl Pays for Shop {
    #[idempotent(prefix = "pay", key = "{self.tenant}:{amount}", engine = self.engine)]
    async fn pay(&self, amount: u32, note: &str) -> Result<String, Error> {
        Ok(format!("{} {amount} {note}", self.tenant))
    }

    #[idempotent(prefix = "take", key = (self.tenant, wrapped), recover = self.lookup(&Wrapped(wrapped)))]
    async fn take(self: Arc<Self>, Wrapped(wrapped): Wrapped<u32>) -> Result<u32, Error> {
        Ok(wrapped)
    }

    #[idempotent(prefix = "change", key = self::same(amount))]
    async fn change(&mut self, mut amount: u32) -> Result<u32, Error> {
        self.tenant.push('x');
        amount += 1;
        Ok(amount)
    }

    #[idempotent(prefix = "fixed", key = "id")]
    async fn fixed(id: u32) -> Result<u32, Error> {
        if id == 0 {
            return Err(Error::NotInstalled);
        }
        Ok(id)
    }
}

#[async_trait(?Send)]
trait Local {
    async fn run(&self, id: u32) -> Result<u32, Error>;
}

#[async_trait(?Send)]
impl Local for std::rc::Rc<u32> {
    #[idempotent(prefix = "local", key = "id")]
    async fn run(&self, id: u32) -> Result<u32, Error> {
        Ok(id + **self)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    idem_core::Idempotency::memory().install().unwrap();
    let mut shop = Shop { tenant: "T".into(), engine: Idempotency::memory() };
    assert_eq!(shop.pay(1, "n").await.unwrap(), "T 1 n");
    assert_eq!(shop.change(1).await.unwrap(), 2);
    assert_eq!(shop.default(4).await.unwrap(), 4);
    assert_eq!(Shop::fixed(5).await.unwrap(), 5);
    assert_eq!(Arc::new(shop).take(Wrapped(3)).await.unwrap(), 3);
    assert_eq!(std::rc::Rc::new(1).run(1).await.unwrap(), 2);
}
