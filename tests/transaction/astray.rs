//! A body that begins a transaction of its own and does not end it: sqlx then rolls back what is
//! around it, too, or counts a level too many.

use std::mem;

use anyhow::bail;
use idem_core::{Key, Policy, idempotent};
use sqlx::{Acquire, Transaction};

use crate::base::{Base, Place};
use crate::half::drop_at;
use crate::shop::{Then, pay};

/// How a body goes on after its `begin` was dropped.
#[derive(Debug, Clone, Copy)]
struct Plan {
    /// Whether it writes once more.
    writes: bool,
    fails: bool,
}

const PLANS: [Plan; 4] = [
    Plan {
        writes: false,
        fails: false,
    },
    Plan {
        writes: false,
        fails: true,
    },
    Plan {
        writes: true,
        fails: false,
    },
    Plan {
        writes: true,
        fails: true,
    },
];

/// Those of which nothing can be kept. PostgreSQL is in no transaction any more, and what is written
/// is committed at once.
fn plans<D: Base>() -> impl Iterator<Item = Plan> {
    let may_write = D::NAME != "PostgreSQL";
    PLANS
        .into_iter()
        .filter(move |plan| may_write || !plan.writes)
}

/// As by a time-out around an optional step.
async fn stray<D: Base>(tx: &mut Transaction<'_, D>, plan: Plan) -> anyhow::Result<()> {
    D::add(tx, 1).await?;
    // SQLite may have answered at once; then nothing is dropped.
    let has_begun = drop_at(1, tx.begin()).await;
    if plan.writes {
        D::add(tx, 3).await?;
    }
    if plan.fails || has_begun {
        bail!("declined");
    }
    Ok(())
}

#[idempotent(prefix = "stray", key = number, tx = tx, engine = place.idem, on_missing_key = "run")]
async fn strays<D: Base>(
    place: &Place<D>,
    tx: &mut Transaction<'_, D>,
    number: Option<i64>,
    plan: Plan,
) -> anyhow::Result<()> {
    let _ = place;
    stray(tx, plan).await
}

/// Neither what the body did is kept, nor does the caller write statement by statement.
async fn keeps_nothing<D: Base>(place: &Place<D>, mut tx: Transaction<'static, D>, context: &str) {
    let _ = D::add(&mut tx, 8).await;
    tx.rollback().await.unwrap();
    let effects = place.effects().await;
    assert!(effects.is_empty(), "{context}: {effects:?}");
}

/// The same where it commits; what it did itself before may be there.
async fn commits_without<D: Base>(
    place: &Place<D>,
    mut tx: Transaction<'static, D>,
    context: &str,
) {
    let went_on = D::add(&mut tx, 8).await;
    let _ = tx.commit().await;
    let expected: &[i64] = if went_on.is_ok() { &[6, 8] } else { &[] };
    assert_eq!(place.effects().await, expected, "{context}");
    D::clear(&place.pool).await;
}

async fn goes_astray<D: Base>(key: Option<i64>) {
    let place = D::place().await;
    for plan in plans::<D>() {
        for commits in [false, true] {
            let context = format!("{plan:?}, commits: {commits}");
            let mut tx = place.begin().await;
            D::add(&mut tx, 6).await.unwrap();
            let result = strays(&place, &mut tx, key, plan).await;
            result.expect_err(&context);
            if commits {
                commits_without(&place, tx, &context).await;
            } else {
                keeps_nothing(&place, tx, &context).await;
            }
        }
    }
    // No record says that it was done, and the connection is as good as any.
    for number in 1..=8 {
        let mut tx = place.begin().await;
        pay(&place, &mut tx, number, Then::End).await.unwrap();
        tx.commit().await.unwrap();
    }
}

pub(crate) async fn a_body_whose_begin_is_dropped_keeps_nothing<D: Base>() {
    goes_astray::<D>(Some(1)).await;
}

pub(crate) async fn a_body_without_a_key_whose_begin_is_dropped_keeps_nothing<D: Base>() {
    goes_astray::<D>(None).await;
}

pub(crate) async fn a_body_deeper_down_whose_begin_is_dropped_keeps_nothing<D: Base>() {
    let place = D::place().await;
    for (number, plan) in (1..).zip(PLANS) {
        for tells in [false, true] {
            let context = format!("{plan:?}, tells: {tells}");
            let mut tx = place.begin().await;
            D::add(&mut tx, 6).await.unwrap();
            let outer = async |tx: &mut Transaction<'_, D>| {
                D::add(tx, 4).await?;
                let inner = strays(&place, tx, Some(1), plan).await;
                assert!(inner.is_err(), "{context}");
                if tells { inner } else { Ok(()) }
            };
            // The record of one that went on stands.
            let key = Key::new("outer", (number, tells)).unwrap();
            let call = place.idem.run_in(&mut tx, key, Policy::new(), outer).await;
            let went_on = D::add(&mut tx, 8).await;
            let _ = tx.commit().await;
            let expected: &[i64] = match (went_on.is_ok(), call.is_ok()) {
                (true, true) => &[4, 6, 8],
                (true, false) => &[6, 8],
                (false, _) => &[],
            };
            assert_eq!(place.effects().await, expected, "{context}");
            D::clear(&place.pool).await;
        }
    }
}

pub(crate) async fn a_body_that_leaves_a_begin_open_keeps_nothing<D: Base>() {
    let place = D::place().await;
    let mut tx = place.begin().await;
    D::add(&mut tx, 6).await.unwrap();
    let body = async |tx: &mut Transaction<'_, D>| {
        mem::forget(tx.begin().await?);
        D::add(tx, 1).await?;
        anyhow::Ok(())
    };
    let key = Key::new("open", "1").unwrap();
    let call = place.idem.run_in(&mut tx, key, Policy::new(), body);
    call.await.unwrap_err();
    D::add(&mut tx, 8).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(place.effects().await, [6, 8]);
}
