//! One direction of one connection.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::time::{Instant, sleep_until};

use super::conversation::Conversation;
use super::switch::Switch;
use super::{Mode, Then};

const PIECE: usize = 64 * 1024;

type Parcel = (Instant, Vec<u8>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Requests,
    Replies,
}

/// What a lane of a connection knows.
#[derive(Clone, Copy)]
pub(super) struct Lane<'a> {
    pub(super) direction: Direction,
    pub(super) switch: &'a Switch,
    pub(super) conversation: &'a Conversation,
}

impl Lane<'_> {
    /// Carries bytes until one side ends; whoever awaits it then closes both.
    pub(super) async fn run(self, from: OwnedReadHalf, to: OwnedWriteHalf) -> io::Result<()> {
        let (parcels, queue) = mpsc::unbounded_channel();
        let write = self.write(queue, to);
        tokio::pin!(write);
        tokio::select! {
            end = &mut write => end,
            // However the sender ended, what it sent before is still delivered.
            _ = self.read(from, parcels) => write.await,
        }
    }

    /// Reads at once, also what is to be held: the sender must not notice.
    async fn read(
        self,
        mut from: OwnedReadHalf,
        parcels: UnboundedSender<Parcel>,
    ) -> io::Result<()> {
        let mut buffer = vec![0; PIECE];
        loop {
            let length = from.read(&mut buffer).await?;
            if length == 0 {
                return Ok(());
            }
            let due = Instant::now() + self.delay();
            if parcels.send((due, buffer[..length].to_vec())).is_err() {
                return Ok(());
            }
        }
    }

    async fn write(
        self,
        mut queue: UnboundedReceiver<Parcel>,
        mut to: OwnedWriteHalf,
    ) -> io::Result<()> {
        while let Some((due, piece)) = queue.recv().await {
            sleep_until(due).await;
            let mode = self.switch.mode_that(|mode| mode != Mode::Hold).await;
            if self.conversation.is_hung() {
                continue;
            }
            if mode.is_hole() {
                self.conversation.rob();
                continue;
            }
            if self.deliver(&piece, &mut to).await? == Some(Then::Cut) {
                return Ok(());
            }
        }
        self.end().await;
        Ok(())
    }

    async fn deliver(self, piece: &[u8], to: &mut OwnedWriteHalf) -> io::Result<Option<Then>> {
        if self.direction == Direction::Requests {
            self.conversation.request(piece, self.switch);
            to.write_all(piece).await?;
            return Ok(None);
        }
        let (kept, then) = self.conversation.reply(piece);
        if then == Some(Then::Hang) {
            self.conversation.hang();
        }
        to.write_all(&kept).await?;
        Ok(then)
    }

    /// The end of a sender travels like its bytes: not through a hole, not while held. Of a client
    /// that went away nobody needs to be kept from hearing, but in the dark.
    async fn end(self) {
        if self.direction == Direction::Requests && self.switch.mode() != Mode::Dark {
            return;
        }
        if self.conversation.is_hung() {
            std::future::pending::<()>().await;
        }
        let passes = |mode: Mode| !mode.is_hole() && mode != Mode::Hold;
        self.switch.mode_that(passes).await;
    }

    fn delay(self) -> Duration {
        match (self.switch.mode(), self.direction) {
            (Mode::Delay { requests, .. }, Direction::Requests) => requests,
            (Mode::Delay { replies, .. }, Direction::Replies) => replies,
            _ => Duration::ZERO,
        }
    }
}
