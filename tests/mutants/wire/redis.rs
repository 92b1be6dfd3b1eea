//! RESP: a command is an array of bulk strings, a script the second of them.

use crate::mutant::Edit;

pub(super) fn length(bytes: &[u8]) -> Option<usize> {
    let (count, mut at) = header(bytes, 0)?;
    for _ in 0..count {
        let (size, begin) = header(bytes, at)?;
        at = begin + size + 2;
    }
    Some(at)
}

/// A client that calls a step by its hash hears that there is none, and sends the text: the
/// server never gets to know the original.
pub(super) fn edited(message: &[u8], edit: &Edit) -> Option<Vec<u8>> {
    let (_, at) = header(message, 0)?;
    let (size, begin) = header(message, at)?;
    let after_name = begin + size + 2;
    if !message[begin..begin + size].eq_ignore_ascii_case(b"EVAL") {
        return None;
    }
    let (size, begin) = header(message, after_name)?;
    let script = std::str::from_utf8(&message[begin..begin + size]).ok()?;
    let changed = edit.apply(script)?;
    let front = [&message[..after_name], &*header_of(changed.len())].concat();
    Some([&front, changed.as_bytes(), &message[begin + size..]].concat())
}

fn header_of(size: usize) -> Vec<u8> {
    format!("${size}\r\n").into_bytes()
}

/// The number in the line at `at`, and where the next line begins.
fn header(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let line = bytes.get(at + 1..)?;
    let end = line.iter().position(|byte| *byte == b'\r')?;
    let number = std::str::from_utf8(&line[..end]).ok()?.parse().ok()?;
    Some((number, at + 1 + end + 2))
}
