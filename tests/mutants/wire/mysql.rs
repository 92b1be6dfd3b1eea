//! MySQL: three bytes of length, a number that is zero where a command begins, and a command
//! byte, after which the text fills the packet.

use super::spliced;
use crate::mutant::Edit;

const HEADER: usize = 4;
const QUERY: u8 = 0x03;
const PREPARE: u8 = 0x16;

pub(super) fn length(bytes: &[u8]) -> Option<usize> {
    let [low, middle, high] = *bytes.first_chunk()?;
    let length = u32::from_le_bytes([low, middle, high, 0]);
    Some(HEADER + usize::try_from(length).ok()?)
}

pub(super) fn edited(message: &[u8], edit: &Edit) -> Option<Vec<u8>> {
    let begins_a_command = message.get(3) == Some(&0);
    let is_text = matches!(message.get(HEADER), Some(&(QUERY | PREPARE)));
    if !begins_a_command || !is_text {
        return None;
    }
    let at = HEADER + 1;
    let text = std::str::from_utf8(&message[at..]).ok()?;
    let mut changed = spliced(message, at, text, &edit.apply(text)?);
    let length = u32::try_from(changed.len() - HEADER).ok()?;
    changed[..3].copy_from_slice(&length.to_le_bytes()[..3]);
    Some(changed)
}
