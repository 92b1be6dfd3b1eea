use std::sync::Arc;

use idem_core::{Error, Recovered, idempotent};

struct Bank;

impl Bank {
    async fn lookup(&self, _no: &str, _amount: &u32) -> Result<Recovered<u32>, Error> {
        Ok(Recovered::Unknown)
    }

    #[idempotent(prefix = "by:ref", key = "no", recover = Self::lookup)]
    async fn by_ref(&self, no: &str, amount: u32) -> Result<u32, Error> {
        let _ = no;
        Ok(amount)
    }

    #[idempotent(prefix = "by:mut", key = "no", recover = Self::lookup)]
    async fn by_mut(&mut self, no: String, amount: u32) -> Result<u32, Error> {
        let _ = no;
        Ok(amount)
    }

    #[idempotent(prefix = "by:arc", key = "no", recover = Self::lookup)]
    async fn by_arc(self: Arc<Self>, no: String, amount: u32) -> Result<u32, Error> {
        let _ = no;
        Ok(amount)
    }

    #[idempotent(prefix = "by:call", key = "no", recover = self.lookup(&no, &amount))]
    async fn by_call(self, no: String, amount: u32) -> Result<u32, Error> {
        let _ = no;
        Ok(amount)
    }
}

fn send<T: Send>(future: T) -> T {
    future
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    idem_core::Idempotency::memory().install().unwrap();
    assert_eq!(send(Bank.by_ref("A", 1)).await.unwrap(), 1);
    assert_eq!(send(Bank.by_mut("A".into(), 1)).await.unwrap(), 1);
    assert_eq!(send(Arc::new(Bank).by_arc("A".into(), 1)).await.unwrap(), 1);
    assert_eq!(send(Bank.by_call("A".into(), 1)).await.unwrap(), 1);
}
