//! A database that is away: the messages of the example, whose records and effects are in it.

use std::sync::Arc;
use std::time::Duration;

use idem_core::Idempotency;
use idem_core::consumer::Consumer;
use idem_core::states::Answer;
use idem_core::store::PostgresStore;
use idem_examples::orders::{self, Draft, Status};
use idem_examples::rabbit::Message;
use idem_examples::scenes::messages::{handle, meaning};
use idem_tests::postgres::PostgresServer;
use sqlx::postgres::PgPoolOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

use crate::rig::{Aside, RULES, id, queue, soon};

/// A paid order.
async fn paid(pool: &PgPool, number: usize) -> String {
    let draft = Draft {
        request_id: format!("r-{number}"),
        item: "tea".into(),
        quantity: 1,
        amount_cents: 420,
    };
    let order = orders::insert_or_get(pool, &draft).await.unwrap();
    let mut tx = pool.begin().await.unwrap();
    let charge_no = i64::try_from(number).unwrap();
    let paid = orders::pay(&mut tx, &order.order_no, charge_no, None).await;
    assert!(matches!(paid.unwrap(), Answer::Applied { .. }));
    tx.commit().await.unwrap();
    order.order_no
}

/// How the database is taken away, and given back.
type Switch = fn(&PostgresServer);

async fn no_outage_makes_a_message_dead(begin: Switch, end: Switch) {
    const ORDERS: usize = 12;
    let server = PostgresServer::start().unwrap();
    idem_examples::database::postgres(&server.url())
        .await
        .unwrap();
    let impatient = PgPoolOptions::new().acquire_timeout(Duration::from_millis(500));
    let pool = impatient.connect(&server.url()).await.unwrap();
    let store = PostgresStore::new(pool.clone());
    store.migrate().await.unwrap();
    let idem = Idempotency::builder(store).build().unwrap();
    let mut numbers = Vec::new();
    for number in 1..=ORDERS {
        numbers.push(paid(&pool, number).await);
    }
    let rabbit = queue();
    let aside = Aside::on_the_broker_of_all(&rabbit).await;
    let publish = async |orders: &[String]| {
        for order_no in orders {
            let payload = format!(r#"{{"order_no":"{order_no}"}}"#);
            let id = id(order_no);
            aside.link.publish(&id, payload.as_bytes()).await.unwrap();
        }
    };
    let consumer = Arc::new(Consumer::new(meaning).rules(RULES));
    let (stop, stopped) = oneshot::channel::<()>();
    let listening = tokio::spawn({
        let (rabbit, consumer, pool) = (rabbit.clone(), consumer.clone(), pool.clone());
        async move {
            let handler = move |message: Message| {
                let (pool, idem) = (pool.clone(), idem.clone());
                async move { idem.scope(handle(&pool, &message.payload)).await }
            };
            let stopped = async {
                let _ = stopped.await;
            };
            rabbit.listen(consumer, handler, stopped).await;
        }
    });
    let (before, during) = numbers.split_at(ORDERS / 2);
    publish(before).await;
    soon("the first are done", async || consumer.counts().acked >= 6).await;

    tokio::task::block_in_place(|| begin(&server));
    publish(during).await;
    // More often than a message may be retried.
    soon("they are held back", async || {
        consumer.counts().paused >= 10
    })
    .await;
    tokio::task::block_in_place(|| end(&server));

    soon("all are done", async || consumer.counts().acked >= 12).await;
    let _ = stop.send(());
    listening.await.unwrap();
    let counts = consumer.counts();
    assert_eq!((counts.acked, counts.parked, counts.dead), (12, 0, 0));
    for order_no in &numbers {
        let order = orders::find(&pool, order_no).await.unwrap().unwrap();
        assert_eq!((order.status, order.version), (Status::Shipped, 3));
    }
    aside.nothing_is_left().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_of_the_database_holds_the_messages_back_and_makes_none_dead() {
    let begin: Switch = |server| server.stop().unwrap();
    no_outage_makes_a_message_dead(begin, |server| server.start_again().unwrap()).await;
}

/// As after a fail-over, or when the disk is full: it answers, and takes nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_only_reads_holds_the_messages_back_and_makes_none_dead() {
    no_outage_makes_a_message_dead(
        |server| read_only(server, "on"),
        |server| {
            read_only(server, "off");
        },
    )
    .await;
}

fn read_only(server: &PostgresServer, word: &str) {
    let set = format!("ALTER SYSTEM SET default_transaction_read_only = {word}");
    Handle::current().block_on(async {
        let mut aside = PgConnection::connect(&server.url()).await.unwrap();
        // Its own statements are transactions, too.
        let free = "SET default_transaction_read_only = off";
        for sql in [free, &set, "SELECT pg_reload_conf()"] {
            let sql = AssertSqlSafe(sql.to_owned());
            sqlx::raw_sql(sql).execute(&mut aside).await.unwrap();
        }
    });
}
