//! Mistakes are collected, so that one build names them all, and come with a proposal.

use proc_macro2::Span;

/// The mistakes found so far.
#[derive(Default)]
pub(crate) struct Mistakes(Option<syn::Error>);

impl Mistakes {
    pub(crate) fn add(&mut self, mistake: syn::Error) {
        match &mut self.0 {
            Some(all) => all.combine(mistake),
            None => self.0 = Some(mistake),
        }
    }

    pub(crate) fn at(&mut self, span: Span, message: impl std::fmt::Display) {
        self.add(syn::Error::new(span, message));
    }

    /// The value, or `None` with its mistake noted.
    pub(crate) fn keep<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|mistake| self.add(mistake)).ok()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn finish<T>(self, value: Option<T>) -> syn::Result<T> {
        match (self.0, value) {
            (None, Some(value)) => Ok(value),
            (Some(mistakes), _) => Err(mistakes),
            // A stage that gives no value has noted why; this keeps the rule in one place.
            (None, None) => Err(syn::Error::new(
                Span::call_site(),
                "this attribute can not be read",
            )),
        }
    }
}

/// The candidate that was most likely meant.
pub(crate) fn nearest<'a>(
    written: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let written = written.to_lowercase();
    let close = (written.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(&written, &candidate.to_lowercase()), candidate))
        .filter(|&(distance, _)| distance <= close)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, candidate)| candidate)
}

/// Edits between two words, a swap of neighbours counted once.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = vec![(0..=b.len()).collect::<Vec<_>>()];
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let replaced = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replaced.min(rows[i - 1][j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            row.push(best);
        }
        rows.push(row);
    }
    rows[a.len()][b.len()]
}

/// "`a`, `b` and `c`".
pub(crate) fn list<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = words.into_iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        Some((only, _)) => only.clone(),
        None => String::from("none"),
    }
}

#[cfg(test)]
mod tests {
    use super::{distance, list, nearest};

    #[test]
    fn a_swap_of_neighbours_is_one_edit() {
        assert_eq!(distance("request", "reqeust"), 1);
        assert_eq!(distance("request", "reqest"), 1);
        assert_eq!(distance("", "abc"), 3);
    }

    #[test]
    fn only_a_near_word_is_proposed() {
        assert_eq!(nearest("reqest", ["gateway", "request"]), Some("request"));
        assert_eq!(nearest("order", ["gateway", "request"]), None);
    }

    #[test]
    fn words_are_listed_as_people_do() {
        assert_eq!(list(["a", "b", "c"]), "`a`, `b` and `c`");
        assert_eq!(list(["a"]), "`a`");
        assert_eq!(list([]), "none");
    }
}
