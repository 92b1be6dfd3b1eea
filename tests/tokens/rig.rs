//! An engine over each store, with a faulty wire between, and what is done with tokens.

use std::path::Path;
use std::str::FromStr;
use std::sync::LazyLock;
use std::time::Duration;

use idem_core::engine::RecordView;
use idem_core::record::{Slot, Status};
use idem_core::store::{
    MemoryStore, MySqlStore, PostgresStore, RedisStore, SqliteStore, Store, StoreKey,
};
use idem_core::{Error, Idempotency, Policy, Token, Tokens};
use idem_tests::body::{Bodies, Held, until};
use idem_tests::faulty::{Faulty, Verb};
use idem_tests::mariadb::MariaDbServer;
use idem_tests::postgres::PostgresServer;
use idem_tests::redis::{RedisOptions, RedisServer};
use serde::{Deserialize, Serialize};
use sqlx::mysql::{MySqlConnectOptions, MySqlPoolOptions};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use sqlx::{MySqlPool, PgPool};
use tempfile::TempDir;
use tokio::task::JoinHandle;

pub(crate) const ALICE: &str = "alice@shop.example";
pub(crate) const MALLORY: &str = "mallory@shop.example";

/// How long tokens can be used in these tests.
pub(crate) const TTL: Duration = Duration::from_mins(5);

/// 200 calls at once on a few connections take their time.
const PATIENCE: Duration = Duration::from_secs(30);

static REDIS: LazyLock<RedisServer> =
    LazyLock::new(|| RedisServer::start(RedisOptions::new()).unwrap());
static POSTGRES: LazyLock<PostgresServer> = LazyLock::new(|| PostgresServer::start().unwrap());
static MARIADB: LazyLock<MariaDbServer> = LazyLock::new(|| MariaDbServer::start().unwrap());

pub(crate) struct Rig<S> {
    pub(crate) idem: Idempotency,
    pub(crate) store: Faulty<S>,
    pub(crate) tokens: Tokens,
    /// The files of a store that has some.
    folder: Option<TempDir>,
}

/// Runs each scene on each store.
macro_rules! on_every_store {
    ($($scene:ident)*) => {$(
        mod $scene {
            use super::$scene as scene;
            use crate::rig;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_memory() {
                scene(&rig::memory()).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_redis() {
                scene(&rig::redis().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_sqlite() {
                scene(&rig::sqlite().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_postgres() {
                scene(&rig::postgres().await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn in_mariadb() {
                scene(&rig::mariadb().await).await;
            }
        }
    )*};
}

pub(crate) use on_every_store;

pub(crate) fn memory() -> Rig<MemoryStore> {
    Rig::new(MemoryStore::new())
}

pub(crate) fn redis_server() -> &'static RedisServer {
    &REDIS
}

pub(crate) async fn redis() -> Rig<RedisStore> {
    Rig::new(RedisStore::connect(&REDIS.url()).await.unwrap())
}

pub(crate) fn postgres_url() -> String {
    POSTGRES.url()
}

pub(crate) fn mariadb_url() -> String {
    MARIADB.url()
}

pub(crate) async fn sqlite() -> Rig<SqliteStore> {
    let folder = tempfile::Builder::new().prefix("idem-tokens-").tempdir();
    let folder = folder.unwrap();
    let options = SqliteConnectOptions::new()
        .filename(folder.path().join("records.db"))
        .create_if_missing(true);
    let pool = SqlitePoolOptions::new().max_connections(4);
    let store = SqliteStore::new(pool.connect_with(options).await.unwrap()).limit(PATIENCE);
    store.migrate().await.unwrap();
    Rig {
        folder: Some(folder),
        ..Rig::new(store)
    }
}

pub(crate) async fn postgres() -> Rig<PostgresStore> {
    let options = PgConnectOptions::from_str(&POSTGRES.url()).unwrap();
    let pool = PgPoolOptions::new().max_connections(8);
    on_postgres(pool.connect_with(options).await.unwrap()).await
}

pub(crate) async fn on_postgres(pool: PgPool) -> Rig<PostgresStore> {
    let store = PostgresStore::new(pool).limit(PATIENCE);
    store.migrate().await.unwrap();
    Rig::new(store)
}

pub(crate) async fn mariadb() -> Rig<MySqlStore> {
    let options = MySqlConnectOptions::from_str(&MARIADB.url()).unwrap();
    let pool = MySqlPoolOptions::new().max_connections(8);
    on_mariadb(pool.connect_with(options).await.unwrap()).await
}

pub(crate) async fn on_mariadb(pool: MySqlPool) -> Rig<MySqlStore> {
    let store = MySqlStore::new(pool).limit(PATIENCE);
    store.migrate().await.unwrap();
    Rig::new(store)
}

impl<S: Store> Rig<S> {
    pub(crate) fn new(store: S) -> Self {
        Self::with_limit(store, PATIENCE)
    }

    /// An engine that waits so long for its store.
    pub(crate) fn with_limit(store: S, limit: Duration) -> Self {
        let store = Faulty::new(store);
        let idem = Idempotency::builder(store.clone())
            .limit(limit)
            .defaults(Policy::new().wait(PATIENCE))
            .build()
            .unwrap();
        let tokens = idem.tokens("order:submit");
        Self {
            idem,
            store,
            tokens,
            folder: None,
        }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.as_ref().unwrap().path()
    }

    /// A new token of Alice's.
    pub(crate) async fn issue(&self) -> Token {
        self.tokens.issue(ALICE, TTL).await.unwrap()
    }

    /// Alice's call with her token, of a body that only counts.
    pub(crate) async fn submit(&self, token: &Token, bodies: &Bodies) -> Result<u32, Error> {
        let body = async || Ok(bodies.add());
        self.tokens.run(token, ALICE, Policy::new(), body).await
    }

    /// Alice's call, in a task of its own, whose body stays at `held`.
    pub(crate) async fn hold(
        &self,
        token: &Token,
        policy: Policy,
        held: &Held,
    ) -> JoinHandle<Result<u32, Error>> {
        let (tokens, token, body) = (self.tokens.clone(), token.clone(), held.clone());
        let call = tokio::spawn(async move {
            let stays = async || {
                body.stay().await;
                Ok(1)
            };
            tokens.run(&token, ALICE, policy, stays).await
        });
        held.entered().await;
        call
    }

    pub(crate) async fn record(&self, token: &Token) -> Option<RecordView> {
        let key = self.tokens.key(token).unwrap();
        self.idem.peek(&key).await.unwrap()
    }

    /// The record as the store has it.
    pub(crate) async fn slot(&self, token: &Token) -> Slot {
        let key = self.tokens.key(token).unwrap();
        let key = StoreKey::new(self.idem.namespace(), &key).unwrap();
        self.store.inner().peek(&key).await.unwrap().reply
    }

    pub(crate) async fn status(&self, token: &Token) -> Option<Status> {
        self.record(token).await.map(|record| record.status)
    }

    pub(crate) async fn until_abandoned(&self, token: &Token) {
        until("it is abandoned", async || {
            let running = self.record(token).await.and_then(|record| record.running);
            running.is_some_and(|running| running.is_abandoned)
        })
        .await;
    }

    pub(crate) async fn until_status(&self, token: &Token, status: Status) {
        until("it has this status", async || {
            self.status(token).await == Some(status)
        })
        .await;
    }

    /// How many calls the store has had: claims, and all others.
    pub(crate) fn calls(&self) -> (usize, usize) {
        let others = [
            Verb::Renew,
            Verb::Settle,
            Verb::Issue,
            Verb::Refuse,
            Verb::Forget,
            Verb::Resolve,
            Verb::Peek,
            Verb::Scan,
            Verb::Now,
            Verb::Watch,
        ];
        let others = others.into_iter().map(|verb| self.store.calls(verb)).sum();
        (self.store.calls(Verb::Claim), others)
    }
}

/// An error of a service's own.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FormError {
    SoldOut,
    Guard(String),
}

impl From<Error> for FormError {
    fn from(error: Error) -> Self {
        Self::Guard(error.code().to_owned())
    }
}

/// All that a caller can tell one refusal from another by.
pub(crate) fn told(error: &Error) -> (&'static str, String, String, u16, bool, Option<Duration>) {
    (
        error.code(),
        error.to_string(),
        error.message().to_owned(),
        error.http_status(),
        error.is_retryable(),
        error.retry_after(),
    )
}

pub(crate) fn is_rejected<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::TokenRejected { .. }))
}
