//! How much is run: what fits into an ordinary check, or a campaign where `IDEM_LONG` is set; and
//! where a campaign leaves its figures.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;

/// Whether there is time for everything.
#[must_use]
pub fn is_long() -> bool {
    std::env::var_os("IDEM_LONG").is_some()
}

/// The length of a random history that usually has `few` operations.
#[must_use]
pub fn operations(few: usize) -> usize {
    if is_long() { 1_000_000 } else { few }
}

/// Prints a figure of `campaign`. Where `IDEM_REPORT` names a folder, the line is also the next one
/// of the file of that name in it, from which `./test --long` puts its report together.
///
/// # Panics
/// If that file can not be written: a campaign without its figures was for nothing.
pub fn report(campaign: &str, line: impl std::fmt::Display) {
    println!("{campaign}: {line}");
    if let Some(folder) = std::env::var_os("IDEM_REPORT") {
        append(Path::new(&folder), campaign, &format!("{line}\n"));
    }
}

/// In one write, since several suites may do so at once.
fn append(folder: &Path, campaign: &str, line: &str) {
    let path = folder.join(campaign);
    let file = OpenOptions::new().create(true).append(true).open(&path);
    let written = file.and_then(|mut file| file.write_all(line.as_bytes()));
    assert!(written.is_ok(), "{}: {written:?}", path.display());
}
