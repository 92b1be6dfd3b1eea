//! How results become the bytes of a record, and back.

mod lossless;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Why a value has no bytes, or bytes no value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The value can not be written.
    #[error("the result can not be serialized: {0}")]
    Encode(String),
    /// The value would come back as another one.
    #[error("the result would come back changed: {0}")]
    Lossy(&'static str),
    /// The bytes can not be read as this type; most often the type has changed since.
    #[error("the stored result can not be read as this type: {0}")]
    Decode(String),
}

/// How results become bytes.
///
/// A codec refuses a value that would come back changed, as far as it can see: not what serde is told
/// to skip or to mask. A type that has since gained an optional field, or lost one, should still be
/// read.
pub trait Codec {
    /// The bytes of `value`.
    ///
    /// # Errors
    /// If it has none, or would come back changed.
    fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CodecError>;

    /// The value of `bytes`.
    ///
    /// # Errors
    /// If they are not a `T`.
    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError>;
}

/// JSON: survives the ordinary changes of a type, and operators can read it.
#[derive(Debug, Clone, Copy)]
pub struct Json;

impl Codec for Json {
    fn encode<T: Serialize + ?Sized>(value: &T) -> Result<Vec<u8>, CodecError> {
        lossless::check(value)?;
        // Room for a usual result, so that it is not moved while it is written.
        let mut bytes = Vec::with_capacity(256);
        serde_json::to_writer(&mut bytes, value)
            .map_err(|error| CodecError::Encode(error.to_string()))?;
        Ok(bytes)
    }

    fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, CodecError> {
        serde_json::from_slice(bytes).map_err(|error| CodecError::Decode(error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fmt::Debug;

    use serde::Deserialize;

    use super::*;

    fn comes_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: &T) {
        let bytes = Json::encode(value).unwrap();
        assert_eq!(&Json::decode::<T>(&bytes).unwrap(), value);
    }

    // S01
    #[test]
    fn falsy_values_come_back_as_they_were() {
        comes_back(&0_u32);
        comes_back(&false);
        comes_back(&String::new());
        comes_back(&Vec::<u8>::new());
        comes_back(&None::<u8>);
        comes_back(&());
        comes_back(&Some(0));
        comes_back(&BTreeMap::from([(1_u8, vec![Some('x'), None])]));
        comes_back(&u128::MAX);
        comes_back(&f64::MIN_POSITIVE);
    }

    /// A reader in a hurry rounds the digits, and then their power of ten.
    #[test]
    fn an_amount_comes_back_to_its_last_bit() {
        comes_back(&(9.99 * 0.19));
        comes_back(&(100.0 * 1.005));
        comes_back(&(17.85_f32 * 1.19));
        // Miri takes its time over each.
        for cents in (1..20_000_u32).step_by(if cfg!(miri) { 997 } else { 1 }) {
            comes_back(&(f64::from(cents) / 100.0 * 1.19));
        }
    }

    // S01, S04
    #[test]
    fn what_json_would_change_is_refused() {
        #[derive(Serialize)]
        struct Unit;
        #[derive(Serialize)]
        #[expect(clippy::option_option, reason = "what JSON can not tell apart")]
        struct Deep {
            list: Vec<Option<Option<u8>>>,
        }
        let refused = [
            Json::encode(&Some(None::<u8>)),
            Json::encode(&Some(())),
            Json::encode(&Some(Unit)),
            Json::encode(&f64::NAN),
            Json::encode(&f32::INFINITY),
            Json::encode(&Some(f64::NAN)),
            Json::encode(&Deep {
                list: vec![None, Some(None)],
            }),
        ];
        for result in refused {
            assert!(matches!(result, Err(CodecError::Lossy(_))), "{result:?}");
        }
    }

    #[test]
    fn what_can_not_be_written_is_an_error() {
        let result = Json::encode(&BTreeMap::from([((1, 2), 3)]));
        assert!(matches!(result, Err(CodecError::Encode(_))), "{result:?}");
    }

    // S08
    #[test]
    fn a_type_that_grew_a_required_field_is_a_decode_error() {
        #[derive(Debug, Deserialize)]
        struct Grown {
            #[expect(dead_code, reason = "only its absence is tested")]
            added: u32,
        }
        let bytes = Json::encode(&BTreeMap::from([("old", 1)])).unwrap();
        let error = Json::decode::<Grown>(&bytes).unwrap_err();
        assert!(error.to_string().contains("added"), "{error}");
    }
}
