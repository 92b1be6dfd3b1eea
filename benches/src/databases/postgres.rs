//! PostgreSQL, with one client and with sixteen; and the bytes of its log.

use std::fs;

use anyhow::{Context, Result, ensure};
use idem_core::Idempotency;
use idem_core::store::PostgresStore;
use idem_tests::postgres::PostgresServer;
use sqlx::postgres::PgPoolOptions;
use sqlx::{PgConnection, PgPool, Postgres, Transaction};

use super::{Business, Rows, account_and_amount};
use crate::beside::Place;
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
CREATE TABLE ledger (order_no TEXT PRIMARY KEY, account BIGINT NOT NULL, amount BIGINT NOT NULL);
CREATE TABLE request (key TEXT PRIMARY KEY, result BYTEA NOT NULL)";

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

    async fn ask_by_hand(connection: &mut PgConnection, key: &str) -> Result<Option<Vec<u8>>> {
        let lock = "SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))";
        let is_ours: bool = sqlx::query_scalar(lock)
            .bind(key)
            .fetch_one(&mut *connection)
            .await?;
        ensure!(is_ours, "another transaction is at {key}");
        let find = "SELECT result FROM request WHERE key = $1";
        let find = sqlx::query_scalar(find).bind(key);
        Ok(find.fetch_optional(connection).await?)
    }

    async fn write_by_hand(connection: &mut PgConnection, key: &str, result: &[u8]) -> Result<()> {
        let insert = "INSERT INTO request VALUES ($1, $2) ON CONFLICT DO NOTHING";
        let insert = sqlx::query(insert).bind(key).bind(result);
        let inserted = insert.execute(connection).await?.rows_affected();
        ensure!(inserted == 1, "another transaction has written {key}");
        Ok(())
    }
}

/// A server, and a pool of sessions on it.
struct Bench {
    server: PostgresServer,
    pool: PgPool,
    rows: Rows,
}

/// A server that waits for its disk, as a service's does; then one that does not, where nothing
/// hides what the guard adds. The bytes of the log are the same on both.
pub(crate) async fn compare(rounds: usize) -> Result<()> {
    let durable = Bench::open(PostgresServer::start_durable()?).await?;
    durable.times("fsync on", rounds).await?;
    drop(durable);
    let shop = Bench::open(PostgresServer::start()?).await?;
    shop.times("fsync off", rounds).await?;
    shop.logged().await
}

impl Bench {
    async fn open(server: PostgresServer) -> Result<Self> {
        // Nobody ends these sessions: a ping before each transaction would only flatter the ratios.
        let pool = PgPoolOptions::new()
            .max_connections(16)
            .test_before_acquire(false);
        let pool = pool.connect(&server.url()).await?;
        sqlx::raw_sql(TABLES).execute(&pool).await?;
        let store = PostgresStore::new(pool.clone());
        store.migrate().await?;
        let rows = Rows::of(pool.clone(), Idempotency::builder(store).build()?);
        Ok(Self { server, pool, rows })
    }

    async fn times(&self, disk: &str, rounds: usize) -> Result<()> {
        let version: String = sqlx::query_scalar("SELECT split_part(version(), ' ', 2)")
            .fetch_one(&self.pool)
            .await?;
        for (load, target) in TARGETS {
            let (clients, calls) = (load.tasks, load.calls);
            println!("### PostgreSQL {version}, {disk}: {calls} calls by {clients} client(s)\n");
            self.rows.measure(load, rounds, target, self).await?;
        }
        Ok(())
    }

    /// Bytes of log per call. What comes first after a checkpoint logs whole pages and is not
    /// counted.
    async fn logged(&self) -> Result<()> {
        println!(
            "### Bytes of PostgreSQL's log per call, over {}\n",
            COUNTED.calls
        );
        println!("| | bytes | more than bare | target |");
        println!("|---|---:|---:|---:|");
        let mut bare = None;
        for row in &self.rows.0 {
            self.fresh().await?;
            sqlx::raw_sql("CHECKPOINT").execute(&self.pool).await?;
            row.run(COUNTED, 0).await?;
            let before = self.position().await?;
            row.run(COUNTED, COUNTED.calls).await?;
            let bytes = (self.position().await? - before) / COUNTED.calls_as_number();
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

    async fn position(&self) -> Result<f64> {
        let position = "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8";
        Ok(sqlx::query_scalar(position).fetch_one(&self.pool).await?)
    }
}

impl Place for Bench {
    /// Empty tables, and accounts without the versions that came before.
    async fn fresh(&self) -> Result<()> {
        for statement in [
            "TRUNCATE ledger, request, idempotent_record",
            "VACUUM account",
        ] {
            sqlx::raw_sql(statement).execute(&self.pool).await?;
        }
        Ok(())
    }

    /// Of the processes that are there: its sessions, and those that write for them.
    fn server_time(&self) -> Result<f64> {
        let postmaster = self.server.id().context("the server was stopped")?;
        let children = format!("/proc/{postmaster}/task/{postmaster}/children");
        let mut nanoseconds = 0.0;
        for child in fs::read_to_string(children)?.split_whitespace() {
            // One may have ended meanwhile.
            let Ok(times) = fs::read_to_string(format!("/proc/{child}/schedstat")) else {
                continue;
            };
            let running = times.split_whitespace().next().unwrap_or_default();
            nanoseconds += running.parse::<f64>()?;
        }
        Ok(nanoseconds / 1e9)
    }
}
