//! One-time tokens: that of a number lies in a file beside the ledger, for all who are to call.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use idem_core::{Token, Tokens};

use super::lease::Engine;

/// Whose they are.
pub(super) const SUBJECT: &str = "alice";
/// Longer than all kills of a campaign take.
const TTL: Duration = Duration::from_hours(24);

pub(super) fn tokens(engine: &Engine) -> Tokens {
    engine.idem().tokens("mortal:form")
}

pub(super) fn token(ledger: &Path, number: i64) -> Result<Token> {
    Ok(fs::read_to_string(file(ledger, number))?.into())
}

/// Issues the token of a number.
pub async fn issue(engine: &Engine, ledger: &Path, number: i64) -> Result<()> {
    let token = tokens(engine).issue(SUBJECT, TTL).await?;
    Ok(fs::write(file(ledger, number), token.as_str())?)
}

/// Somebody else uses the token of a number.
pub async fn steal(engine: &Engine, ledger: &Path, number: i64) -> Result<()> {
    let token = token(ledger, number)?;
    Ok(tokens(engine).consume(&token, "mallory").await?)
}

fn file(ledger: &Path, number: i64) -> PathBuf {
    ledger.with_extension(number.to_string())
}
