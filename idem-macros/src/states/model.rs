//! The states and their successors, checked.

use proc_macro2::Ident;
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Fields, Generics, Path, Variant};

use super::options::{self, Options};
use crate::mistakes::{Mistakes, list, nearest};

pub(super) struct Model<'a> {
    pub(super) ident: &'a Ident,
    pub(super) generics: &'a Generics,
    pub(super) krate: Path,
    pub(super) states: Vec<State<'a>>,
}

pub(super) struct State<'a> {
    pub(super) ident: &'a Ident,
    pub(super) code: i16,
    pub(super) name: String,
    /// As written, each with its span.
    pub(super) to: Vec<Ident>,
}

impl<'a> Model<'a> {
    pub(super) fn new(input: &'a DeriveInput) -> syn::Result<Self> {
        let Data::Enum(data) = &input.data else {
            return Err(syn::Error::new(
                input.ident.span(),
                "only an enum has states: one variant each",
            ));
        };
        let mut mistakes = Mistakes::default();
        if data.variants.is_empty() {
            mistakes.at(input.ident.span(), "an enum without variants has no states");
        }
        let krate = options::krate(&input.attrs, &mut mistakes);
        let mut read = Vec::new();
        for variant in &data.variants {
            unit(variant, &mut mistakes);
            let options = Options::parse(&variant.attrs, &mut mistakes);
            read.push((&variant.ident, options));
        }
        codes_are_there_and_differ(&read, &mut mistakes);
        targets_are_states_and_differ(&read, &mut mistakes);
        let states = read.into_iter().filter_map(state).collect();
        mistakes.finish(Some(Self {
            ident: &input.ident,
            generics: &input.generics,
            krate,
            states,
        }))
    }
}

/// `None` stands for a mistake that was noted.
fn state((ident, options): (&Ident, Options)) -> Option<State<'_>> {
    Some(State {
        ident,
        code: options.code?.value,
        name: match options.name {
            Some(name) => name.value(),
            None => ident.unraw().to_string(),
        },
        to: options.to.unwrap_or_default(),
    })
}

fn unit(variant: &Variant, mistakes: &mut Mistakes) {
    if !matches!(variant.fields, Fields::Unit) {
        mistakes.at(
            variant.ident.span(),
            "a state has no data: it is kept as its code alone",
        );
    }
}

fn codes_are_there_and_differ(read: &[(&Ident, Options)], mistakes: &mut Mistakes) {
    let mut seen: Vec<(i16, &Ident)> = Vec::new();
    for (ident, options) in read {
        match &options.code {
            Some(code) => match seen.iter().find(|(value, _)| *value == code.value) {
                Some((value, first)) => mistakes.at(
                    code.span,
                    format!("the code {value} is already that of `{first}`"),
                ),
                None => seen.push((code.value, ident)),
            },
            None if options.is_code_given => {}
            None => mistakes.at(
                ident.span(),
                format!(
                    "`{ident}` has no code; say by which number it is kept: #[state(code = 1)]"
                ),
            ),
        }
    }
}

fn targets_are_states_and_differ(read: &[(&Ident, Options)], mistakes: &mut Mistakes) {
    for (_, options) in read {
        let to = options.to.as_deref().unwrap_or_default();
        for (at, target) in to.iter().enumerate() {
            if !read.iter().any(|(ident, _)| *ident == target) {
                mistakes.at(target.span(), unknown(target, read));
            } else if to[..at].contains(target) {
                mistakes.at(target.span(), format!("`{target}` is named twice"));
            }
        }
    }
}

fn unknown(target: &Ident, read: &[(&Ident, Options)]) -> String {
    let names: Vec<String> = read.iter().map(|(ident, _)| ident.to_string()).collect();
    let names = || names.iter().map(String::as_str);
    let proposal = nearest(&target.to_string(), names())
        .map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default();
    let all = list(names());
    if proposal.is_empty() {
        return format!("there is no state `{target}`; the states are {all}");
    }
    format!("there is no state `{target}`{proposal} The states are {all}")
}
