use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const SECOND: u64 = 1_000_000;

fn time(micros: u64) -> StoreTime {
    StoreTime::from_micros(micros)
}

fn record(state: State) -> Record {
    Record {
        owner: Owner::from_bytes(*b"0123456789abcdef"),
        fence: Fence::from_u64(1_700_000_000_000_001),
        attempt: 3,
        fingerprint: None,
        token: None,
        closed_until: None,
        state,
        expires_at: time(1_700_000_600_000_000),
    }
}

fn processing() -> Processing {
    Processing {
        since: time(1_700_000_000_000_001),
        lease_until: time(1_700_000_030_000_001),
        expire: Duration::from_mins(10),
        policy: OnAbandoned::Hold,
        checkpoint: true,
        takeover: false,
        doubt: false,
        given_up: false,
        waiters: false,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// Version, head, then attempt, fence and owner of [`record`].
fn front(head: &str) -> String {
    format!("01{head}00000003060a24181e400130313233343536373839616263646566")
}

// CASES K14: these bytes never change; what is new gets another version.
#[test]
fn records_of_version_1_have_these_bytes() {
    let ended = time(1_700_000_001_000_000);
    let until = time(1_700_000_012_000_000);
    let token = TokenBinding {
        subject: Subject::from_bytes([0xaa; 16]),
        until,
    };
    let at = "060a24182d8240";
    let end = "060a2418d55b00";
    let result = Some(Bytes::from_static(b"ok"));
    let plain = [
        (
            State::Processing(processing()),
            front("00") + "01060a24181e4001060a2419e803810000000927c0",
        ),
        (
            State::Success {
                at: ended,
                result: result.clone(),
            },
            front("81") + at + "6f6b",
        ),
        (
            State::Success {
                at: ended,
                result: None,
            },
            front("01") + at,
        ),
        (
            State::Failed {
                at: ended,
                error: result,
            },
            front("82") + at + "6f6b",
        ),
        (
            State::Failed {
                at: ended,
                error: None,
            },
            front("02") + at,
        ),
        (State::Refused, front("03")),
    ];
    for (state, bytes) in plain {
        assert_eq!(hex(&encode(&record(state.clone()))), bytes, "{state:?}");
    }

    let mut closed = record(State::Closed { by_operator: false });
    closed.expires_at = until;
    assert_eq!(hex(&encode(&closed)), front("48") + end);
    closed.state = State::Closed { by_operator: true };
    assert_eq!(hex(&encode(&closed)), front("47") + end);

    let mut issued = record(State::Issued);
    issued.token = Some(token);
    assert_eq!(hex(&encode(&issued)), front("29") + &"aa".repeat(16) + end);

    let mut full = record(State::Success {
        at: ended,
        result: None,
    });
    full.fingerprint = Some(Fingerprint::from_bytes([0xbb; 16]));
    full.token = Some(token);
    full.closed_until = Some(until);
    let bytes = front("71") + &"bb".repeat(16) + &"aa".repeat(16) + end + end + at;
    assert_eq!(hex(&encode(&full)), bytes);
}

#[test]
fn a_finished_record_with_a_fingerprint_adds_52_bytes_to_its_result() {
    let mut record = record(State::Success {
        at: time(SECOND),
        result: Some(Bytes::from(vec![0; 200])),
    });
    record.fingerprint = Some(Fingerprint::from_bytes([1; 16]));
    assert_eq!(encode(&record).len(), 252);
}

#[test]
fn an_unknown_version_is_named() {
    for version in 2..=LAST_VERSION {
        let bytes = Bytes::from(vec![version; 40]);
        let error = decode(bytes, time(0)).unwrap_err();
        assert_eq!(error, FormatError::UnknownVersion(version));
    }
}

#[test]
fn foreign_bytes_are_named() {
    for bytes in ["", "\0", "{\"status\":1}", "PROCESSING"] {
        let error = decode(Bytes::from(bytes), time(0)).unwrap_err();
        assert_eq!(error, FormatError::Foreign, "{bytes:?}");
    }
}

#[test]
fn times_beyond_what_lua_can_compute_with_are_cut() {
    let far = time(u64::MAX);
    let bytes = encode(&record(State::Success {
        at: far,
        result: None,
    }));
    let back = decode(bytes.into(), far).unwrap();
    let at = time(LARGEST);
    assert_eq!(back.state, State::Success { at, result: None });
}

fn any_time() -> impl Strategy<Value = StoreTime> {
    (0..=LARGEST).prop_map(time)
}

fn any_payload() -> impl Strategy<Value = Option<Bytes>> {
    proptest::option::of(vec(any::<u8>(), 0..40).prop_map(Bytes::from))
}

fn any_processing() -> impl Strategy<Value = Processing> {
    let marks = any::<[bool; 6]>();
    (any_time(), any_time(), 0..1_u64 << 48, marks).prop_map(
        |(since, lease_until, expire, marks)| {
            let [rerun, checkpoint, takeover, doubt, given_up, waiters] = marks;
            Processing {
                since,
                lease_until,
                expire: Duration::from_millis(expire),
                policy: if rerun {
                    OnAbandoned::Rerun
                } else {
                    OnAbandoned::Hold
                },
                checkpoint,
                takeover,
                doubt,
                given_up,
                waiters,
            }
        },
    )
}

fn any_state() -> impl Strategy<Value = State> {
    prop_oneof![
        any_processing().prop_map(State::Processing),
        (any_time(), any_payload()).prop_map(|(at, result)| State::Success { at, result }),
        (any_time(), any_payload()).prop_map(|(at, error)| State::Failed { at, error }),
        Just(State::Issued),
        Just(State::Refused),
        any::<bool>().prop_map(|by_operator| State::Closed { by_operator }),
    ]
}

prop_compose! {
    /// Any record that a store can hold: which field goes with which state is part of the format.
    fn any_record()(
        state in any_state(),
        owner in any::<[u8; 16]>(),
        fence in 0..=LARGEST,
        attempt in any::<u32>(),
        fingerprint in proptest::option::of(any::<[u8; 16]>()),
        subject in any::<[u8; 16]>(),
        has_token in any::<bool>(),
        until in any_time(),
        closed_until in proptest::option::of(any_time()),
        expires_at in any_time(),
    ) -> Record {
        let is_bare = matches!(state, State::Refused | State::Closed { .. });
        let is_issued = matches!(state, State::Issued);
        let is_closed = matches!(state, State::Closed { .. });
        let token = TokenBinding { subject: Subject::from_bytes(subject), until };
        Record {
            owner: Owner::from_bytes(owner),
            fence: Fence::from_u64(fence),
            attempt,
            fingerprint: fingerprint
                .map(Fingerprint::from_bytes)
                .filter(|_| !is_bare && !is_issued),
            token: Some(token).filter(|_| is_issued || has_token && !is_bare),
            closed_until: closed_until.filter(|_| !is_closed),
            state,
            expires_at,
        }
    }
}

proptest! {
    #[test]
    fn every_record_is_read_as_it_was_written(record in any_record()) {
        let bytes = Bytes::from(encode(&record));
        prop_assert_eq!(decode(bytes, record.expires_at), Ok(record));
    }

    #[test]
    fn a_truncated_record_is_an_error_or_a_shorter_result(
        record in any_record(),
        cut in 1_usize..200,
    ) {
        let bytes = encode(&record);
        let kept = bytes.len().saturating_sub(cut);
        let read = decode(Bytes::copy_from_slice(&bytes[..kept]), record.expires_at);
        let has_payload = bytes[1] & flag::PAYLOAD != 0;
        prop_assert!(read.is_err() || has_payload);
    }

    #[test]
    fn any_bytes_are_read_or_refused_but_never_a_panic(mut bytes in vec(any::<u8>(), 0..120)) {
        if let Some(version) = bytes.first_mut() {
            *version = VERSION;
        }
        // What is read is written back as it was, but for times that Lua could not hold.
        if let Ok(record) = decode(Bytes::from(bytes.clone()), time(0)) {
            prop_assert_eq!(encode(&record).len(), bytes.len());
        }
    }
}
