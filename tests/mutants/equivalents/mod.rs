//! Mutants that do what the original does, for anybody who could tell.

mod scripts;
mod statements;

pub(crate) use scripts::SCRIPTS;
pub(crate) use statements::STATEMENTS;
