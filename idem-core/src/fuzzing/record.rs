//! Records: what is read is written back as it was.

use bytes::Bytes;

use crate::record::format::{self, LARGEST};
use crate::record::{Fence, Record, State, StoreTime};

/// A way to keep records as bytes.
#[derive(Clone, Copy)]
pub(super) struct Format {
    pub(super) read: fn(Bytes, StoreTime) -> Option<Record>,
    pub(super) write: fn(&Record) -> Vec<u8>,
}

pub(super) const OURS: Format = Format {
    read: |bytes, expires_at| format::decode(bytes, expires_at).ok(),
    write: format::encode,
};

const END: StoreTime = StoreTime::from_micros(1_700_000_600_000_000);

pub(super) fn check(format: Format, bytes: &[u8]) {
    let Some(record) = (format.read)(Bytes::copy_from_slice(bytes), END) else {
        return;
    };
    let written = (format.write)(&record);
    let kept = within_range(record.clone());
    assert_eq!(
        (format.read)(written.clone().into(), END).as_ref(),
        Some(&kept),
        "a record is not read as it was written"
    );
    if record == kept {
        let same = bytes.len() - own_end(&record);
        assert_eq!(written.len(), bytes.len(), "a byte has no meaning");
        assert_eq!(written[..same], bytes[..same], "bytes have two meanings");
    }
}

/// A closed mark carries its own end, which its reader is told besides.
fn own_end(record: &Record) -> usize {
    match record.state {
        State::Closed { .. } => 7,
        _ => 0,
    }
}

/// The record as it can be kept: what Lua could not compute with is cut.
pub(crate) fn within_range(mut record: Record) -> Record {
    let cut = |time: &mut StoreTime| *time = StoreTime::from_micros(time.as_micros().min(LARGEST));
    record.fence = Fence::from_u64(record.fence.as_u64().min(LARGEST));
    record.closed_until.iter_mut().for_each(cut);
    if let Some(token) = &mut record.token {
        cut(&mut token.until);
    }
    match &mut record.state {
        State::Processing(attempt) => {
            cut(&mut attempt.since);
            cut(&mut attempt.lease_until);
        }
        State::Success { at, .. } | State::Failed { at, .. } => cut(at),
        State::Issued | State::Refused | State::Closed { .. } => {}
    }
    record
}
