//! Which names some statements use, as far as tokens tell.

use std::collections::HashSet;

use proc_macro2::{TokenStream, TokenTree};

/// Each name that does not stand after a dot.
pub(super) fn outside_members(tokens: &TokenStream) -> HashSet<String> {
    let mut names = HashSet::new();
    collect(tokens.clone(), &mut names);
    names
}

/// Whether they are what `#[idempotent]` on the same function has made of them; one on a function
/// within is still to be expanded.
pub(super) fn are_guarded(tokens: &TokenStream) -> bool {
    outside_members(tokens).contains("__IDEM_SITE")
}

fn collect(tokens: TokenStream, names: &mut HashSet<String>) {
    let mut after_dot = false;
    for token in tokens {
        match &token {
            TokenTree::Ident(name) if !after_dot => {
                names.insert(name.to_string());
            }
            TokenTree::Group(group) => collect(group.stream(), names),
            _ => {}
        }
        after_dot = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == '.');
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::outside_members;

    #[test]
    fn members_are_no_names() {
        let names = outside_members(&quote!({
            request.id.push(amount);
            f!("{x}", self.y)
        }));
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort();
        assert_eq!(names, ["amount", "f", "request", "self"]);
    }
}
