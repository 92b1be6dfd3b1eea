//! What may stand in a key.

use std::borrow::Cow;
use std::num::NonZero;
use std::rc::Rc;
use std::sync::Arc;

use super::KeyWriter;

/// A value that may stand in a key: it names something, and equal values always give equal text.
///
/// Integers, `bool`, `char`, strings, `[u8; N]` (lower-case hexadecimal), `Uuid` (feature `uuid`),
/// references, `Box`, `Rc`, `Arc`, `Cow`, tuples (one part for each element; nested tuples are
/// flattened) and `Option` (`None` is missing). Newtypes and enums without data derive it.
///
/// Floats, maps and lists are left out on purpose: two of them that mean the same often differ.
///
/// # Examples
/// A type that shows only some of its fields writes itself:
/// ```
/// use idem_core::{Key, KeyPart, KeyWriter};
///
/// struct Account { bank: u32, number: String, balance: i64 }
///
/// impl KeyPart for Account {
///     fn write(&self, out: &mut KeyWriter) {
///         (self.bank, &self.number).write(out);
///     }
/// }
///
/// let account = Account { bank: 7, number: "DE 02".into(), balance: 100 };
/// assert_eq!(Key::new("transfer", account)?.as_str(), "transfer::7:DE%2002");
/// # Ok::<(), idem_core::Error>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` can not be a part of a key",
    label = "this is no key part",
    note = "key parts are integers, `bool`, `char`, strings, `Uuid`, `[u8; N]`, tuples and options of them, and types with `#[derive(KeyPart)]`",
    note = "name the field that identifies the request, as in `key = \"request.order_no\"`"
)]
pub trait KeyPart {
    /// Writes this value as one part, or as several by calling `out` several times: **always as
    /// many**. With one part more or less by value, two tuples that differ can be one key. Where there
    /// is nothing to write, say [`missing`](KeyWriter::missing); writing none counts as that.
    fn write(&self, out: &mut KeyWriter);
}

macro_rules! by_display {
    ($($ty:ty)*) => {$(
        impl KeyPart for $ty {
            fn write(&self, out: &mut KeyWriter) {
                out.display(self);
            }
        }
    )*};
}

by_display!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize bool char);

macro_rules! by_display_non_zero {
    ($($ty:ty)*) => { by_display!($(NonZero<$ty>)*); };
}

by_display_non_zero!(i8 i16 i32 i64 i128 isize u8 u16 u32 u64 u128 usize);

#[cfg(feature = "uuid")]
by_display!(uuid::Uuid);

impl KeyPart for str {
    fn write(&self, out: &mut KeyWriter) {
        out.text(self);
    }
}

impl KeyPart for String {
    fn write(&self, out: &mut KeyWriter) {
        out.text(self);
    }
}

impl<const N: usize> KeyPart for [u8; N] {
    fn write(&self, out: &mut KeyWriter) {
        out.hex(self);
    }
}

impl<P: KeyPart> KeyPart for Option<P> {
    fn write(&self, out: &mut KeyWriter) {
        match self {
            Some(part) => part.write(out),
            None => out.missing(),
        }
    }
}

impl<P: KeyPart + ToOwned + ?Sized> KeyPart for Cow<'_, P> {
    fn write(&self, out: &mut KeyWriter) {
        P::write(self, out);
    }
}

macro_rules! by_target {
    ($($ty:ty)*) => {$(
        impl<P: KeyPart + ?Sized> KeyPart for $ty {
            fn write(&self, out: &mut KeyWriter) {
                P::write(self, out);
            }
        }
    )*};
}

by_target!(&P &mut P Box<P> Rc<P> Arc<P>);

macro_rules! by_element {
    ($($part:ident)+) => {
        impl<$($part: KeyPart),+> KeyPart for ($($part,)+) {
            // The type parameters' names serve for the elements.
            #[allow(non_snake_case)]
            fn write(&self, out: &mut KeyWriter) {
                let ($($part,)+) = self;
                $($part.write(out);)+
            }
        }
    };
}

by_element!(A);
by_element!(A B);
by_element!(A B C);
by_element!(A B C D);
by_element!(A B C D E);
by_element!(A B C D E F);
by_element!(A B C D E F G);
by_element!(A B C D E F G H);
by_element!(A B C D E F G H I);
by_element!(A B C D E F G H I J);
by_element!(A B C D E F G H I J K);
by_element!(A B C D E F G H I J K L);
