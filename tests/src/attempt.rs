//! Keys and operations on records, as an engine would make them.
#![allow(
    clippy::missing_panics_doc,
    clippy::must_use_candidate,
    reason = "for tests only, where what does not work panics"
)]

use std::time::Duration;

use idem_core::Key;
use idem_core::record::{
    Claim, ClaimReply, Grant, OnAbandoned, Outcome, Owner, Settle, StoreTime, Terms,
};
use idem_core::store::{Store, StoreKey};
use sha2::{Digest, Sha256};

/// As a function of ten minutes' answers has them.
pub const TERMS: Terms = Terms {
    lease: Duration::from_secs(30),
    expire: Duration::from_mins(10),
    doubt: Duration::from_mins(20),
    limit: Duration::from_secs(2),
};

/// A key of the namespace `shop`.
pub fn key(prefix: &str, part: &str) -> StoreKey {
    StoreKey::new("shop", &Key::new(prefix, part).unwrap()).unwrap()
}

/// What names its row.
pub fn hash(key: &StoreKey) -> Vec<u8> {
    Sha256::digest(key.as_str()).to_vec()
}

/// An owner of its own for each number.
pub fn owner(number: u64) -> Owner {
    let mut bytes = [7; 16];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    Owner::from_bytes(bytes)
}

/// A claim that is itself the checkpoint.
pub fn claim(number: u64, now: StoreTime, terms: Terms) -> Claim {
    Claim {
        owner: owner(number),
        terms,
        fingerprint: None,
        policy: OnAbandoned::Hold,
        checkpoint: true,
        token: None,
        recover: false,
        wait: false,
        not_after: now.after(Duration::from_mins(1)),
    }
}

/// The whole life of an attempt that nobody disturbs.
pub async fn finish<S: Store>(store: &S, key: &StoreKey, number: u64, terms: Terms) {
    let now = store.now().await.unwrap();
    let claimed = store.claim(key, &claim(number, now, terms)).await.unwrap();
    assert!(
        matches!(claimed.reply, ClaimReply::Claimed(_)),
        "{key:?}: {claimed:?}"
    );
    let settle = Settle {
        owner: owner(number),
        terms,
        outcome: Outcome::Success(Some(number.to_string().into_bytes().into())),
        not_after: now.after(Duration::from_mins(1)),
        echo: None,
    };
    store.settle(key, &settle).await.unwrap();
}

/// How long a row that ends at `end` has to live.
pub fn left(end: Option<i64>, now: StoreTime) -> Option<Duration> {
    let end = StoreTime::from_micros(u64::try_from(end?).unwrap());
    Some(end.since(now))
}

/// What the store has to say of its set-up.
pub async fn codes<S: Store>(store: &S) -> Vec<&'static str> {
    let findings = store.check().await.unwrap();
    findings.into_iter().map(|finding| finding.code).collect()
}

/// The grant that is expected.
pub fn grant(reply: ClaimReply) -> Grant {
    match reply {
        ClaimReply::Claimed(grant) => grant,
        other => panic!("a claim was to be granted: {other:?}"),
    }
}
