//! Finds what JSON would change in silence: it writes `Some(None)`, `Some(())` and NaN as `null`.

use std::fmt;

use serde::ser::{self, Serialize};

use super::CodecError;

/// Whether `value` comes back from JSON as it is, as far as the shape of its data tells.
pub(super) fn check<T: Serialize + ?Sized>(value: &T) -> Result<(), CodecError> {
    match value.serialize(Shape) {
        Ok(_) => Ok(()),
        Err(Found::Lossy(what)) => Err(CodecError::Lossy(what)),
        Err(Found::Refused(why)) => Err(CodecError::Encode(why)),
    }
}

#[derive(Debug)]
enum Found {
    Lossy(&'static str),
    Refused(String),
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lossy(what) => f.write_str(what),
            Self::Refused(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for Found {}

impl ser::Error for Found {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Refused(message.to_string())
    }
}

/// Walks a value; each part answers whether JSON would write it as `null`.
struct Shape;

macro_rules! not_null {
    ($($method:ident: $kind:ty),* $(,)?) => {
        $(fn $method(self, _: $kind) -> Result<bool, Found> { Ok(false) })*
    };
}

impl ser::Serializer for Shape {
    type Ok = bool;
    type Error = Found;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Self;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Self;

    not_null! {
        serialize_bool: bool, serialize_char: char, serialize_str: &str, serialize_bytes: &[u8],
        serialize_i8: i8, serialize_i16: i16, serialize_i32: i32, serialize_i64: i64,
        serialize_i128: i128, serialize_u8: u8, serialize_u16: u16, serialize_u32: u32,
        serialize_u64: u64, serialize_u128: u128,
    }

    fn serialize_f32(self, value: f32) -> Result<bool, Found> {
        self.serialize_f64(f64::from(value))
    }

    fn serialize_f64(self, value: f64) -> Result<bool, Found> {
        if value.is_finite() {
            Ok(false)
        } else {
            Err(Found::Lossy("JSON has no NaN and no infinity"))
        }
    }

    fn serialize_none(self) -> Result<bool, Found> {
        Ok(true)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<bool, Found> {
        if value.serialize(self)? {
            return Err(Found::Lossy(
                "JSON writes Some(None) and Some(()) like None",
            ));
        }
        Ok(false)
    }

    fn serialize_unit(self) -> Result<bool, Found> {
        Ok(true)
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<bool, Found> {
        Ok(true)
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
    ) -> Result<bool, Found> {
        Ok(false)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<bool, Found> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<bool, Found> {
        value.serialize(self).map(|_| false)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_tuple(self, _: usize) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Self, Found> {
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self, Found> {
        Ok(self)
    }
}

macro_rules! compound {
    ($($kind:ident { $method:ident($($name:ident: $type:ty)?) })*) => {
        $(impl ser::$kind for Shape {
            type Ok = bool;
            type Error = Found;

            fn $method<T: Serialize + ?Sized>(
                &mut self,
                $($name: $type,)?
                value: &T,
            ) -> Result<(), Found> {
                value.serialize(Shape).map(|_| ())
            }

            fn end(self) -> Result<bool, Found> {
                Ok(false)
            }
        })*
    };
}

compound! {
    SerializeSeq { serialize_element() }
    SerializeTuple { serialize_element() }
    SerializeTupleStruct { serialize_field() }
    SerializeTupleVariant { serialize_field() }
    SerializeStruct { serialize_field(_name: &'static str) }
    SerializeStructVariant { serialize_field(_name: &'static str) }
}

impl ser::SerializeMap for Shape {
    type Ok = bool;
    type Error = Found;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, _: &T) -> Result<(), Found> {
        // Keys that JSON can not write are refused by the writer itself.
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Found> {
        value.serialize(Self).map(|_| ())
    }

    fn end(self) -> Result<bool, Found> {
        Ok(false)
    }
}
