//! Rows: the record that they were made of, or damaged.

use crate::fuzzing::record::within_range;
use crate::record::{Record, Slot, State, StoreTime, format};

use super::Row;

/// A way to read rows.
pub(crate) type Read = fn(&Row, StoreTime) -> Slot;

pub(crate) const OURS: Read = Row::slot;

const BEFORE: StoreTime = StoreTime::from_micros(1_700_000_000_000_000);
const END: StoreTime = StoreTime::from_micros(1_700_000_600_000_000);

pub(crate) fn check(read: Read, bytes: &[u8]) {
    let Some((&column, rest)) = bytes.split_first() else {
        return;
    };
    let Some((value, packed)) = rest.split_first_chunk() else {
        return;
    };
    let value = i64::from_be_bytes(*value);
    match format::decode(packed.to_vec().into(), END) {
        Ok(record) => check_record(read, &record, column, value),
        Err(_) => check_foreign(read, packed, value),
    }
}

fn check_record(read: Read, record: &Record, column: u8, value: i64) {
    let row = Row::of(record);
    let kept = Slot::Record(within_range(record.clone()));
    assert_eq!(read(&row, BEFORE), kept, "not what it was made of: {row:?}");

    let mut changed = row.clone();
    let may_change = change(&mut changed, column, value, &record.state);
    if changed != row && !may_change {
        let (before, after) = (read(&changed, BEFORE), read(&changed, END));
        assert_eq!(before, Slot::Damaged, "not damaged: {changed:?}");
        assert_eq!(after, Slot::Absent, "not over: {changed:?}");
    }
}

/// Changes a column. Whether the row is a record afterwards, another one: the columns from which
/// nothing was packed.
fn change(row: &mut Row, column: u8, value: i64, state: &State) -> bool {
    let bytes = value.to_be_bytes().to_vec();
    let narrow = i16::from_be_bytes([bytes[6], bytes[7]]);
    match column % 9 {
        0 => row.request_id = bytes,
        1 => row.status = narrow,
        2 => row.fence = value,
        3 => row.attempt = value,
        4 => row.fingerprint = (value != 0).then_some(bytes),
        5 => row.checkpoint = !row.checkpoint,
        6 => row.lease_until = (value != 0).then_some(value),
        7 => {
            let had_one = row.response_data.is_some();
            row.response_data = (value != 0).then_some(bytes);
            return had_one && row.response_data.is_some();
        }
        _ => {
            // Within the time in which it is looked at; a closed mark has its end packed as well.
            let later = END
                .as_micros()
                .cast_signed()
                .saturating_sub(value & 0xff_ffff);
            row.expire_at = later;
            return !matches!(state, State::Closed { .. });
        }
    }
    false
}

/// Bytes that are no record make no row a record, whatever its columns say.
fn check_foreign(read: Read, packed: &[u8], value: i64) {
    let row = Row {
        request_id: value.to_be_bytes().repeat(2),
        status: 1,
        fence: value,
        attempt: 1,
        fingerprint: None,
        checkpoint: false,
        lease_until: None,
        response_data: None,
        expire_at: value,
        record: packed.to_vec(),
    };
    let slot = read(&row, BEFORE);
    let is_record = matches!(slot, Slot::Record(_));
    assert!(!is_record, "read from foreign bytes: {slot:?}");
}

#[cfg(test)]
impl Row {
    /// A reader with a mistake: what was packed, whatever the columns say.
    pub(crate) fn packed_only(&self) -> Slot {
        let payload = self.response_data.as_deref().unwrap_or_default();
        Self::unpacked([&*self.record, payload].concat())
    }

    /// A reader with a mistake: what was packed, without its last byte.
    pub(crate) fn cut_short(&self) -> Slot {
        let mut bytes = self.record.clone();
        bytes.pop();
        Self::unpacked(bytes)
    }

    fn unpacked(bytes: Vec<u8>) -> Slot {
        format::decode(bytes.into(), END).map_or(Slot::Damaged, Slot::Record)
    }
}
