//! The id of a message: never none, never blank.

use std::fmt;
use std::sync::Arc;

use crate::Error;
use crate::key::{KeyPart, KeyWriter, is_blank};

/// The id of a message, as its publisher set it: the same in every delivery of one event, and no
/// other event's.
///
/// It can not be missing or blank. Brokers hand out such ids when a publisher sets none, and as a
/// key they would make one request of all those messages.
///
/// # Examples
/// ```
/// use idem_core::consumer::MessageId;
/// use idem_core::{Error, Key};
///
/// let id = MessageId::new("evt_17")?;
/// assert_eq!(Key::new("stripe:event", &id)?.as_str(), "stripe:event::evt_17");
/// assert!(matches!(MessageId::new(" "), Err(Error::MissingKey { .. })));
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(Arc<str>);

impl MessageId {
    /// Takes an id as it came.
    ///
    /// # Errors
    /// [`Error::MissingKey`] if it is empty, or white space, controls and zero-width characters
    /// only.
    pub fn new(id: &str) -> Result<Self, Error> {
        if id.chars().all(is_blank) {
            return Err(Error::MissingKey {
                part: "message id".into(),
            });
        }
        Ok(Self(id.into()))
    }

    /// The id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("MessageId").field(&&*self.0).finish()
    }
}

impl AsRef<str> for MessageId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl KeyPart for MessageId {
    fn write(&self, writer: &mut KeyWriter) {
        writer.text(&self.0);
    }
}
