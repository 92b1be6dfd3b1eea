//! Who in this process waits for what.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::PoisonError;

use crate::primitives::{Mutex, MutexGuard, watch};

type Channels<K> = HashMap<K, watch::Sender<u64>>;

/// The keys for which somebody waits, each with one who attends to it.
#[derive(Debug)]
pub(crate) struct Board<K>(Mutex<Channels<K>>);

impl<K> Default for Board<K> {
    fn default() -> Self {
        Self(Mutex::new(HashMap::new()))
    }
}

impl<K: Clone + Eq + Hash> Board<K> {
    /// Lets everybody who waits look for himself.
    pub(crate) fn tell_all(&self) {
        let all: Vec<_> = self.channels().values().cloned().collect();
        // Outside the lock: who is woken may come here.
        for channel in all {
            channel.send_modify(|changes| *changes += 1);
        }
    }

    /// Joins those who wait for `key`. Who is the first is given the channel's other end as well:
    /// somebody has to attend to it until [`leave`](Self::leave) allows to go.
    pub(crate) fn join(&self, key: &K) -> (watch::Receiver<u64>, Option<watch::Sender<u64>>) {
        match self.channels().entry(key.clone()) {
            Entry::Occupied(channel) => (channel.get().subscribe(), None),
            Entry::Vacant(place) => {
                let (sender, receiver) = watch::channel(0);
                place.insert(sender.clone());
                (receiver, Some(sender))
            }
        }
    }

    /// Takes the key away if nobody waits for it any more. Only who attends to it takes it away, so
    /// what is there is still its channel.
    pub(crate) fn leave(&self, key: &K, sender: &watch::Sender<u64>) -> bool {
        let mut channels = self.channels();
        let nobody = sender.receiver_count() == 0;
        if nobody {
            channels.remove(key);
        }
        nobody
    }

    /// Takes the key away from those who wait for it: nobody tells them anything any more. Who has
    /// [left](Self::leave) comes here too, when another may attend to the key.
    pub(crate) fn give_up(&self, key: &K, sender: &watch::Sender<u64>) {
        let mut channels = self.channels();
        let given_up = match channels.entry(key.clone()) {
            Entry::Occupied(channel) if channel.get().same_channel(sender) => {
                Some(channel.remove())
            }
            _ => None,
        };
        drop(channels);
        drop(given_up);
    }

    fn channels(&self) -> MutexGuard<'_, Channels<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
