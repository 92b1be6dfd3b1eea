//! Where messages of a client begin and end, and where in them the text stands that the server
//! will execute. Only what the stores' clients say without TLS and compression.

mod mysql;
mod postgres;
mod redis;

use crate::mutant::Edit;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    Redis,
    Postgres,
    MySql,
}

/// One connection's requests, from its first byte on.
pub(crate) struct Conversation {
    protocol: Protocol,
    is_first: bool,
}

impl Protocol {
    pub(crate) fn begin(self) -> Conversation {
        Conversation {
            protocol: self,
            is_first: true,
        }
    }
}

impl Conversation {
    /// The length of the message at the beginning of `bytes`, once all of it is there.
    pub(crate) fn whole(&mut self, bytes: &[u8]) -> Option<usize> {
        let length = match self.protocol {
            Protocol::Redis => redis::length(bytes),
            Protocol::Postgres if self.is_first => postgres::first_length(bytes),
            Protocol::Postgres => postgres::length(bytes),
            Protocol::MySql => mysql::length(bytes),
        }?;
        let is_whole = length <= bytes.len();
        self.is_first &= !is_whole;
        is_whole.then_some(length)
    }

    /// The message with its text changed, if the edit changes it.
    pub(crate) fn edited(&self, message: &[u8], edit: &Edit) -> Option<Vec<u8>> {
        match self.protocol {
            Protocol::Redis => redis::edited(message, edit),
            Protocol::Postgres => postgres::edited(message, edit),
            Protocol::MySql => mysql::edited(message, edit),
        }
    }
}

/// A message in which `text`, found at `at`, was replaced; its headers are the caller's.
fn spliced(message: &[u8], at: usize, text: &str, changed: &str) -> Vec<u8> {
    let (front, rest) = message.split_at(at);
    [front, changed.as_bytes(), &rest[text.len()..]].concat()
}
