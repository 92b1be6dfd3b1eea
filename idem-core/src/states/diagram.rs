//! States as a Mermaid diagram.

use std::fmt::Write;

use super::States;

pub(super) fn draw<S: States>() -> String {
    let declared = S::ALL.iter().map(|state| {
        let (name, id) = (label(state.name()), id(*state));
        format!("state \"{name}\" as {id}")
    });
    let begins = S::ALL.iter().filter(|state| is_beginning(**state));
    let begins = begins.map(|state| format!("[*] --> {}", id(*state)));
    let goes_on = S::ALL.iter().flat_map(|state| arrows(*state));
    let lines = declared.chain(begins).chain(goes_on);
    let mut diagram = String::from("stateDiagram-v2\n");
    for line in lines {
        diagram.push_str("    ");
        diagram.push_str(&line);
        diagram.push('\n');
    }
    diagram
}

fn is_beginning<S: States>(state: S) -> bool {
    let mut others = S::ALL.iter().filter(|other| **other != state);
    !others.any(|other| other.can_become(state))
}

fn arrows<S: States>(from: S) -> Vec<String> {
    let from_id = id(from);
    if from.successors().is_empty() {
        return vec![format!("{from_id} --> [*]")];
    }
    let to = from.successors().iter();
    to.map(|to| format!("{from_id} --> {}", id(*to))).collect()
}

/// Codes are unique, and stay when a state is renamed.
fn id<S: States>(state: S) -> String {
    format!("s{}", state.code()).replace('-', "_")
}

/// Letters of any script stay as they are; what Mermaid or a browser could take for syntax is
/// written as Mermaid's own entity, `#34;`.
fn label(name: &str) -> String {
    let mut label = String::with_capacity(name.len());
    for char in name.chars() {
        match char {
            _ if char.is_control() || char.is_whitespace() => label.push(' '),
            '-' | '_' | '.' | ',' | '/' | '(' | ')' | '!' | '?' | '+' | '\'' => label.push(char),
            _ if char.is_ascii_punctuation() => {
                // Writing to a string can not fail.
                let _ = write!(label, "#{};", u32::from(char));
            }
            _ => label.push(char),
        }
    }
    label
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Light {
        Off,
        On,
    }

    impl States for Light {
        const ALL: &'static [Self] = &[Self::Off, Self::On];

        fn code(self) -> i16 {
            match self {
                Self::Off => -1,
                Self::On => 1,
            }
        }

        fn from_code(code: i16) -> Option<Self> {
            Self::ALL.iter().copied().find(|light| light.code() == code)
        }

        fn name(self) -> &'static str {
            match self {
                Self::Off => "a \"quoted\"\n%%{init: x}%% <b>",
                Self::On => "मुद्रित (заказ)",
            }
        }

        fn successors(self) -> &'static [Self] {
            match self {
                Self::Off => &[Self::On],
                Self::On => &[Self::On, Self::Off],
            }
        }
    }

    #[test]
    fn letters_of_any_script_stay_and_syntax_does_not() {
        let diagram = Light::diagram();
        let expected = "stateDiagram-v2
    state \"a #34;quoted#34; #37;#37;#123;init#58; x#125;#37;#37; #60;b#62;\" as s_1
    state \"मुद्रित (заказ)\" as s1
    s_1 --> s1
    s1 --> s1
    s1 --> s_1
";
        assert_eq!(diagram, expected);
    }
}
