//! A store has hashes of token and subject, and neither itself.

use std::fs;

use idem_core::store::Store;
use idem_core::{Error, Policy, Token};
use idem_tests::body::{Bodies, Held};
use idem_tests::resp::{Reply, ask};
use sqlx::{
    ColumnIndex, Connection, Database, Decode, Executor, IntoArguments, MySqlConnection,
    PgConnection, Row,
};

use crate::rig::{self, ALICE, Rig};

/// A token in each status.
async fn tokens_in_every_status<S: Store>(rig: &Rig<S>, held: &Held) -> Vec<Token> {
    let mut tokens = Vec::new();
    for _ in 0..5 {
        tokens.push(rig.issue().await);
    }
    rig.submit(&tokens[1], &Bodies::default()).await.unwrap();
    rig.tokens.consume(&tokens[2], ALICE).await.unwrap();
    let fails = async || {
        Err::<u32, _>(Error::MissingKey {
            part: "the amount".into(),
        })
    };
    let failed = rig.tokens.run(&tokens[3], ALICE, Policy::new(), fails);
    failed.await.unwrap_err();
    drop(rig.hold(&tokens[4], Policy::new(), held).await);
    tokens
}

fn assert_holds_no_secret(bytes: &[u8], tokens: &[Token]) {
    let holds = |text: &str| {
        bytes
            .windows(text.len())
            .any(|window| window == text.as_bytes())
    };
    assert!(holds("order:submit"), "this is not where records are");
    for token in tokens {
        assert!(!holds(token.as_str()));
    }
    for part in [ALICE, "alice", "shop.example"] {
        assert!(!holds(part), "{part}");
    }
}

/// How many rows the table has, and every byte of them.
async fn rows<C: Connection>(url: &str) -> (usize, Vec<u8>)
where
    for<'c> &'c mut C: Executor<'c, Database = C::Database>,
    for<'r> &'r [u8]: Decode<'r, C::Database>,
    <C::Database as Database>::Arguments: IntoArguments<C::Database>,
    usize: ColumnIndex<<C::Database as Database>::Row>,
{
    let mut connection = C::connect(url).await.unwrap();
    let all = sqlx::query("SELECT * FROM idempotent_record");
    let rows = all.fetch_all(&mut connection).await.unwrap();
    let mut bytes = Vec::new();
    for row in &rows {
        for column in 0..row.len() {
            let value: Option<&[u8]> = row.try_get_unchecked(column).unwrap();
            bytes.extend_from_slice(value.unwrap_or_default());
        }
    }
    (rows.len(), bytes)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_holds_only_hashes() {
    let rig = rig::redis().await;
    let held = Held::new();
    let tokens = tokens_in_every_status(&rig, &held).await;
    let server = rig::redis_server().address();
    let Reply::List(keys) = ask(server, None, &["KEYS", "*"]).unwrap() else {
        panic!("KEYS gives a list");
    };
    assert!(keys.len() >= tokens.len());
    let mut bytes = Vec::new();
    for key in keys {
        let Reply::Bytes(key) = key else {
            panic!("a key is a string");
        };
        bytes.extend_from_slice(&key);
        // Other tests' records may go meanwhile.
        if let Reply::Bytes(record) = ask(server, None, &[b"GET", &*key]).unwrap() {
            bytes.extend(record);
        }
    }
    assert_holds_no_secret(&bytes, &tokens);
    held.release();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sqlite_holds_only_hashes() {
    let rig = rig::sqlite().await;
    let held = Held::new();
    let tokens = tokens_in_every_status(&rig, &held).await;
    let mut bytes = Vec::new();
    for file in fs::read_dir(rig.folder()).unwrap() {
        bytes.extend(fs::read(file.unwrap().path()).unwrap());
    }
    assert_holds_no_secret(&bytes, &tokens);
    held.release();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_holds_only_hashes() {
    let rig = rig::postgres().await;
    let held = Held::new();
    let tokens = tokens_in_every_status(&rig, &held).await;
    let (count, bytes) = rows::<PgConnection>(&rig::postgres_url()).await;
    assert!(count >= tokens.len());
    assert_holds_no_secret(&bytes, &tokens);
    held.release();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mariadb_holds_only_hashes() {
    let rig = rig::mariadb().await;
    let held = Held::new();
    let tokens = tokens_in_every_status(&rig, &held).await;
    let (count, bytes) = rows::<MySqlConnection>(&rig::mariadb_url()).await;
    assert!(count >= tokens.len());
    assert_holds_no_secret(&bytes, &tokens);
    held.release();
}
