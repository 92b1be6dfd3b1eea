//! The key's text form: a path `request.order_no`, or a template of paths.

#[cfg(test)]
mod fuzzing;
mod path;
mod template;
#[cfg(test)]
mod tests;

pub(crate) use path::{Path, Step, snake_case, unknown_root};
pub(crate) use template::{Piece, Template};
