//! Records with something changed in them: what stands at a key when somebody else wrote there.

use std::time::Duration;

use bytes::Bytes;
use idem_core::Fingerprint;
use idem_core::record::{
    Fence, OnAbandoned, Owner, Processing, Record, State, StoreTime, Subject, TokenBinding, format,
};

const LEASE: Duration = Duration::from_secs(30);
const EXPIRE: Duration = Duration::from_mins(10);

/// The length of the state of a processing record, its last part.
const STATE: usize = 21;

/// Takes one of the records of [`shapes`] and changes nothing, its length, its head, its marks or
/// any byte, by choices that come from `number`.
pub fn draw(shapes: &[Vec<u8>], mut number: impl FnMut() -> u64) -> Vec<u8> {
    let mut below = |end: usize| usize::try_from(number() % end as u64).unwrap_or_default();
    let mut bytes = shapes[below(shapes.len())].clone();
    match below(8) {
        0 => {}
        1 => bytes.truncate(below(60)),
        2 => bytes.push(0),
        3 => bytes[0] = [0, 2, 3, 255][below(4)],
        4 => bytes[1] = byte(below(256)),
        5 => bytes[1] ^= 1 << below(8),
        // Where the marks of a processing record are.
        6 if bytes.len() > STATE => {
            let at = bytes.len() - STATE;
            let kept = bytes[at] * byte(below(2));
            bytes[at] = kept ^ 1 << below(8);
        }
        _ => {
            let at = below(bytes.len());
            bytes[at] ^= byte(below(256));
        }
    }
    bytes
}

fn byte(below_256: usize) -> u8 {
    u8::try_from(below_256).unwrap_or(u8::MAX)
}

/// Records of every shape, as version 1 writes them.
#[must_use]
pub fn shapes(now: StoreTime) -> Vec<Vec<u8>> {
    let at = now;
    let some = Some(Bytes::from_static(b"some"));
    let processing = Processing {
        since: now,
        lease_until: now.after(LEASE),
        expire: EXPIRE,
        policy: OnAbandoned::Hold,
        checkpoint: true,
        takeover: false,
        doubt: false,
        given_up: false,
        waiters: true,
    };
    let token = TokenBinding {
        subject: Subject::from_bytes([5; 16]),
        until: now.after(EXPIRE),
    };
    let states = [
        State::Processing(processing),
        State::Success { at, result: None },
        State::Success {
            at,
            result: some.clone(),
        },
        State::Failed { at, error: None },
        State::Failed { at, error: some },
        State::Refused,
        State::Issued,
        State::Closed { by_operator: false },
        State::Closed { by_operator: true },
    ];
    let mut shapes = Vec::new();
    for state in states {
        let is_bare = matches!(state, State::Refused | State::Closed { .. } | State::Issued);
        for full in [false, true] {
            let is_issued = state == State::Issued;
            let record = Record {
                owner: Owner::from_bytes([7; 16]),
                fence: Fence::from_u64(now.as_micros()),
                attempt: 1,
                fingerprint: (full && !is_bare).then(|| Fingerprint::from_bytes([9; 16])),
                token: (is_issued || full && !is_bare).then_some(token),
                closed_until: full.then_some(now.after(LEASE)),
                state: state.clone(),
                expires_at: now.after(EXPIRE).ceil_millis(),
            };
            shapes.push(format::encode(&record));
        }
    }
    shapes
}
