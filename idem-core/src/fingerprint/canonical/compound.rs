//! What holds other values: lists in their order, sets and maps in a canonical one.

use std::ops::Range;

use serde::ser::{self, Serialize};

use super::{Failed, LIST, MAP, SET, push_text, write};

/// The elements of a list, or of a set.
pub(super) struct Items<'a> {
    out: &'a mut Vec<u8>,
    head: Head,
    /// Where each element of a set ends; a list needs none.
    ends: Option<Vec<usize>>,
}

impl<'a> Items<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>, is_set: bool) -> Self {
        let head = Head::write(out, if is_set { SET } else { LIST });
        Self {
            out,
            head,
            ends: is_set.then(Vec::new),
        }
    }

    fn item<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failed> {
        write(value, self.out)?;
        self.head.count += 1;
        if let Some(ends) = &mut self.ends {
            ends.push(self.out.len());
        }
        Ok(())
    }

    fn close(self) {
        if let Some(ends) = &self.ends {
            sort(self.out, self.head.body(), ends);
        }
        self.head.finish(self.out);
    }
}

/// The entries of a map or the fields of a struct.
pub(super) struct Entries<'a> {
    out: &'a mut Vec<u8>,
    head: Head,
    ends: Vec<usize>,
}

impl<'a> Entries<'a> {
    pub(super) fn new(out: &'a mut Vec<u8>) -> Self {
        let head = Head::write(out, MAP);
        Self {
            out,
            head,
            ends: Vec::new(),
        }
    }

    fn key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failed> {
        write(key, self.out)
    }

    fn value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failed> {
        write(value, self.out)?;
        self.head.count += 1;
        self.ends.push(self.out.len());
        Ok(())
    }

    fn close(self) {
        sort(self.out, self.head.body(), &self.ends);
        self.head.finish(self.out);
    }
}

/// An enum's variant with data: the map from its name to the data.
pub(super) struct Variant<C>(pub(super) C);

pub(super) fn begin_variant(out: &mut Vec<u8>, variant: &'static str) {
    let mut head = Head::write(out, MAP);
    head.count = 1;
    head.finish(out);
    push_text(out, variant);
}

/// A tag and the number of elements, which is known only at the end.
struct Head {
    count_at: usize,
    count: u64,
}

impl Head {
    const COUNT_BYTES: usize = size_of::<u64>();

    fn write(out: &mut Vec<u8>, tag: u8) -> Self {
        out.push(tag);
        let count_at = out.len();
        out.extend_from_slice(&[0; Self::COUNT_BYTES]);
        Self { count_at, count: 0 }
    }

    fn body(&self) -> usize {
        self.count_at + Self::COUNT_BYTES
    }

    fn finish(self, out: &mut [u8]) {
        out[self.count_at..self.body()].copy_from_slice(&self.count.to_be_bytes());
    }
}

/// Puts the pieces that begin at `start` and end at `ends` into the order of their bytes. A map's
/// piece begins with its key and each encoding says where it ends, so the order is the key's.
fn sort(out: &mut [u8], start: usize, ends: &[usize]) {
    let mut pieces: Vec<Range<usize>> = Vec::with_capacity(ends.len());
    let mut begin = start;
    for &end in ends {
        pieces.push(begin..end);
        begin = end;
    }
    if pieces.is_sorted_by(|a, b| out[a.clone()] <= out[b.clone()]) {
        return;
    }
    pieces.sort_unstable_by(|a, b| out[a.clone()].cmp(&out[b.clone()]));
    let mut sorted = Vec::with_capacity(out.len() - start);
    for piece in pieces {
        sorted.extend_from_slice(&out[piece]);
    }
    out[start..].copy_from_slice(&sorted);
}

macro_rules! items {
    ($($kind:ident $method:ident;)*) => {$(
        impl ser::$kind for Items<'_> {
            type Ok = ();
            type Error = Failed;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failed> {
                self.item(value)
            }

            fn end(self) -> Result<(), Failed> {
                self.close();
                Ok(())
            }
        }
    )*};
}

items! {
    SerializeSeq serialize_element;
    SerializeTuple serialize_element;
    SerializeTupleStruct serialize_field;
}

impl ser::SerializeTupleVariant for Variant<Items<'_>> {
    type Ok = ();
    type Error = Failed;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failed> {
        self.0.item(value)
    }

    fn end(self) -> Result<(), Failed> {
        self.0.close();
        Ok(())
    }
}

impl ser::SerializeMap for Entries<'_> {
    type Ok = ();
    type Error = Failed;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Failed> {
        self.key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Failed> {
        self.value(value)
    }

    fn end(self) -> Result<(), Failed> {
        self.close();
        Ok(())
    }
}

impl ser::SerializeStruct for Entries<'_> {
    type Ok = ();
    type Error = Failed;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Failed> {
        self.key(key)?;
        self.value(value)
    }

    fn end(self) -> Result<(), Failed> {
        self.close();
        Ok(())
    }
}

impl ser::SerializeStructVariant for Variant<Entries<'_>> {
    type Ok = ();
    type Error = Failed;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), Failed> {
        self.0.key(key)?;
        self.0.value(value)
    }

    fn end(self) -> Result<(), Failed> {
        self.0.close();
        Ok(())
    }
}
