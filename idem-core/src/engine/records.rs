//! Reading many records, page by page.

use std::future::{Future, IntoFuture};
use std::pin::Pin;

use super::Idempotency;
use super::record_view::RecordView;
use crate::error::Error;
use crate::store::{Cursor, Scan};

/// Records that are being read. Made by [`Idempotency::records`].
#[derive(Debug)]
#[must_use = "nothing is read until this is awaited or asked for the next"]
pub struct Records {
    idem: Idempotency,
    prefix: String,
    page: std::vec::IntoIter<RecordView>,
    place: Place,
}

#[derive(Debug)]
enum Place {
    First,
    At(Cursor),
    End,
}

impl Records {
    pub(super) fn new(idem: Idempotency, prefix: &str) -> Self {
        Self {
            prefix: format!("{}:{prefix}", idem.core.namespace),
            idem,
            page: Vec::new().into_iter(),
            place: Place::First,
        }
    }

    /// The next record; `None` at the end. A record that changes meanwhile may be seen twice.
    ///
    /// # Errors
    /// [`Error::Store`] if the store gave no answer; calling it again goes on from there.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped before it returns.
    pub async fn next(&mut self) -> Result<Option<RecordView>, Error> {
        const PAGE: u32 = 100;
        loop {
            if let Some(view) = self.page.next() {
                return Ok(Some(view));
            }
            let cursor = match &self.place {
                Place::First => None,
                Place::At(cursor) => Some(cursor.clone()),
                Place::End => return Ok(None),
            };
            let scan = Scan {
                prefix: self.prefix.clone(),
                cursor,
                page_size: PAGE,
            };
            let core = &self.idem.core;
            let answer = core.within_limit(core.store.scan(&scan)).await?;
            let namespace = core.namespace.len() + 1;
            let views = answer.reply.entries.into_iter().filter_map(|(key, slot)| {
                RecordView::new(key[namespace..].to_owned(), slot, answer.now)
            });
            self.page = views.collect::<Vec<_>>().into_iter();
            self.place = answer.reply.next.map_or(Place::End, Place::At);
        }
    }

    async fn all(mut self) -> Result<Vec<RecordView>, Error> {
        let mut all = Vec::new();
        while let Some(view) = self.next().await? {
            all.push(view);
        }
        Ok(all)
    }
}

impl IntoFuture for Records {
    type Output = Result<Vec<RecordView>, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.all())
    }
}
