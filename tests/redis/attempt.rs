//! Keys, claims and settles as an engine would make them.

use std::time::Duration;

use bytes::Bytes;
use idem_core::record::{
    Claim, ClaimReply, Echo, Grant, OnAbandoned, Outcome, Owner, Renew, Settle, StoreTime, Terms,
};
use idem_core::store::{RedisStore, Store, StoreKey};
use idem_core::{Fingerprint, Key};

pub(crate) const TERMS: Terms = Terms {
    lease: Duration::from_secs(30),
    expire: Duration::from_mins(10),
    doubt: Duration::from_hours(7 * 24),
    limit: Duration::from_secs(2),
};

/// The key of an order, 56 bytes long.
pub(crate) fn order(number: u64) -> StoreKey {
    let key = Key::new("order:pay", format!("{number:039}")).unwrap();
    StoreKey::new("shop", &key).unwrap()
}

/// An owner of its own for each number.
pub(crate) fn owner(number: u64) -> Owner {
    let mut bytes = [7; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    Owner::from_bytes(bytes)
}

/// A claim that is itself the checkpoint, with a fingerprint.
pub(crate) fn claim(number: u64, now: StoreTime) -> Claim {
    Claim {
        owner: owner(number),
        terms: TERMS,
        fingerprint: Some(Fingerprint::from_bytes([9; 16])),
        policy: OnAbandoned::Hold,
        checkpoint: true,
        token: None,
        recover: false,
        wait: false,
        not_after: now.after(TERMS.limit),
    }
}

/// What the owner of `claim` knows after it was granted at `now`.
pub(crate) fn echo(claim: &Claim, grant: Grant, now: StoreTime) -> Echo {
    Echo {
        answered: now,
        grant,
        checkpoint: claim.checkpoint,
        policy: claim.policy,
        fingerprint: claim.fingerprint,
    }
}

pub(crate) fn settle(claim: &Claim, outcome: Outcome, echo: Echo) -> Settle {
    Settle {
        owner: claim.owner,
        terms: claim.terms,
        outcome,
        not_after: echo.answered.after(TERMS.limit),
        echo: Some(echo),
    }
}

pub(crate) fn renew(claim: &Claim, echo: Echo) -> Renew {
    Renew {
        owner: claim.owner,
        terms: claim.terms,
        checkpoint: false,
        not_after: echo.answered.after(TERMS.limit),
        echo,
    }
}

/// A result of 200 bytes.
pub(crate) fn result() -> Outcome {
    Outcome::Success(Some(Bytes::from(vec![b'r'; 200])))
}

/// Claims and settles, as a first call does.
pub(crate) async fn first_call(store: &RedisStore, number: u64, now: StoreTime) {
    let key = order(number);
    let claim = claim(number, now);
    let answer = store.claim(&key, &claim).await.unwrap();
    let ClaimReply::Claimed(grant) = answer.reply else {
        panic!("order {number} was not free: {:?}", answer.reply)
    };
    let settle = settle(&claim, result(), echo(&claim, grant, answer.now));
    store.settle(&key, &settle).await.unwrap();
}

/// A proxy before `server`; its start blocks, which a test's own runtime does not allow.
pub(crate) fn proxy(server: std::net::SocketAddr) -> idem_tests::proxy::Proxy {
    let start = std::thread::spawn(move || idem_tests::proxy::Proxy::start(server));
    start.join().unwrap().unwrap()
}
