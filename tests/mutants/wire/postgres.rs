//! PostgreSQL, protocol 3: a type byte (but for the first message), a length that counts itself,
//! and texts that end with a zero.

use super::spliced;
use crate::mutant::Edit;

const QUERY: u8 = b'Q';
const PARSE: u8 = b'P';
const HEADER: usize = 5;

pub(super) fn first_length(bytes: &[u8]) -> Option<usize> {
    let length = bytes.first_chunk().copied().map(u32::from_be_bytes)?;
    usize::try_from(length).ok()
}

pub(super) fn length(bytes: &[u8]) -> Option<usize> {
    first_length(bytes.get(1..)?).map(|length| length + 1)
}

pub(super) fn edited(message: &[u8], edit: &Edit) -> Option<Vec<u8>> {
    let at = match *message.first()? {
        QUERY => HEADER,
        // Behind the statement's name.
        PARSE => HEADER + text_at(message, HEADER)?.len() + 1,
        _ => return None,
    };
    let text = text_at(message, at)?;
    let mut changed = spliced(message, at, text, &edit.apply(text)?);
    let length = u32::try_from(changed.len() - 1).ok()?;
    changed[1..HEADER].copy_from_slice(&length.to_be_bytes());
    Some(changed)
}

fn text_at(message: &[u8], at: usize) -> Option<&str> {
    let rest = message.get(at..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}
