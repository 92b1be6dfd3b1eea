//! Mutants of the scripts.

use crate::mutant::{Edit, Mutant};
use crate::pattern::{Change, numbers, places, swaps};

macro_rules! scripts {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../lua/", $name)))),*]
    };
}

const SCRIPTS: [(&str, &str); 10] = scripts![
    "record.lua",
    "expiry.lua",
    "claim.lua",
    "renew.lua",
    "settle.lua",
    "issue.lua",
    "refuse.lua",
    "resolve.lua",
    "forget.lua",
    "peek.lua",
];

const SWAPS: [(&str, &str, &str); 12] = [
    ("bound", " < ", " <= "),
    ("bound", " <= ", " < "),
    ("bound", " > ", " >= "),
    ("bound", " >= ", " > "),
    ("opposite", " == ", " ~= "),
    ("opposite", " ~= ", " == "),
    ("sign", " + ", " - "),
    ("sign", " - ", " + "),
    ("junction", " and ", " or "),
    ("junction", " or ", " and "),
    ("extreme", "math.max", "math.min"),
    ("rounding", "math.ceil", "math.floor"),
];

/// All of them, in the order of the files.
pub(crate) fn mutants() -> Vec<Mutant> {
    let of_file = |(file, text): (&'static str, &str)| {
        let codes = codes(text);
        let lines = text.lines().enumerate();
        lines
            .flat_map(|(index, line)| {
                let next = text.lines().nth(index + 1).unwrap_or_default();
                let changes = changes(line, next, &codes);
                let mutant = |change: Change| mutant(file, text, index, &change);
                changes.into_iter().map(mutant).collect::<Vec<_>>()
            })
            .collect::<Vec<_>>()
    };
    SCRIPTS.into_iter().flat_map(of_file).collect()
}

fn mutant(file: &'static str, text: &str, index: usize, change: &Change) -> Mutant {
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    let before = lines[index].clone();
    let after = change.of(&before);
    lines[index].clone_from(&after);
    Mutant {
        file,
        line: index + 1,
        column: change.range.start + 1,
        operator: change.operator,
        before: before.trim().to_owned(),
        after: after.trim().to_owned(),
        edit: Edit {
            from: text.to_owned(),
            to: lines.join("\n") + "\n",
        },
    }
}

fn changes(line: &str, next: &str, codes: &[&str]) -> Vec<Change> {
    let code = without_texts(line);
    let mut changes = swaps(&code, &SWAPS);
    changes.extend(numbers(&code));
    changes.extend(guards(&code));
    changes.extend(dropped(&code, next));
    changes.extend(without_expiry(line));
    changes.extend(other_code(line, codes));
    changes
}

/// The line with everything that is no code blanked out, so that places in it stay the same.
fn without_texts(line: &str) -> String {
    let mut is_text = false;
    let mut code = String::with_capacity(line.len());
    let commented = line.find("--").unwrap_or(line.len());
    for c in line[..commented].chars() {
        is_text ^= c == '\'';
        let shown = if is_text || c == '\'' { '\'' } else { c };
        code.extend(std::iter::repeat_n(shown, c.len_utf8()));
    }
    code
}

/// A condition that never holds, and one that always does.
fn guards(code: &str) -> Vec<Change> {
    let Some(begin) = places(code, "if ").first().map(|range| range.end) else {
        return Vec::new();
    };
    let Some(end) = places(code, " then").first().map(|range| range.start) else {
        return Vec::new();
    };
    vec![
        Change::new("never", begin..end, "false"),
        Change::new("always", begin..end, "true"),
    ]
}

/// A line that only assigns, or only writes, left out. A declaration stays: without it the script
/// would not run at all.
fn dropped(code: &str, next: &str) -> Option<Change> {
    let begin = code.len() - code.trim_start().len();
    let words = &code[begin..];
    let is_whole = code.matches('(').count() == code.matches(')').count()
        && !next.trim_start().starts_with("..");
    let is_assignment = words.contains(" = ")
        && !["local ", "if ", "elseif ", "until "]
            .iter()
            .any(|word| words.starts_with(word));
    let is_call = words.starts_with("redis.call(") || words.starts_with("redis.pcall(");
    let range = begin..code.len();
    match (is_whole, is_assignment, is_call) {
        (true, true, _) => Some(Change::new("unassigned", range, "")),
        (true, _, true) => Some(Change::new("uncalled", range, "")),
        _ => None,
    }
}

/// A key that stays for ever.
fn without_expiry(line: &str) -> Option<Change> {
    let begin = line.find(", 'PXAT'")?;
    Some(Change::new("for-ever", begin..line.len() - 1, ""))
}

/// The kinds of reply of a file, as they stand in it.
fn codes(text: &str) -> Vec<&str> {
    let mut codes = Vec::new();
    let each = text.lines().flat_map(replies_of).map(|(_, code)| code);
    for code in each {
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    codes
}

/// One kind of reply instead of another.
fn other_code(line: &str, codes: &[&str]) -> Vec<Change> {
    let each = replies_of(line).into_iter().filter_map(|(at, code)| {
        let index = codes.iter().position(|known| *known == code)?;
        let other = codes[(index + 1) % codes.len()];
        (other != code).then(|| Change::new("other-reply", at..at + code.len(), other))
    });
    each.collect()
}

/// Quoted single letters on a line that answers.
fn replies_of(line: &str) -> Vec<(usize, &str)> {
    if !line.trim_start().starts_with("return ") {
        return Vec::new();
    }
    let is_letter = |text: &str| {
        let bytes = text.as_bytes();
        bytes.len() == 3 && bytes[1].is_ascii_alphabetic() && bytes[0] == b'\'' && bytes[2] == b'\''
    };
    let at = |at| Some((at, line.get(at..at + 3)?));
    (0..line.len())
        .filter_map(at)
        .filter(|(_, text)| is_letter(text))
        .collect()
}
