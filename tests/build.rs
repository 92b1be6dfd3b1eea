//! Puts `mutants/wire/sqlite.c` between sqlx and SQLite, in the test programs only.

use std::env;

const SHIM: &str = "mutants/wire/sqlite.c";

/// What sqlx hands statements to.
const WRAPPED: [&str; 2] = ["sqlite3_prepare_v3", "sqlite3_exec"];

fn main() {
    println!("cargo::rerun-if-changed={SHIM}");
    // Other linkers have other words for it.
    if env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return;
    }
    // Objects, not a library: of one, a linker may take too little.
    let objects = cc::Build::new().file(SHIM).compile_intermediates();
    for object in objects {
        println!("cargo::rustc-link-arg-tests={}", object.display());
    }
    for name in WRAPPED {
        println!("cargo::rustc-link-arg-tests=-Wl,--wrap={name}");
    }
}
