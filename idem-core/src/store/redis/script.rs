//! The steps that run inside the server, and how they are sent.

use ::redis::{Cmd, Script};
use once_cell::sync::Lazy;

use super::argv::Argv;

/// Which form of a step the server at the other end understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Redis 6.2: a script has no flags.
    Plain,
    /// Redis 7 and later: settling gets through when the server is out of memory.
    Flags,
}

/// One atomic step: a file in `lua/`, behind the reading of the record that all of them share.
pub(super) struct Step {
    plain: Script,
    /// `None` where the step asks for nothing that has to be flagged.
    flagged: Option<(Script, String)>,
    source: String,
}

const RECORD: &str = include_str!("../../../lua/record.lua");

/// The first line of a step that frees or finishes what is already there.
const ALLOW_OOM: &str = "#!lua flags=allow-oom\n";

impl Step {
    fn new(files: &[&str], allow_oom: bool) -> Self {
        let source = [RECORD, &files.concat()].concat();
        let flagged = allow_oom.then(|| {
            let source = [ALLOW_OOM, &source].concat();
            (Script::new(&source), source)
        });
        Self {
            plain: Script::new(&source),
            flagged,
            source,
        }
    }

    /// `EVALSHA` of this step, packed once.
    pub(super) fn by_hash(&self, dialect: Dialect, key: &str, argv: &Argv<'_>) -> Cmd {
        let (script, _) = self.form(dialect);
        command("EVALSHA", script.get_hash(), key, argv)
    }

    /// `EVAL` of this step, which also loads it.
    pub(super) fn by_source(&self, dialect: Dialect, key: &str, argv: &Argv<'_>) -> Cmd {
        let (_, source) = self.form(dialect);
        command("EVAL", source, key, argv)
    }

    fn form(&self, dialect: Dialect) -> (&Script, &str) {
        match (&self.flagged, dialect) {
            (Some((script, source)), Dialect::Flags) => (script, source),
            _ => (&self.plain, &self.source),
        }
    }
}

fn command(verb: &str, script: &str, key: &str, argv: &Argv<'_>) -> Cmd {
    let len = verb.len() + script.len() + "1".len() + key.len() + argv.len();
    let mut cmd = Cmd::with_capacity(4 + argv.iter().count(), len);
    cmd.arg(verb).arg(script).arg("1").arg(key);
    for arg in argv.iter() {
        cmd.arg(arg);
    }
    cmd
}

macro_rules! steps {
    ($($(#[$doc:meta])* $name:ident = [$($file:literal),*], allow_oom: $allow_oom:literal;)*) => {
        $(
            $(#[$doc])*
            pub(super) static $name: Lazy<Step> = Lazy::new(|| {
                Step::new(&[$(include_str!(concat!("../../../lua/", $file))),*], $allow_oom)
            });
        )*
    };
}

steps! {
    /// Out of memory is a reason not to begin anything.
    CLAIM = ["claim.lua"], allow_oom: false;
    RENEW = ["renew.lua"], allow_oom: true;
    SETTLE = ["settle.lua"], allow_oom: true;
    ISSUE = ["issue.lua"], allow_oom: false;
    REFUSE = ["refuse.lua"], allow_oom: false;
    RESOLVE = ["resolve.lua"], allow_oom: true;
    FORGET = ["expiry.lua", "forget.lua"], allow_oom: true;
    PEEK = ["expiry.lua", "peek.lua"], allow_oom: false;
}

#[cfg(test)]
mod tests {
    use super::*;

    // CASES R03
    #[test]
    fn a_step_touches_its_one_key_and_no_other() {
        for step in [
            &CLAIM, &RENEW, &SETTLE, &ISSUE, &REFUSE, &RESOLVE, &FORGET, &PEEK,
        ] {
            let source = &step.source;
            let code = source
                .lines()
                .filter(|line| !line.trim_start().starts_with("--"));
            let keys = code.filter(|line| line.contains("KEYS"));
            assert_eq!(keys.collect::<Vec<_>>(), ["local key = KEYS[1]"]);
            for call in source.split("call('").skip(1) {
                let (command, arguments) = call.split_once('\'').unwrap();
                let is_about_the_key = arguments.starts_with(", key");
                let is_about_none = matches!(command, "TIME" | "PUBLISH");
                assert!(is_about_the_key || is_about_none, "{command}{arguments}");
            }
        }
    }

    #[test]
    fn only_what_ends_or_keeps_an_attempt_gets_through_without_memory() {
        for step in [&RENEW, &SETTLE, &RESOLVE, &FORGET] {
            assert!(step.form(Dialect::Flags).1.starts_with(ALLOW_OOM));
            assert!(step.form(Dialect::Plain).1.starts_with("--"));
        }
        for step in [&CLAIM, &ISSUE, &REFUSE, &PEEK] {
            assert_eq!(step.form(Dialect::Flags).1, step.form(Dialect::Plain).1);
        }
    }
}
