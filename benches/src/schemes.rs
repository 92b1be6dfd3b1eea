//! One-time tokens and locks in Redis, beside what a careful author would write by hand.

use anyhow::Result;
use idem_core::Idempotency;
use idem_tests::redis::RedisServer;

use crate::beside::{Place, Row, measure};
use crate::rounds::{Load, server_time};

mod lock;
mod token;

/// Of one task the round trips are what is seen, of many the processor's time.
const LOADS: [Load; 2] = [
    Load {
        tasks: 1,
        calls: 4_096,
    },
    Load {
        tasks: 64,
        calls: 16_384,
    },
];

impl Place for RedisServer {
    async fn fresh(&self) -> Result<()> {
        self.cli(&["FLUSHALL"]).map(drop)
    }

    fn server_time(&self) -> Result<f64> {
        server_time(self)
    }
}

pub(crate) async fn compare(server: &RedisServer, rounds: usize) -> Result<()> {
    let url = server.url();
    let idem = Idempotency::redis(&url).await?;
    let tokens = [
        Row::new(
            "raw: SET NX PX, then one script",
            token::Raw::connect(&url).await?,
        ),
        Row::new("idem: issue, consume", token::Ours::new(&idem)),
    ];
    let locks = [
        Row::new(
            "raw: SET NX PX, then one script",
            lock::Raw::connect(&url).await?,
        ),
        Row::new("idem: acquire, release", lock::Ours::new(&idem)),
    ];
    for (scheme, rows) in [("A token", &tokens), ("A lock", &locks)] {
        for load in LOADS {
            println!(
                "### {scheme}, {} times by {} task(s)\n",
                load.calls, load.tasks
            );
            let rows = rows.each_ref().map(|row| (row, None));
            measure(&rows, load, rounds, server).await?;
        }
    }
    Ok(())
}
