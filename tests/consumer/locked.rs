//! Handlers under a lock.

use idem_core::consumer::{Action, Consumer, MessageId, Reason};
use idem_core::{Idempotency, idempotent, locked};

use crate::rig::{Failure, RULES, is_retried_and_dead, meaning};

struct Warehouse {
    idem: Idempotency,
}

impl Warehouse {
    fn new() -> Self {
        let idem = Idempotency::memory();
        Self { idem }
    }

    /// Of two steps; the second one fails.
    #[locked(prefix = "test:ship", key = "id", engine = self.idem)]
    async fn ship(&self, id: MessageId) -> Result<(), Failure> {
        self.reserve(&id).await?;
        Err(Failure::Passing)
    }

    #[idempotent(prefix = "test:reserve", key = "id", on_duplicate = "reject", engine = self.idem)]
    async fn reserve(&self, id: &MessageId) -> Result<(), Failure> {
        Ok(())
    }

    #[idempotent(prefix = "test:pack", key = "id", on_duplicate = "reject", engine = self.idem)]
    #[locked(prefix = "test:pack", key = "id", engine = self.idem)]
    async fn pack(&self, id: MessageId) -> Result<(), Failure> {
        Ok(())
    }
}

/// From the second delivery on the first step is a duplicate, and the message is not.
#[tokio::test]
async fn a_step_that_was_done_before_does_not_acknowledge_the_message_of_its_handler() {
    let warehouse = Warehouse::new();
    let consumer = Consumer::new(meaning).rules(RULES);
    is_retried_and_dead(3, Reason::RetriesExhausted, async |retries| {
        let handler = async |id: MessageId| warehouse.ship(id).await;
        consumer.handle(Some("m-1"), retries, handler).await
    })
    .await;
}

#[tokio::test]
async fn a_duplicate_of_a_handler_that_is_locked_and_idempotent_is_acknowledged() {
    let warehouse = Warehouse::new();
    let consumer = Consumer::new(meaning).rules(RULES);
    for _ in 0..2 {
        let handler = async |id: MessageId| warehouse.pack(id).await;
        assert_eq!(consumer.handle(Some("m-1"), 0, handler).await, Action::Ack);
    }
}
