//! The canonical form: type-tagged, length-prefixed, the same for equal content.
//!
//! Format 1. A change of any byte below changes every stored fingerprint: duplicates that were
//! accepted before an upgrade would be refused after it.

mod compound;

use std::any::type_name;
use std::fmt::{self, Display};

use serde::ser::{self, Serialize};

use compound::{Entries, Items, Variant};

const NULL: u8 = 0;
const SOME: u8 = 1;
const FALSE: u8 = 2;
const TRUE: u8 = 3;
const POSITIVE: u8 = 4;
const NEGATIVE: u8 = 5;
const FLOAT: u8 = 6;
const TEXT: u8 = 7;
const BYTES: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;

pub(super) fn encode<P: Serialize + ?Sized>(payload: &P) -> Result<Vec<u8>, Failed> {
    let mut out = Vec::with_capacity(256);
    write(payload, &mut out)?;
    Ok(out)
}

/// Every value passes here, so that its type is seen before serde forgets it.
fn write<P: Serialize + ?Sized>(value: &P, out: &mut Vec<u8>) -> Result<(), Failed> {
    value.serialize(Canonical {
        out,
        type_name: type_name::<P>(),
    })
}

/// Whether a type's name, without the wrappers that serde sees through, is one of the hash sets
/// (std, hashbrown and their wrappers), which serialise as sequences of no fixed order.
fn is_hash_set(mut name: &str) -> bool {
    loop {
        name = name.trim_start_matches('&').trim_start_matches("mut ");
        let head = name.split('<').next().unwrap_or_default();
        let last = head.rsplit("::").next().unwrap_or_default();
        match last {
            "Box" | "Arc" | "Rc" | "Cow" | "Option" | "Mutex" | "RwLock" | "RefCell" | "Cell"
            | "Reverse" | "Wrapping" => name = name.get(head.len() + 1..).unwrap_or_default(),
            // A slice or a tuple of sets begins with a bracket, and is itself no set.
            _ => return !head.starts_with(['[', '(']) && is_set_name(last),
        }
    }
}

fn is_set_name(name: &str) -> bool {
    name.ends_with("HashSet") || name == "DashSet"
}

/// The payload's own `Serialize` gave up.
#[derive(Debug)]
pub(super) struct Failed(String);

impl Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

impl ser::Error for Failed {
    fn custom<T: Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

struct Canonical<'a> {
    out: &'a mut Vec<u8>,
    type_name: &'static str,
}

impl Canonical<'_> {
    fn tag(self, tag: u8) {
        self.out.push(tag);
    }

    fn positive(self, value: u128) {
        self.out.push(POSITIVE);
        push_integer(self.out, value);
    }

    fn integer(self, value: i128) {
        self.out.push(if value < 0 { NEGATIVE } else { POSITIVE });
        push_integer(self.out, value.unsigned_abs());
    }
}

fn push_integer(out: &mut Vec<u8>, value: u128) {
    let bytes = value.to_be_bytes();
    let significant = &bytes[(value.leading_zeros() / 8) as usize..];
    push_length(out, significant.len());
    out.extend_from_slice(significant);
}

fn push_length(out: &mut Vec<u8>, length: usize) {
    match u8::try_from(length) {
        Ok(short) if short < u8::MAX => out.push(short),
        _ => {
            out.push(u8::MAX);
            out.extend_from_slice(&(length as u64).to_be_bytes());
        }
    }
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    out.push(TEXT);
    push_length(out, text.len());
    out.extend_from_slice(text.as_bytes());
}

/// An option is what it holds, as in JSON, so that a field may become optional later. Only a
/// value that itself looks like an empty option is wrapped, to keep `Some(None)` apart.
fn write_some<P: Serialize + ?Sized>(value: &P, out: &mut Vec<u8>) -> Result<(), Failed> {
    let start = out.len();
    write(value, out)?;
    if matches!(out.get(start), Some(&(NULL | SOME))) {
        out.insert(start, SOME);
    }
    Ok(())
}

macro_rules! integers {
    ($($method:ident $ty:ty => $as:ident $wide:ty;)*) => {$(
        fn $method(self, value: $ty) -> Result<(), Failed> {
            self.$as(<$wide>::from(value));
            Ok(())
        }
    )*};
}

impl<'a> ser::Serializer for Canonical<'a> {
    type Ok = ();
    type Error = Failed;
    type SerializeSeq = Items<'a>;
    type SerializeTuple = Items<'a>;
    type SerializeTupleStruct = Items<'a>;
    type SerializeTupleVariant = Variant<Items<'a>>;
    type SerializeMap = Entries<'a>;
    type SerializeStruct = Entries<'a>;
    type SerializeStructVariant = Variant<Entries<'a>>;

    integers! {
        serialize_i8 i8 => integer i128;
        serialize_i16 i16 => integer i128;
        serialize_i32 i32 => integer i128;
        serialize_i64 i64 => integer i128;
        serialize_i128 i128 => integer i128;
        serialize_u8 u8 => positive u128;
        serialize_u16 u16 => positive u128;
        serialize_u32 u32 => positive u128;
        serialize_u64 u64 => positive u128;
        serialize_u128 u128 => positive u128;
    }

    fn serialize_bool(self, value: bool) -> Result<(), Failed> {
        self.tag(if value { TRUE } else { FALSE });
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), Failed> {
        self.serialize_f64(f64::from(value))
    }

    fn serialize_f64(self, value: f64) -> Result<(), Failed> {
        self.out.push(FLOAT);
        self.out.extend_from_slice(&value.to_bits().to_be_bytes());
        Ok(())
    }

    fn serialize_char(self, value: char) -> Result<(), Failed> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), Failed> {
        push_text(self.out, value);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), Failed> {
        self.out.push(BYTES);
        push_length(self.out, value.len());
        self.out.extend_from_slice(value);
        Ok(())
    }

    fn serialize_none(self) -> Result<(), Failed> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), Failed> {
        write_some(value, self.out)
    }

    fn serialize_unit(self) -> Result<(), Failed> {
        self.tag(NULL);
        Ok(())
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Result<(), Failed> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
    ) -> Result<(), Failed> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        value: &T,
    ) -> Result<(), Failed> {
        write(value, self.out)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), Failed> {
        compound::begin_variant(self.out, variant);
        write(value, self.out)
    }

    fn serialize_seq(self, _len: Option<usize>) -> Result<Items<'a>, Failed> {
        Ok(Items::new(self.out, is_hash_set(self.type_name)))
    }

    fn serialize_tuple(self, _len: usize) -> Result<Items<'a>, Failed> {
        Ok(Items::new(self.out, false))
    }

    fn serialize_tuple_struct(self, _name: &'static str, _len: usize) -> Result<Items<'a>, Failed> {
        Ok(Items::new(self.out, false))
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Variant<Items<'a>>, Failed> {
        compound::begin_variant(self.out, variant);
        Ok(Variant(Items::new(self.out, false)))
    }

    fn serialize_map(self, _len: Option<usize>) -> Result<Entries<'a>, Failed> {
        Ok(Entries::new(self.out))
    }

    fn serialize_struct(self, _name: &'static str, _len: usize) -> Result<Entries<'a>, Failed> {
        Ok(Entries::new(self.out))
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _len: usize,
    ) -> Result<Variant<Entries<'a>>, Failed> {
        compound::begin_variant(self.out, variant);
        Ok(Variant(Entries::new(self.out)))
    }
}
