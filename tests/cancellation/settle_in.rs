//! Bodies whose effect and success are one transaction: whenever they are dropped, both are there or
//! neither.

use std::future::Future;

use idem_core::{Attempt, Policy};
use idem_tests::mortal::base::Kept;
use sqlx::{Sqlite, Transaction};

use crate::ground::Ground;
use crate::scene::{Ends, Failure, Reached, Said, Scene, is};
use crate::sweep::sweep;
use crate::tables::{Home, InTable};

const LEAST: usize = 12;

impl<D: Home> Scene<InTable<D>> {
    async fn pay(&self) -> Said {
        let body = async || {
            let mut tx = self.begin().await;
            let attempt = Attempt::current().ok_or(Failure::Declined)?;
            attempt.settle_in(&mut tx, &1).await?;
            self.commit(tx).await
        };
        self.run(body).await
    }

    /// Its effect and its success are parted: what nobody should write.
    async fn pay_and_settle_afterwards(&self) -> Said {
        let body = async || {
            let tx = self.begin().await;
            self.commit(tx).await
        };
        self.run(body).await
    }

    async fn run<F: Future<Output = Said>>(&self, body: impl FnOnce() -> F) -> Said {
        let (idem, key) = (self.ground().idem(), self.key.clone());
        idem.run_with(key, self.policy, self.results(), None, body)
            .await
    }

    /// A transaction with the effect in it.
    async fn begin(&self) -> Transaction<'static, D> {
        self.bodies.add();
        self.reach(Reached::Body);
        let mut tx = D::begin(&self.ground().pool).await.unwrap();
        D::add(&mut tx, self.in_table()).await.unwrap();
        tx
    }

    async fn commit(&self, tx: Transaction<'static, D>) -> Said {
        self.reach(Reached::Effect);
        tx.commit().await.unwrap();
        self.reach(Reached::End);
        tokio::task::yield_now().await;
        Ok(1)
    }

    fn in_table(&self) -> i64 {
        self.number.try_into().unwrap()
    }

    async fn kept(&self) -> Kept {
        let kept = D::kept(&self.ground().pool, self.in_table()).await;
        kept.unwrap()
    }

    /// What the next caller hears, and that nobody had a second effect.
    async fn next_hears_of_both_or_of_neither(&self, said: Option<Said>) {
        assert!(said.is_none_or(|said| said == Ok(1)));
        assert!(!self.is_live().await, "the key is stuck");
        let (kept, reached, before) = (self.kept().await, self.reached(), self.bodies.count());
        assert_eq!(kept.effects, kept.successes, "one without the other");
        match reached {
            Reached::Nothing | Reached::Body => assert_eq!(kept.effects, 0),
            Reached::End => assert_eq!(kept.effects, 1),
            // COMMIT was under way.
            _ => {}
        }
        let next = self.pay().await;
        let ran = self.bodies.count() > before;
        let is_as_promised = if kept.effects == 1 {
            !ran && next == Ok(1)
        } else if reached == Reached::Nothing || self.reruns() {
            ran && next == Ok(1)
        } else {
            !ran && is(&next, "outcome_unknown")
        };
        assert!(is_as_promised, "{reached:?}: {next:?}, ran: {ran}");
        assert_eq!(self.kept().await.effects, i64::from(next == Ok(1)));
    }
}

fn settled_in<D: Home>(policy: Policy) {
    sweep(
        LEAST,
        async || Scene::<InTable<D>>::new(policy, Ends::Well).await,
        async |scene| scene.pay().await,
        async |scene, said, _| scene.next_hears_of_both_or_of_neither(said).await,
    );
}

pub(crate) fn at_hold<D: Home>() {
    settled_in::<D>(Policy::new());
}

pub(crate) fn at_rerun<D: Home>() {
    settled_in::<D>(Policy::new().rerun_abandoned());
}

/// SQLite may have committed by the poll after which it could be cut: then the next sweep finds it.
#[test]
#[should_panic(expected = "one without the other")]
fn a_body_that_is_settled_after_its_commit_is_found_out() {
    for _ in 0..3 {
        sweep(
            LEAST,
            async || Scene::<InTable<Sqlite>>::new(Policy::new(), Ends::Well).await,
            async |scene| scene.pay_and_settle_afterwards().await,
            async |scene, said, _| scene.next_hears_of_both_or_of_neither(said).await,
        );
    }
}
