//! The macro's grammar, which the crate of a macro can not export: its files, read by their paths.
#![forbid(unsafe_code)]

mod key;
#[path = "../../idem-macros/src/mistakes.rs"]
#[allow(dead_code, reason = "the grammar needs two of its functions")]
mod mistakes;

/// As the target `path` is checked in the crate of the macro.
pub fn path(bytes: &[u8]) {
    key::fuzzing::check_path(key::Path::parse, bytes);
}

/// As the target `template` is checked in the crate of the macro.
pub fn template(bytes: &[u8]) {
    key::fuzzing::check_template(key::Template::parse, bytes);
}
