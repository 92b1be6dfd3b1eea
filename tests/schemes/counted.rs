//! Sessions in which MariaDB counts the rows that an UPDATE has changed. Those of sqlx ask for the
//! rows that it has found, as the handshake says; other drivers, and proxies that speak for them, do
//! not.

use std::net::Ipv4Addr;

use sqlx::mysql::MySqlPoolOptions;
use sqlx::{MySql, Pool};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::bed::{Bed, Fresh, Level};
use crate::{insert, transition};

/// `CLIENT_FOUND_ROWS`, in the lowest byte of what a client says it can.
const FOUND_ROWS: u8 = 2;

/// The length of a packet, and its number.
const HEADER: usize = 4;

/// Passes on one session, and what its client wants counted not.
async fn pass(mut client: TcpStream, server: u16) -> std::io::Result<()> {
    let mut server = TcpStream::connect((Ipv4Addr::LOCALHOST, server)).await?;
    let mut header = [0; HEADER];
    server.read_exact(&mut header).await?;
    client.write_all(&header).await?;
    let [low, middle, high, _] = header;
    let greeting = u32::from_le_bytes([low, middle, high, 0]);
    copy(&mut (&mut server).take(greeting.into()), &mut client).await?;
    let mut wishes = [0; HEADER + 1];
    client.read_exact(&mut wishes).await?;
    wishes[HEADER] &= !FOUND_ROWS;
    server.write_all(&wishes).await?;
    copy_bidirectional(&mut client, &mut server).await.map(drop)
}

/// The same database, by sessions that count what was changed.
async fn fresh() -> Fresh<MySql> {
    let Fresh { pool, level } = MySql::fresh(Level::RepeatableRead).await;
    let options = (*pool.connect_options()).clone();
    let server = options.get_port();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let options = options.port(listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            // That a session ends is no fault.
            tokio::spawn(pass(client, server));
        }
    });
    let counted = MySqlPoolOptions::new().max_connections(8);
    let counted = counted.connect_with(options).await.unwrap();
    assert_eq!([rows(&pool).await, rows(&counted).await], [1, 0]);
    Fresh {
        pool: counted,
        level,
    }
}

/// How many rows an UPDATE counts that finds one and changes nothing.
async fn rows(pool: &Pool<MySql>) -> u64 {
    let mut connection = pool.acquire().await.unwrap();
    let table = "CREATE TEMPORARY TABLE one AS SELECT 1 AS number";
    sqlx::raw_sql(table)
        .execute(&mut *connection)
        .await
        .unwrap();
    let update = sqlx::query("UPDATE one SET number = 1");
    let updated = update.execute(&mut *connection).await.unwrap();
    let drop = "DROP TEMPORARY TABLE one";
    sqlx::raw_sql(drop).execute(&mut *connection).await.unwrap();
    updated.rows_affected()
}

macro_rules! scenes {
    ($($module:ident: $($scene:ident)*;)*) => {
        $($(
            // CASES N17
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $scene() {
                $module::$scene(fresh().await).await;
            }
        )*)*
    };
}

scenes! {
    transition:
        each_case_has_its_answer
        an_old_version_is_a_conflict_and_changes_nothing
        a_redelivered_event_is_there_also_after_later_transitions
        of_two_payments_one_is_applied_and_one_is_a_conflict
        of_fifty_deliveries_one_is_applied;
    insert:
        the_first_inserts_and_the_second_gets_its_row
        of_fifty_one_inserts
        another_constraint_is_a_conflict_that_names_it
        an_insert_that_hides_its_conflict_is_not_taken_for_new;
}
