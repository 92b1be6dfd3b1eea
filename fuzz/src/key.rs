//! What `idem-macros/src/key.rs` is, for the files behind it.

#[path = "../../idem-macros/src/key/fuzzing.rs"]
pub(crate) mod fuzzing;
#[path = "../../idem-macros/src/key/path.rs"]
#[allow(dead_code, reason = "some is for the model of an attribute")]
mod path;
#[path = "../../idem-macros/src/key/template.rs"]
mod template;

pub(crate) use path::{Path, Step};
pub(crate) use template::{Piece, Template};
