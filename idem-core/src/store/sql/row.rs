//! A record as a row: which columns there are, and how they are read.

#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::record::{Record, Slot, State, StoreTime, format};
use crate::store::StoreKey;

/// Where a record stands in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// SHA-256 of the whole key text: what tells keys apart, whatever a collation thinks of them.
    pub(super) hash: [u8; 32],
    /// `namespace:prefix`.
    pub(super) business_type: String,
    /// The parts.
    pub(super) business_key: String,
}

impl Address {
    pub(crate) fn of(key: &StoreKey) -> Self {
        Self {
            hash: Sha256::digest(key.as_str()).into(),
            business_type: format!("{}:{}", key.namespace(), key.prefix()),
            business_key: key.parts().to_owned(),
        }
    }
}

/// The columns of a row that its record decides.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub(super) request_id: Vec<u8>,
    pub(super) status: i16,
    pub(super) fence: i64,
    pub(super) attempt: i64,
    pub(super) fingerprint: Option<Vec<u8>>,
    pub(super) checkpoint: bool,
    pub(super) lease_until: Option<i64>,
    pub(super) response_data: Option<Vec<u8>>,
    pub(super) expire_at: i64,
    /// The packed record, without the payload that stands in `response_data`.
    pub(super) record: Vec<u8>,
}

impl Row {
    pub(crate) fn of(record: &Record) -> Self {
        let (status, payload) = format::status_and_payload(&record.state);
        let mut bytes = format::encode(record);
        bytes.truncate(bytes.len() - payload.map_or(0, Bytes::len));
        let processing = match &record.state {
            State::Processing(processing) => Some(processing),
            _ => None,
        };
        Self {
            request_id: record.owner.as_bytes().to_vec(),
            status: status.into(),
            fence: number(record.fence.as_u64()),
            attempt: record.attempt.into(),
            fingerprint: record.fingerprint.map(|print| print.as_bytes().to_vec()),
            checkpoint: processing.is_some_and(|processing| processing.checkpoint),
            lease_until: processing.map(|processing| micros(processing.lease_until)),
            response_data: payload.map(|payload| payload.to_vec()),
            expire_at: micros(record.expires_at),
            record: bytes,
        }
    }

    /// What stands here. A row whose columns do not agree with its packed record was changed by
    /// somebody else: it is damaged, unless its time is over anyway.
    fn slot(&self, now: StoreTime) -> Slot {
        let Ok(end) = u64::try_from(self.expire_at) else {
            return Slot::Damaged;
        };
        let end = StoreTime::from_micros(end);
        let payload = self.response_data.as_deref().unwrap_or_default();
        let bytes = [&*self.record, payload].concat();
        match format::decode(bytes.into(), end) {
            Ok(record) if Self::of(&record) == *self => Slot::Record(record),
            _ if end.has_passed(now) => Slot::Absent,
            _ => Slot::Damaged,
        }
    }
}

/// Times and fences in columns are those in the packed bytes.
pub(super) fn micros(time: StoreTime) -> i64 {
    number(time.as_micros())
}

fn number(value: u64) -> i64 {
    i64::try_from(value.min(format::LARGEST)).unwrap_or(i64::MAX)
}

/// A moment as a database names it; before 1970 there is only the epoch.
pub(super) fn time(micros: i64) -> StoreTime {
    StoreTime::from_micros(u64::try_from(micros).unwrap_or_default())
}

/// The columns of [`Row`] as they are selected, in the order of [`Columns`].
macro_rules! columns {
    () => {
        "request_id, status, fence, attempt, fingerprint, checkpoint, lease_until, \
         response_data, expire_at, record"
    };
}
pub(super) use columns;

/// The time, and the columns of a row where there is one.
pub(super) type Columns = (
    i64,
    Option<Vec<u8>>,
    Option<i16>,
    Option<i64>,
    Option<i64>,
    Option<Vec<u8>>,
    Option<bool>,
    Option<i64>,
    Option<Vec<u8>>,
    Option<i64>,
    Option<Vec<u8>>,
);

/// A row of a page: its type, its key, and its columns.
pub(super) type Listed = (
    String,
    String,
    i64,
    Option<Vec<u8>>,
    Option<i16>,
    Option<i64>,
    Option<i64>,
    Option<Vec<u8>>,
    Option<bool>,
    Option<i64>,
    Option<Vec<u8>>,
    Option<i64>,
    Option<Vec<u8>>,
);

/// Binds the columns of a row, in the order of `columns!`.
macro_rules! bind_row {
    ($query:expr, $row:expr) => {
        $query
            .bind(&*$row.request_id)
            .bind($row.status)
            .bind($row.fence)
            .bind($row.attempt)
            .bind($row.fingerprint.as_deref())
            .bind($row.checkpoint)
            .bind($row.lease_until)
            .bind($row.response_data.as_deref())
            .bind($row.expire_at)
            .bind(&*$row.record)
    };
}
pub(super) use bind_row;

/// A row of a page.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) business_type: String,
    pub(super) business_key: String,
    pub(super) found: Found,
}

impl From<Listed> for Entry {
    fn from(listed: Listed) -> Self {
        let (business_type, business_key, now, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9) = listed;
        Self {
            business_type,
            business_key,
            found: (now, c0, c1, c2, c3, c4, c5, c6, c7, c8, c9).into(),
        }
    }
}

/// What a statement found at a key, and when.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub(crate) now: StoreTime,
    pub(crate) row: Option<Row>,
}

impl Found {
    pub(crate) fn slot(&self) -> Slot {
        let row = self.row.as_ref();
        row.map_or(Slot::Absent, |row| row.slot(self.now))
    }
}

impl From<Columns> for Found {
    fn from(columns: Columns) -> Self {
        let (
            now,
            request_id,
            status,
            fence,
            attempt,
            fingerprint,
            checkpoint,
            lease_until,
            response_data,
            expire_at,
            record,
        ) = columns;
        let row = || {
            Some(Row {
                request_id: request_id?,
                status: status?,
                fence: fence?,
                attempt: attempt?,
                fingerprint,
                checkpoint: checkpoint?,
                lease_until,
                response_data,
                expire_at: expire_at?,
                record: record?,
            })
        };
        Self {
            now: time(now),
            row: row(),
        }
    }
}
