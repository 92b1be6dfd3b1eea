//! What the grammar keeps, whatever it reads.
//!
//! A macro's crate can export no functions: the targets in `fuzz/` read this file, and the grammar,
//! by their paths.

use std::cell::RefCell;
use std::collections::BTreeSet;

use idem_core::__private::KeyBuilder;
use idem_core::Key;

use super::{Path, Piece, Step, Template};

pub(crate) type ReadPath = fn(&str) -> Result<Path, String>;
pub(crate) type ReadTemplate = fn(&str) -> Result<Template, String>;

/// A path that is read says all that was written, in names that rustc takes.
pub(crate) fn check_path(read: ReadPath, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let Ok(path) = read(&text) else { return };
    let printed = print(&path);
    let again = read(&printed);
    let same = again.is_ok_and(|again| (again.root, again.steps) == (path.root, path.steps));
    assert!(same, "{printed} is not read as {text}");
    assert_eq!(path.text, text.trim(), "another text is kept");
    assert_eq!(
        shortest(&printed),
        shortest(text.trim()),
        "{text} says more"
    );
}

/// Without what may be left out: `r#` before a name, and zeros before a number.
fn shortest(path: &str) -> String {
    let mut shortest = String::new();
    let mut rest = path;
    while let Some(c) = rest.chars().next() {
        let starts = shortest.ends_with(['.', '[']) || shortest.is_empty();
        let is_padded =
            rest.starts_with('0') && rest[1..].starts_with(|c: char| c.is_ascii_digit());
        if rest.starts_with("[\"") {
            let end = rest[2..].find('"').map_or(rest.len(), |end| end + 3);
            shortest.push_str(&rest[..end]);
            rest = &rest[end..];
        } else if starts && rest.starts_with("r#") {
            rest = &rest[2..];
        } else if starts && is_padded {
            rest = &rest[1..];
        } else {
            shortest.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    shortest
}

fn print(path: &Path) -> String {
    let steps: String = path.steps.iter().map(print_step).collect();
    format!("{}{steps}", path.root)
}

fn print_step(step: &Step) -> String {
    match step {
        Step::Field(name) => format!(".{}", identifier(name)),
        Step::Element(at) => format!(".{at}"),
        Step::Call(name) => format!(".{}()", identifier(name)),
        Step::At(at) => format!("[{at}]"),
        Step::Entry(name) => format!("[\"{name}\"]"),
        Step::Try => "?".to_owned(),
    }
}

/// The name, which can be made an identifier: to make one of another text is a panic.
fn identifier(name: &str) -> &str {
    let is_one = |text: &str| syn::parse_str::<syn::Ident>(text).is_ok();
    let is_name = is_one(name) || is_one(&format!("r#{name}"));
    assert!(is_name, "{name:?} is no name");
    name
}

/// A template that is read says what was written, and gives different values different keys.
///
/// The bytes are text, in lines: the template, then the values of two requests.
pub(crate) fn check_template(read: ReadTemplate, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let mut lines = text.split('\n');
    let text = lines.next().unwrap_or_default();
    let Ok(template) = read(text) else { return };
    let written: String = template.pieces.iter().map(print_piece).collect();
    let again = read(&written);
    assert!(
        again.as_ref() == Ok(&template),
        "{written} is not read as {text}"
    );

    let is_value = |piece: &&Piece| matches!(piece, Piece::Path(_));
    let values = template.pieces.iter().filter(is_value).count();
    let one: Vec<&str> = lines.by_ref().take(values).collect();
    let other: Vec<&str> = lines.take(values).collect();
    if other.len() < values {
        return;
    }
    if let (Some(a), Some(b)) = (fill(&template, &one), fill(&template, &other)) {
        assert_eq!(one == other, a == b, "shared or not: {a} and {b}");
    }
}

fn print_piece(piece: &Piece) -> String {
    match piece {
        Piece::Literal(text) => text.replace('{', "{{").replace('}', "}}"),
        Piece::Path(path) => format!("{{{}}}", path.text),
    }
}

/// The key as the macro's code builds it; none if a value is missing.
fn fill(template: &Template, values: &[&str]) -> Option<Key> {
    let mut values = values.iter();
    let mut key = KeyBuilder::new("p", kept(&template.punctuation));
    for piece in &template.pieces {
        match piece {
            Piece::Literal(text) => key.literal(text),
            Piece::Path(_) => key.part("value", *values.next()?),
        }
    }
    key.finish().ok()
}

/// A text that lives as long as what the macro writes into a program; each is kept once.
fn kept(text: &str) -> &'static str {
    thread_local!(static KEPT: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) });
    KEPT.with_borrow_mut(|kept| {
        let known = kept.get(text).copied();
        known.unwrap_or_else(|| {
            let text = String::leak(text.to_owned());
            kept.insert(text);
            text
        })
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use idem_core::fuzzing::Campaign;

    use super::{Path, Piece, ReadPath, ReadTemplate, Step, Template, check_path, check_template};

    fn campaign(target: &str) -> Campaign {
        let corpus = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus"));
        Campaign::over(&corpus.join(target), 20_000).unwrap()
    }

    fn finds_in_paths(broken: ReadPath, about: &str) -> bool {
        campaign("path").finds(about, |bytes| check_path(broken, bytes))
    }

    fn finds_in_templates(broken: ReadTemplate, about: &str) -> bool {
        campaign("template").finds(about, |bytes| check_template(broken, bytes))
    }

    #[test]
    fn every_path_that_is_read_says_all_that_was_written() {
        campaign("path").run(|bytes| check_path(Path::parse, bytes));
    }

    #[test]
    fn every_template_that_is_read_parts_different_values() {
        campaign("template").run(|bytes| check_template(Template::parse, bytes));
    }

    #[test]
    fn a_path_that_overlooks_a_question_mark_is_found() {
        let broken = |text: &str| {
            let mut path = Path::parse(text)?;
            path.steps.retain(|step| *step != Step::Try);
            Ok(path)
        };
        assert!(finds_in_paths(broken, "says more"));
    }

    #[test]
    fn a_path_that_forgets_one_question_mark_each_time_is_found() {
        let broken = |text: &str| {
            let mut path = Path::parse(text)?;
            let last = path.steps.iter().rposition(|step| *step == Step::Try);
            last.map(|last| path.steps.remove(last));
            Ok(path)
        };
        assert!(finds_in_paths(broken, "is not read as"));
    }

    #[test]
    fn a_path_that_keeps_the_blanks_around_it_is_found() {
        let broken = |text: &str| {
            let mut path = Path::parse(text)?;
            path.text = text.to_owned();
            Ok(path)
        };
        assert!(finds_in_paths(broken, "another text is kept"));
    }

    #[test]
    fn a_path_with_a_name_that_rustc_refuses_is_found() {
        let broken = |text: &str| {
            let mut path = Path::parse(&text.replace("._", ".underscore"))?;
            path.steps.iter_mut().for_each(|step| {
                if let Step::Field(name) = step {
                    *name = name.replace("underscore", "_");
                }
            });
            Ok(path)
        };
        assert!(finds_in_paths(broken, "is no name"));
    }

    #[test]
    fn a_template_that_loses_the_first_of_its_letters_each_time_is_found() {
        let broken = |text: &str| {
            let mut template = Template::parse(text)?;
            template.pieces.iter_mut().for_each(|piece| {
                if let Piece::Literal(text) = piece {
                    *text = text.chars().skip(1).collect();
                }
            });
            Ok(template)
        };
        assert!(finds_in_templates(broken, "is not read as"));
    }

    #[test]
    fn a_template_with_only_letters_between_its_values_is_found() {
        let broken = |text: &str| {
            let mut template = Template::parse(&text.replace("}x{", "}-{"))?;
            template.pieces.iter_mut().for_each(|piece| {
                if let Piece::Literal(text) = piece {
                    *text = text.replace('-', "x");
                }
            });
            Ok(template)
        };
        assert!(finds_in_templates(broken, "shared or not"));
    }

    #[test]
    fn a_template_that_forgets_its_punctuation_is_found() {
        let broken = |text: &str| {
            let mut template = Template::parse(text)?;
            template.punctuation.clear();
            Ok(template)
        };
        assert!(finds_in_templates(broken, "shared or not"));
    }
}
