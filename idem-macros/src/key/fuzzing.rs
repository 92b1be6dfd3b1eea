//! What the grammar keeps, whatever it reads.
//!
//! A macro's crate can export no functions: the targets in `fuzz/` read this file, and the grammar,
//! by their paths.

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
    assert_eq!(path.text, text.trim());
    let was_longer = path.text.contains("r#") || path.text.contains('0');
    assert!(printed == path.text || was_longer, "{printed} for {text}");
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
    assert!(is_one(name) || is_one(&format!("r#{name}")), "{name:?}");
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
    assert_eq!(read(&written).as_ref(), Ok(&template), "{written}");

    let is_value = |piece: &&Piece| matches!(piece, Piece::Path(_));
    let values = template.pieces.iter().filter(is_value).count();
    let one: Vec<&str> = lines.by_ref().take(values).collect();
    let other: Vec<&str> = lines.take(values).collect();
    if other.len() < values {
        return;
    }
    if let (Some(a), Some(b)) = (fill(&template, &one), fill(&template, &other)) {
        assert_eq!(one == other, a == b, "{one:?} and {other:?} in {text}");
    }
}

fn print_piece(piece: &Piece) -> String {
    match piece {
        Piece::Literal(text) => text.replace('{', "{{").replace('}', "}}"),
        Piece::Path(path) => format!("{{{}}}", path.text),
    }
}

/// The key's parts; none if a value is missing, or so long that it would be hashed.
fn fill(template: &Template, values: &[&str]) -> Option<String> {
    let mut values = values.iter();
    let pieces = template.pieces.iter().map(|piece| match piece {
        Piece::Literal(text) => Some(text.clone()),
        Piece::Path(_) => escape(values.next()?, &template.punctuation),
    });
    pieces.collect()
}

fn escape(value: &str, punctuation: &str) -> Option<String> {
    let key = Key::new("p", value).ok()?;
    let part = key.as_str().strip_prefix("p::")?;
    let escaped = |c: char| {
        if punctuation.contains(c) {
            c.encode_utf8(&mut [0; 4]).bytes().map(code).collect()
        } else {
            c.to_string()
        }
    };
    (!part.contains('~')).then(|| part.chars().map(escaped).collect())
}

fn code(byte: u8) -> String {
    format!("%{byte:02X}")
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::PathBuf;

    use idem_core::fuzzing::Campaign;

    use super::{Path, Piece, Step, Template, check_path, check_template};

    fn run(target: &str, property: impl Fn(&[u8])) {
        let corpus = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../fuzz/corpus"));
        let campaign = Campaign::over(&corpus.join(target), 20_000).unwrap();
        campaign.run(property);
    }

    /// Whether a campaign finds the mistake in a reader.
    fn finds(target: &str, property: impl Fn(&[u8])) -> bool {
        catch_unwind(AssertUnwindSafe(|| run(target, property))).is_err()
    }

    #[test]
    fn every_path_that_is_read_says_all_that_was_written() {
        run("path", |bytes| check_path(Path::parse, bytes));
    }

    #[test]
    fn every_template_that_is_read_parts_different_values() {
        run("template", |bytes| check_template(Template::parse, bytes));
    }

    #[test]
    fn a_path_that_overlooks_a_question_mark_is_found() {
        let broken = |text: &str| {
            let mut path = Path::parse(text)?;
            path.steps.retain(|step| *step != Step::Try);
            Ok(path)
        };
        assert!(finds("path", |bytes| check_path(broken, bytes)));
    }

    #[test]
    fn a_template_whose_values_touch_is_found() {
        let broken = |text: &str| {
            let mut template = Template::parse(&text.replace("}{", "}\u{1}{"))
                .or_else(|_| Template::parse(&text.replace("}{", "}:{")))?;
            template.pieces.retain(|piece| match piece {
                Piece::Literal(text) => text != ":",
                Piece::Path(_) => true,
            });
            Ok(template)
        };
        assert!(finds("template", |bytes| check_template(broken, bytes)));
    }

    #[test]
    fn a_template_that_forgets_its_punctuation_is_found() {
        let broken = |text: &str| {
            let mut template = Template::parse(text)?;
            template.punctuation.clear();
            Ok(template)
        };
        assert!(finds("template", |bytes| check_template(broken, bytes)));
    }
}
