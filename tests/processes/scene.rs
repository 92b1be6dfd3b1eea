//! Servers, a ledger, and how to come by processes that use both.

use std::time::Duration;

use idem_tests::cluster::Cluster;
use idem_tests::redis::{RedisOptions, RedisServer};
use idem_tests::sentinel::Sentinels;

use crate::ledger::Ledger;
use crate::payer::Payer;

/// Long enough for a machine that is busy.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// The shortest lease that is allowed; what the tests that wait for its end use.
pub(crate) const LEASE: Duration = Duration::from_secs(1);
/// A lease that no busy machine ends by itself.
pub(crate) const LONG_LEASE: Duration = Duration::from_secs(10);
/// The engine's default.
pub(crate) const LIMIT: Duration = Duration::from_secs(2);

pub(crate) const ORDER: &str = "A-1";

/// One server, or a group of them, and a ledger.
pub(crate) struct Scene<S = RedisServer> {
    pub(crate) server: S,
    pub(crate) ledger: Ledger,
    /// As [`Payer::start`] takes it.
    url: String,
}

impl Scene {
    pub(crate) fn new() -> Self {
        Self::over(RedisOptions::new())
    }

    pub(crate) fn over(options: RedisOptions) -> Self {
        let server = RedisServer::start(options).unwrap();
        Self {
            url: server.url(),
            server,
            ledger: Ledger::new(),
        }
    }

    /// How long the record of [`ORDER`] still has; None if there is none.
    pub(crate) fn ttl(&self, function: &str) -> Option<Duration> {
        let key = format!("idem:{function}::{ORDER}");
        let millis: i64 = self.server.cli(&["PTTL", &key]).unwrap().parse().unwrap();
        assert_ne!(millis, -1, "{key} never expires");
        u64::try_from(millis).ok().map(Duration::from_millis)
    }
}

impl Scene<Cluster> {
    pub(crate) fn cluster() -> Self {
        let server = Cluster::start(&RedisOptions::new()).unwrap();
        Self {
            url: format!("cluster:{}", server.urls().join(",")),
            server,
            ledger: Ledger::new(),
        }
    }
}

impl Scene<Sentinels> {
    pub(crate) fn sentinels() -> Self {
        let server = Sentinels::start(&RedisOptions::new()).unwrap();
        Self {
            url: format!("sentinel:{}", server.urls().join(",")),
            server,
            ledger: Ledger::new(),
        }
    }
}

impl<S> Scene<S> {
    /// A process with the shortest lease.
    pub(crate) fn payer(&self) -> Payer {
        Payer::start(&self.url, &self.ledger, LEASE, LIMIT)
    }

    /// A process with a long lease.
    pub(crate) fn patient_payer(&self) -> Payer {
        self.patient_payer_by(&self.url)
    }

    /// A process with a long lease that comes by another way.
    pub(crate) fn patient_payer_by(&self, url: &str) -> Payer {
        Payer::start(url, &self.ledger, LONG_LEASE, LIMIT)
    }
}
