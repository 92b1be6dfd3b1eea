//! What the server counts: bytes that come in, and memory that stays.

use anyhow::{Context, Result};
use idem_tests::redis::RedisServer;

use crate::rounds::{Contestant, Load};
use crate::table::verdict;

/// Bytes sent for a first call and for a duplicate.
const SENT: (f64, f64) = (600.0, 200.0);

/// Bytes of memory for a finished record.
const KEPT: f64 = 450.0;

const CALLS: Load = Load {
    tasks: 1,
    calls: 1_000,
};

const RECORDS: Load = Load {
    tasks: 50,
    calls: 100_000,
};

/// Bytes sent per call.
pub(crate) async fn bytes(server: &RedisServer, sides: &[Contestant]) -> Result<()> {
    server.cli(&["FLUSHALL"])?;
    println!("### Bytes sent\n");
    println!("| | first call | duplicate |");
    println!("|---|---:|---:|");
    for side in sides {
        let first = received(server, side).await?;
        let duplicate = received(server, side).await?;
        println!(
            "| {} | {first:.0}{} | {duplicate:.0}{} |",
            side.name,
            verdict(side.name, first, SENT.0),
            verdict(side.name, duplicate, SENT.1),
        );
    }
    println!("| target | {:.0} | {:.0} |\n", SENT.0, SENT.1);
    Ok(())
}

/// Per call, with what asking for the number adds, which is far less than a byte.
async fn received(server: &RedisServer, side: &Contestant) -> Result<f64> {
    let before = number(server, "total_net_input_bytes")?;
    side.run(CALLS, 0).await?;
    Ok((number(server, "total_net_input_bytes")? - before) / CALLS.calls_as_number())
}

/// Memory per finished record: a key of 56 bytes, a result of 200.
pub(crate) async fn memory(server: &RedisServer, sides: &[Contestant]) -> Result<()> {
    println!("### Memory of a finished record, over {}\n", RECORDS.calls);
    println!("| | bytes |");
    println!("|---|---:|");
    for side in sides {
        server.cli(&["FLUSHALL"])?;
        let before = number(server, "used_memory")?;
        side.run(RECORDS, 0).await?;
        let kept = (number(server, "used_memory")? - before) / RECORDS.calls_as_number();
        println!(
            "| {} | {kept:.0}{} |",
            side.name,
            verdict(side.name, kept, KEPT)
        );
    }
    println!("| target | {KEPT:.0} |\n");
    server.cli(&["FLUSHALL"])?;
    Ok(())
}

fn number(server: &RedisServer, field: &str) -> Result<f64> {
    let text = server.info(field)?;
    text.trim().parse().with_context(|| text.clone())
}
