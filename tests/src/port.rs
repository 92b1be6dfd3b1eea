//! Ports that stay ours while the server on them is down.

use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

use anyhow::{Result, anyhow};
use rustix::process::getuid;

/// Below the kernel's ephemeral range (32768 and up), together with the cluster bus 10,000 above:
/// a client that keeps dialling a dead ephemeral port may be given that port as its own and then
/// talks to itself.
const FIRST: u16 = 10_100;
const COUNT: u16 = 12_400;
const BUS: u16 = 10_000;

static NEXT: AtomicU16 = AtomicU16::new(0);

/// A free TCP port on 127.0.0.1, held against every other process of this user that uses this module until it
/// is dropped, whether or not anybody listens on it.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _lock: File,
}

impl Port {
    /// Takes a port whose number plus 10,000 is free too, as a Redis Cluster node needs.
    pub fn take() -> Result<Self> {
        (0..COUNT)
            .find_map(|_| Self::try_take(candidate()))
            .ok_or_else(|| anyhow!("no free port from {FIRST} on"))
    }

    /// The number.
    #[must_use]
    pub fn number(&self) -> u16 {
        self.number
    }

    fn try_take(number: u16) -> Option<Self> {
        // The same for all, whatever their temporary folder.
        let folder = format!("/tmp/idem-tests-ports-{}", getuid().as_raw());
        let folder = Path::new(&folder);
        fs::create_dir_all(folder).ok()?;
        let lock = File::create(folder.join(number.to_string())).ok()?;
        lock.try_lock().ok()?;
        (is_free(number) && is_free(number + BUS)).then_some(Self {
            number,
            _lock: lock,
        })
    }
}

/// Processes begin at different places, so that they rarely try each other's ports.
fn candidate() -> u16 {
    let start = process::id().wrapping_mul(97) % u32::from(COUNT);
    let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
    let offset = (start + step) % u32::from(COUNT);
    FIRST + u16::try_from(offset).unwrap_or_default()
}

fn is_free(number: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok()
}
