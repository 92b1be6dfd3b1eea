//! PostgreSQL, with one client and with sixteen; and the bytes of its log.

use anyhow::Result;
use idem_core::Idempotency;
use idem_core::store::PostgresStore;
use idem_tests::postgres::PostgresServer;
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgConnection, PgPool, Postgres, Transaction};

use super::{Business, Rows, account_and_amount};
use crate::order::Order;
use crate::rounds::Load;

/// The least share of the bare transaction's rate that is good enough.
const TARGETS: [(Load, f64); 2] = [
    (
        Load {
            tasks: 1,
            calls: 1_000,
        },
        0.80,
    ),
    (
        Load {
            tasks: 16,
            calls: 4_000,
        },
        0.68,
    ),
];

/// Bytes of log that the guard may add to a call.
const LOGGED: f64 = 560.0;

const COUNTED: Load = Load {
    tasks: 1,
    calls: 4_000,
};

const TABLES: &str = "
CREATE TABLE account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL);
INSERT INTO account SELECT id, 0 FROM generate_series(0, 999) AS id;
CREATE TABLE ledger (order_no TEXT PRIMARY KEY, account BIGINT NOT NULL, amount BIGINT NOT NULL)";

impl Business for Postgres {
    async fn begin(pool: &PgPool) -> sqlx::Result<Transaction<'static, Self>> {
        pool.begin().await
    }

    async fn pay(connection: &mut PgConnection, order: &Order) -> sqlx::Result<()> {
        let (account, amount) = account_and_amount(order).map_err(sqlx::Error::decode)?;
        sqlx::query("UPDATE account SET balance = balance - $1 WHERE id = $2")
            .bind(amount)
            .bind(account)
            .execute(&mut *connection)
            .await?;
        sqlx::query("INSERT INTO ledger VALUES ($1, $2, $3)")
            .bind(&order.number)
            .bind(account)
            .bind(amount)
            .execute(connection)
            .await?;
        Ok(())
    }
}

/// A server that waits for its disk, as a service's does; then one that does not, where nothing
/// hides what the guard adds. The bytes of the log are the same on both.
pub(crate) async fn compare(rounds: usize) -> Result<()> {
    let durable = PostgresServer::start_durable()?;
    let (pool, rows) = open(&durable).await?;
    times(&rows, &pool, "fsync on", rounds).await?;
    drop(durable);
    let server = PostgresServer::start()?;
    let (pool, rows) = open(&server).await?;
    times(&rows, &pool, "fsync off", rounds).await?;
    logged(&rows, &pool).await
}

async fn open(server: &PostgresServer) -> Result<(PgPool, Rows)> {
    // Nobody ends these sessions: a ping before each transaction would only flatter the ratios.
    let pool = PgPoolOptions::new()
        .max_connections(16)
        .test_before_acquire(false);
    let pool = pool.connect(&server.url()).await?;
    sqlx::raw_sql(TABLES).execute(&pool).await?;
    let store = PostgresStore::new(pool.clone());
    store.migrate().await?;
    let rows = Rows::of(pool.clone(), Idempotency::builder(store).build()?);
    Ok((pool, rows))
}

async fn times(rows: &Rows, pool: &PgPool, disk: &str, rounds: usize) -> Result<()> {
    let version: String = sqlx::query_scalar("SELECT split_part(version(), ' ', 2)")
        .fetch_one(pool)
        .await?;
    for (load, target) in TARGETS {
        let (clients, calls) = (load.tasks, load.calls);
        println!("### PostgreSQL {version}, {disk}: {calls} calls by {clients} client(s)\n");
        rows.measure(load, rounds, target, async || fresh(pool).await)
            .await?;
    }
    Ok(())
}

/// Empty tables, and accounts without the versions that came before.
async fn fresh(pool: &PgPool) -> Result<()> {
    for statement in ["TRUNCATE ledger, idempotent_record", "VACUUM account"] {
        sqlx::raw_sql(statement).execute(pool).await?;
    }
    Ok(())
}

/// Bytes of log per call. What comes first after a checkpoint logs whole pages and is not counted.
async fn logged(rows: &Rows, pool: &PgPool) -> Result<()> {
    println!(
        "### Bytes of PostgreSQL's log per call, over {}\n",
        COUNTED.calls
    );
    println!("| | bytes | more than bare | target |");
    println!("|---|---:|---:|---:|");
    let mut bare = None;
    for row in &rows.0 {
        fresh(pool).await?;
        sqlx::raw_sql("CHECKPOINT").execute(pool).await?;
        row.run(COUNTED, 0).await?;
        let before = position(pool).await?;
        row.run(COUNTED, COUNTED.calls).await?;
        let bytes = (position(pool).await? - before) / COUNTED.calls_as_number();
        let more = bytes - *bare.get_or_insert(bytes);
        let is_held = row.name == "transaction mode";
        println!(
            "| {} | {bytes:.0} | {more:.0}{} | {} |",
            row.name,
            if is_held && more > LOGGED {
                " (missed)"
            } else {
                ""
            },
            if is_held {
                format!("≤ {LOGGED:.0}")
            } else {
                String::new()
            },
        );
    }
    println!();
    Ok(())
}

async fn position(pool: &PgPool) -> Result<f64> {
    let position = "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8";
    Ok(sqlx::query_scalar(position).fetch_one(pool).await?)
}
