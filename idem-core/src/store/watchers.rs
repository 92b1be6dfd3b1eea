//! Who in this process wants to hear of the ends of attempts, by key.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::Watch;
use crate::record::{OperatorReply, RefuseReply, SettleReply};

/// A reply that may say that the attempt at its key has ended.
pub(super) trait MayEnd {
    fn is_an_end(&self) -> bool;
}

impl MayEnd for SettleReply {
    fn is_an_end(&self) -> bool {
        matches!(self, Self::Settled | Self::Adopted)
    }
}

impl MayEnd for RefuseReply {
    fn is_an_end(&self) -> bool {
        *self == Self::Refused
    }
}

impl MayEnd for OperatorReply {
    fn is_an_end(&self) -> bool {
        *self == Self::Done
    }
}

/// A channel for each key that somebody in this process waits at; it counts the ends heard of.
#[derive(Default)]
pub(super) struct Watchers {
    channels: Mutex<Channels>,
}

#[derive(Default)]
struct Channels {
    by_key: HashMap<Arc<str>, watch::Sender<u64>>,
    /// At this size those without a listener are dropped, so that there are never more than twice
    /// as many channels as there were listeners, and a subscription costs the same on average.
    sweep_at: usize,
}

impl Watchers {
    const SMALLEST_SWEEP: usize = 16;

    pub(super) fn subscribe(&self, key: &Arc<str>) -> Watch {
        let mut channels = self.channels();
        if let Some(channel) = channels.by_key.get(key) {
            return Watch::new(channel.subscribe());
        }
        if channels.by_key.len() >= channels.sweep_at {
            channels
                .by_key
                .retain(|_, channel| channel.receiver_count() > 0);
            channels.sweep_at = (channels.by_key.len() * 2).max(Self::SMALLEST_SWEEP);
        }
        let (channel, changes) = watch::channel(0);
        channels.by_key.insert(key.clone(), channel);
        Watch::new(changes)
    }

    /// Wakes everybody who listens at `key`, if `reply` says that its attempt has ended.
    pub(super) fn hear(&self, key: &str, reply: &impl MayEnd) {
        if reply.is_an_end() {
            self.report(key);
        }
    }

    fn report(&self, key: &str) {
        let channel = {
            let mut channels = self.channels();
            match channels.by_key.get(key) {
                Some(channel) if channel.receiver_count() > 0 => channel.clone(),
                Some(_) => {
                    channels.by_key.remove(key);
                    return;
                }
                None => return,
            }
        };
        // Outside the lock: a waker is somebody else's code.
        channel.send_modify(|count| *count = count.wrapping_add(1));
    }

    /// A panic can not leave them half changed: nothing is called out to under the lock.
    fn channels(&self) -> MutexGuard<'_, Channels> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.channels().by_key.len()
    }
}
