//! Which reply on a connection answers which command.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Then;
use super::frames::Frames;
use super::switch::Switch;

const PUSH: u8 = b'>';

/// One connection's count of commands and replies.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    commands: Frames,
    replies: Frames,
    asked: u64,
    answered: u64,
    /// The number of the reply to swallow.
    doomed: Option<(u64, Then)>,
    /// Nothing passes any more.
    hung: bool,
    /// Bytes fell into the black hole.
    robbed: bool,
}

impl Conversation {
    pub(super) fn hang(&self) {
        self.state().hung = true;
    }

    pub(super) fn is_hung(&self) -> bool {
        self.state().hung
    }

    pub(super) fn rob(&self) {
        self.state().robbed = true;
    }

    pub(super) fn is_robbed(&self) -> bool {
        self.state().robbed
    }

    /// Takes note of what is about to reach the server.
    pub(super) fn request(&self, piece: &[u8], switch: &Switch) {
        switch.count_bytes(piece.len());
        let mut state = self.state();
        for frame in state.commands.feed(piece) {
            let name = String::from_utf8_lossy(&frame.head).to_uppercase();
            switch.count_command(&name);
            state.expect_reply(&name, switch);
        }
    }

    /// What of a piece from the server the client gets, and the end of it all if a reply was
    /// swallowed.
    pub(super) fn reply(&self, piece: &[u8]) -> (Vec<u8>, Option<Then>) {
        self.state().filter(piece)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn expect_reply(&mut self, name: &str, switch: &Switch) {
        match name {
            "PSYNC" | "SYNC" | "MONITOR" => {
                self.commands.lose();
                self.replies.lose();
            }
            // In RESP3 these are answered by pushes, which are not counted.
            _ if name.ends_with("SUBSCRIBE") => {}
            _ => {
                if self.doomed.is_none() {
                    self.doomed = switch.fires_for(name).map(|then| (self.asked, then));
                }
                self.asked += 1;
            }
        }
    }

    fn filter(&mut self, piece: &[u8]) -> (Vec<u8>, Option<Then>) {
        let mut kept = Vec::with_capacity(piece.len());
        let mut start = 0;
        for frame in self.replies.feed(piece) {
            if let Some(then) = self.doom_of(frame.kind) {
                return (kept, Some(then));
            }
            kept.extend_from_slice(&piece[start..frame.end]);
            start = frame.end;
            self.answered += u64::from(frame.kind != PUSH);
        }
        let begun = self.replies.begun();
        if begun.and_then(|kind| self.doom_of(kind)).is_none() {
            kept.extend_from_slice(&piece[start..]);
        }
        (kept, None)
    }

    /// The fate of the frame that comes next, if it is the doomed reply.
    fn doom_of(&self, kind: u8) -> Option<Then> {
        let (number, then) = self.doomed?;
        (kind != PUSH && number == self.answered).then_some(then)
    }
}
