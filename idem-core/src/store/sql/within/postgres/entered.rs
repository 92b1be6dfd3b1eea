//! What `idempotent_enter_2` says, in words: the time, when the transaction began, whether it has
//! the lock, whether it sees all that is committed, and the columns of the row, where there is one.

use super::super::super::hex::unhex;
use super::super::super::row::{Found, Row, time};
use super::super::{Entered, Hold};

pub(super) fn read(said: &str) -> Option<Entered> {
    let mut words = said.split(' ');
    let now = time(words.next()?.parse().ok()?);
    let began = unhex(words.next()?)?.try_into().ok()?;
    let is_held = boolean(words.next()?)?;
    let sees_all = boolean(words.next()?)?;
    let row = match words.next() {
        Some(columns) => Some(row(columns)?),
        None => None,
    };
    if words.next().is_some() {
        return None;
    }
    Some(Entered {
        found: Found { now, row },
        hold: match (is_held, sees_all) {
            (false, _) => Hold::Elsewhere,
            (true, true) => Hold::Firm,
            (true, false) => Hold::FirmAfterAWrite,
        },
        began: Some(began),
    })
}

fn row(columns: &str) -> Option<Row> {
    let columns = columns.strip_prefix('(')?.strip_suffix(')')?;
    let columns: Vec<_> = columns.split(',').collect();
    let [
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
    ] = *columns
    else {
        return None;
    };
    Some(Row {
        request_id: bytes(request_id)?,
        status: status.parse().ok()?,
        fence: fence.parse().ok()?,
        attempt: attempt.parse().ok()?,
        fingerprint: unless_null(fingerprint, bytes).ok()?,
        checkpoint: boolean(checkpoint)?,
        lease_until: unless_null(lease_until, |number| number.parse().ok()).ok()?,
        response_data: unless_null(response_data, bytes).ok()?,
        expire_at: expire_at.parse().ok()?,
        record: bytes(record)?,
    })
}

/// A row's text has nothing at all in place of NULL, and quotes in place of an empty text. `Err` if
/// what is there can not be read.
fn unless_null<T>(text: &str, read: impl FnOnce(&str) -> Option<T>) -> Result<Option<T>, ()> {
    if text.is_empty() {
        return Ok(None);
    }
    read(text).map(Some).ok_or(())
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    unhex(if text == "\"\"" { "" } else { text })
}

fn boolean(text: &str) -> Option<bool> {
    match text {
        "t" => Some(true),
        "f" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_without_a_row_is_held_or_not() {
        let hold = |said: &str| {
            let entered = read(said).unwrap();
            assert_eq!(entered.found.now, time(7));
            assert_eq!(entered.found.row, None);
            assert_eq!(entered.began, Some([0, 0, 0, 0, 0, 0, 0, 255]));
            entered.hold
        };
        assert_eq!(hold("7 00000000000000ff t t"), Hold::Firm);
        assert_eq!(hold("7 00000000000000ff t f"), Hold::FirmAfterAWrite);
        assert_eq!(hold("7 00000000000000ff f t"), Hold::Elsewhere);
    }

    #[test]
    fn what_is_null_is_told_from_what_is_empty() {
        let row = |columns: &str| {
            read(&format!("7 00000000000000ff t t ({columns})"))
                .unwrap()
                .found
                .row
        };
        let running = Row {
            request_id: vec![1, 171],
            status: 1,
            fence: 5,
            attempt: 2,
            fingerprint: None,
            checkpoint: true,
            lease_until: Some(8),
            response_data: None,
            expire_at: 9,
            record: vec![0],
        };
        assert_eq!(row("01ab,1,5,2,,t,8,,9,00"), Some(running.clone()));
        let ended = Row {
            fingerprint: Some(vec![2]),
            checkpoint: false,
            lease_until: None,
            response_data: Some(Vec::new()),
            ..running
        };
        assert_eq!(row("01ab,1,5,2,02,f,,\"\",9,00"), Some(ended));
    }

    #[test]
    fn what_is_in_no_such_words_is_not_guessed_at() {
        for said in [
            "",
            "7",
            "7 00000000000000ff",
            "7 00000000000000ff t",
            "7 00000000000000ff yes t",
            "7 ff t t",
            "x 00000000000000ff t t",
            "7 00000000000000ff t t ()",
            "7 00000000000000ff t t (01,1,5,2,,t,8,,9,00) t",
            "7 00000000000000ff t t 01,1,5,2,,t,8,,9,00",
            "7 00000000000000ff t t (01,1,5,2,,t,8,,9)",
            "7 00000000000000ff t t (0x,1,5,2,,t,8,,9,00)",
            "7 00000000000000ff t t (01,,5,2,,t,8,,9,00)",
        ] {
            assert!(read(said).is_none(), "{said:?}");
        }
    }
}
