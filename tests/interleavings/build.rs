//! Writes the files under test, as they are and once for each mistake, as modules of this crate.

#[path = "src/mistakes.rs"]
mod mistakes;

use std::path::{Path, PathBuf};
use std::{env, fs, io};

use mistakes::{MISTAKES, Mistake};

/// What is under test: the module, and its file in `idem-core/src`.
const FILES: [(&str, &str); 4] = [
    ("alarms", "driver/alarms.rs"),
    ("appointments", "engine/heartbeat/appointments.rs"),
    ("board", "engine/wait/board.rs"),
    ("signal", "engine/signal.rs"),
];

const AS_IT_IS: &str = "as_it_is";

fn main() -> io::Result<()> {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let source = here.join("../../idem-core/src");
    let out = PathBuf::from(variable("OUT_DIR")?);
    let (mut modules, mut scenes) = (Vec::new(), Vec::new());
    for (module, file) in FILES {
        let path = source.join(file);
        println!("cargo::rerun-if-changed={}", path.display());
        let scene = here.join(format!("src/scenes/{module}.rs"));
        for (name, text) in versions(module, &fs::read_to_string(&path)?)? {
            let file = out.join(format!("{module}_{name}.rs"));
            fs::write(&file, text)?;
            modules.push(variant(module, name, &file, &scene));
            let is_right = name == AS_IT_IS;
            scenes.push(format!(
                "({module:?}, {name:?}, {is_right}, {module}_{name}::scene),\n"
            ));
        }
    }
    let (modules, scenes) = (modules.concat(), scenes.concat());
    let list =
        format!("{modules}\n/// All of them.\npub const SCENES: &[Scene] = &[\n{scenes}];\n");
    fs::write(out.join("variants.rs"), list)
}

/// The file as it is, and with each mistake.
fn versions(module: &str, text: &str) -> io::Result<Vec<(&'static str, String)>> {
    let mut versions = vec![(AS_IT_IS, text.to_owned())];
    for mistake in MISTAKES.iter().filter(|mistake| mistake.module == module) {
        versions.push((mistake.name, make(mistake, text)?));
    }
    Ok(versions)
}

fn make(mistake: &Mistake, text: &str) -> io::Result<String> {
    if text.matches(mistake.instead_of).count() != 1 {
        let name = mistake.name;
        return Err(io::Error::other(format!(
            "{name}: what to replace is not there once"
        )));
    }
    Ok(text.replace(mistake.instead_of, mistake.write))
}

/// A module with one version of a file, and the scene that it has to stand.
fn variant(module: &str, name: &str, file: &Path, scene: &Path) -> String {
    let (file, scene) = (file.display(), scene.display());
    format!(
        "mod {module}_{name} {{
            #[path = r\"{file}\"]
            #[allow(unused, dropping_copy_types, clippy::all, clippy::pedantic, reason = \"\
                not all of it is in the scene, and a mistake is a mistake\")]
            mod {module};
            #[path = r\"{scene}\"]
            mod scene;
            pub(crate) use scene::scene;
        }}\n"
    )
}

fn variable(name: &str) -> io::Result<String> {
    env::var(name).map_err(io::Error::other)
}
