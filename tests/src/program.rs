//! Finding the programs that the suites start.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};

/// Where Debian keeps daemons; not in everybody's PATH.
const DAEMONS: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// The path of `name`: from the environment variable `over` if it is set, else from PATH.
///
/// # Errors
/// When there is none; the error names the Debian `package` that brings it.
pub fn find(name: &str, over: &str, package: &str) -> Result<PathBuf> {
    if let Some(path) = env::var_os(over).map(PathBuf::from) {
        if path.is_file() {
            return Ok(path);
        }
        bail!("{over} names {}, which is no file", path.display());
    }
    on_path(name).ok_or_else(|| {
        anyhow!(
            "`{name}` is not installed: run `apt-get install {package}`, or set {over} to its path"
        )
    })
}

pub(crate) fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(DAEMONS.iter().map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

pub(crate) fn redis_server() -> Result<PathBuf> {
    find("redis-server", "REDIS_SERVER", "redis-server")
}

pub(crate) fn redis_cli() -> Result<PathBuf> {
    find("redis-cli", "REDIS_CLI", "redis-tools")
}

pub(crate) fn openssl() -> Result<PathBuf> {
    find("openssl", "OPENSSL", "openssl")
}

/// Runs a program in `folder` to its end and gives what it printed.
pub(crate) fn output(program: &Path, folder: &Path, arguments: &[&str]) -> Result<String> {
    let done = std::process::Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .output()?;
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    if done.status.success() {
        return Ok(text);
    }
    let complaint = String::from_utf8_lossy(&done.stderr);
    bail!(
        "{} {arguments:?}: {}\n{text}{complaint}",
        program.display(),
        done.status
    )
}
