//! Reading all records of a prefix, page by page, with SCAN only.

use std::sync::Arc;

use ::redis::RedisResult;

use super::argv::Argv;
use super::fault::misconfigured;
use super::link::Link;
use super::nodes::{Node, ask, masters, read};
use super::{RedisStore, peeked, script};
use crate::error::StoreError;
use crate::record::{Slot, StoreTime};
use crate::store::{Answer, Answered, Cursor, Page, Scan};

/// Where to read on: a node, and the place in it that the node named.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    node: Option<Node>,
    cursor: u64,
}

impl Place {
    /// `host:port/cursor`, or `/cursor` where there is only one node.
    fn write(&self) -> Cursor {
        let node = match &self.node {
            Some((host, port)) => format!("{host}:{port}"),
            None => String::new(),
        };
        Cursor(format!("{node}/{}", self.cursor))
    }

    fn read(cursor: &Cursor) -> Option<Self> {
        let (node, cursor) = cursor.0.rsplit_once('/')?;
        let node = match node.rsplit_once(':') {
            Some((host, port)) => Some((host.to_owned(), port.parse().ok()?)),
            None => None,
        };
        Some(Self {
            node,
            cursor: cursor.parse().ok()?,
        })
    }
}

impl RedisStore {
    /// One page. In a cluster the masters are read one after the other, in the order of their
    /// addresses; records of a slot that moves meanwhile may be seen twice or not at all.
    pub(super) async fn page(&self, scan: &Scan) -> Answered<Page> {
        let place = match &scan.cursor {
            None => None,
            Some(cursor) => Some(Place::read(cursor).ok_or_else(|| {
                misconfigured(format!("redis: `{}` is no cursor of this store", cursor.0))
            })?),
        };
        let link = self.link().await?;
        let keys = page_of_keys(&link, scan, place).await;
        let (keys, next) = keys.map_err(|error| self.failed(&link, error))?;
        let entries = self.peek_all(&link, keys).await?;
        let now = entries.iter().map(|(_, answer)| answer.now).max();
        let entries = entries
            .into_iter()
            .filter(|(_, answer)| answer.reply != Slot::Absent)
            .map(|(key, answer)| (key, answer.reply))
            .collect();
        Ok(Answer {
            now: match now {
                Some(now) => now,
                None => self.time(&link).await?,
            },
            reply: Page {
                entries,
                next: next.map(|place| place.write()),
            },
        })
    }

    async fn peek_all(
        &self,
        link: &Arc<Link>,
        keys: Vec<String>,
    ) -> Result<Vec<(String, Answer<Slot>)>, StoreError> {
        let peeks: Vec<_> = keys.iter().map(|key| (key.as_str(), Argv::NONE)).collect();
        let answers = self.run_all(link, &script::PEEK, &peeks).await;
        drop(peeks);
        keys.into_iter()
            .zip(answers)
            .map(|(key, answer)| Ok((key, peeked(answer?)?)))
            .collect()
    }

    pub(super) async fn time(&self, link: &Arc<Link>) -> Result<StoreTime, StoreError> {
        let time = ask(link, None, ::redis::cmd("TIME")).await;
        let time = time.and_then(read::<(u64, u64)>);
        let (seconds, micros) = time.map_err(|error| self.failed(link, error))?;
        Ok(StoreTime::from_micros(seconds * 1_000_000 + micros))
    }
}

/// Some keys, and where to read on.
async fn page_of_keys(
    link: &Link,
    scan: &Scan,
    place: Option<Place>,
) -> RedisResult<(Vec<String>, Option<Place>)> {
    let Some(masters) = masters(link).await? else {
        return keys_of_node(link, scan, None, place).await;
    };
    let node_of = |place: &Place| place.node.clone().unwrap_or_default();
    let begin = match &place {
        // The node of the cursor, or the next one if it is gone.
        Some(place) => masters.iter().position(|node| *node >= node_of(place)),
        None => (!masters.is_empty()).then_some(0),
    };
    let Some(begin) = begin else {
        return Ok((Vec::new(), None));
    };
    let node = masters[begin].clone();
    let place = place.filter(|place| node_of(place) == node);
    let (keys, next) = keys_of_node(link, scan, Some(node), place).await?;
    let next = next.or_else(|| {
        let node = Some(masters.get(begin + 1)?.clone());
        Some(Place { node, cursor: 0 })
    });
    Ok((keys, next))
}

async fn keys_of_node(
    link: &Link,
    scan: &Scan,
    node: Option<Node>,
    place: Option<Place>,
) -> RedisResult<(Vec<String>, Option<Place>)> {
    let cursor = place.map_or(0, |place| place.cursor);
    let mut cmd = ::redis::cmd("SCAN");
    cmd.arg(cursor)
        .arg("MATCH")
        .arg(pattern(&scan.prefix))
        .arg("COUNT")
        .arg(scan.page_size.max(1));
    let (next, keys): (u64, Vec<Vec<u8>>) = read(ask(link, node.as_ref(), cmd).await?)?;
    // Keys that are no text are none of ours, whatever they begin with.
    let keys = keys
        .into_iter()
        .filter_map(|key| String::from_utf8(key).ok());
    let next = (next != 0).then_some(Place { node, cursor: next });
    Ok((keys.collect(), next))
}

/// A glob that matches exactly the keys that begin with `prefix`.
fn pattern(prefix: &str) -> String {
    let mut pattern = String::with_capacity(prefix.len() + 1);
    for char in prefix.chars() {
        if matches!(char, '*' | '?' | '[' | ']' | '^' | '-' | '\\') {
            pattern.push('\\');
        }
        pattern.push(char);
    }
    pattern.push('*');
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_is_matched_as_it_is_written() {
        assert_eq!(pattern("shop:a*b"), r"shop:a\*b*");
        assert_eq!(pattern(r"[x]?\"), r"\[x\]\?\\*");
        assert_eq!(pattern(""), "*");
    }

    #[test]
    fn a_cursor_is_read_as_it_was_written() {
        let places = [
            (None, 7),
            (Some(("10.0.0.1".to_owned(), 6379)), 0),
            (Some(("::1".to_owned(), 6379)), u64::MAX),
        ];
        for (node, cursor) in places {
            let place = Place { node, cursor };
            assert_eq!(Place::read(&place.write()), Some(place));
        }
    }

    #[test]
    fn a_text_that_is_no_cursor_is_not_read() {
        for text in ["", "7", "host/7/x", "host:port/7", "/-1"] {
            assert_eq!(Place::read(&Cursor(text.to_owned())), None, "{text}");
        }
    }
}
