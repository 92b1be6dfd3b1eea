//! The value of one option, and the forms in which options are written.

use proc_macro2::Ident;
use syn::{Expr, ExprLit, ExprPath, Lit, LitInt, LitStr};

use crate::duration::Millis;
use crate::mistakes::{list, nearest};

/// One option: its name and its value.
pub(crate) struct Given {
    pub(crate) name: Ident,
    pub(crate) value: Expr,
}

/// A length of time: known here, or a constant of the user's.
pub(crate) enum Time {
    Known(Millis),
    Const(Expr),
}

impl Given {
    pub(crate) fn error(&self, message: impl std::fmt::Display) -> syn::Error {
        syn::Error::new_spanned(&self.value, message)
    }

    pub(crate) fn literal(&self) -> Option<&Lit> {
        match &self.value {
            Expr::Lit(ExprLit { lit, .. }) => Some(lit),
            _ => None,
        }
    }

    pub(crate) fn string(&self) -> syn::Result<&LitStr> {
        match self.literal() {
            Some(Lit::Str(text)) => Ok(text),
            _ => Err(self.error(format!("`{}` is a string literal", self.name))),
        }
    }

    pub(crate) fn flag(&self) -> syn::Result<bool> {
        match self.literal() {
            Some(Lit::Bool(flag)) => Ok(flag.value),
            _ => Err(self.error(format!("`{}` is `true` or `false`", self.name))),
        }
    }

    /// One word of a few.
    pub(crate) fn word<T: Copy>(&self, words: &[(&str, T)]) -> syn::Result<T> {
        let written = self.string().map(LitStr::value).unwrap_or_default();
        if let Some((_, meaning)) = words.iter().find(|(word, _)| *word == written) {
            return Ok(*meaning);
        }
        let names = || words.iter().map(|(word, _)| *word);
        let proposal = nearest(&written, names())
            .filter(|_| !written.is_empty())
            .map(|near| format!("; did you mean \"{near}\"?"))
            .unwrap_or_default();
        let choice = list(names()).replace('`', "\"").replace(" and ", " or ");
        Err(self.error(format!("`{}` is {choice}{proposal}", self.name)))
    }

    /// Whole seconds, a number with a unit, or a constant of type `Duration`.
    pub(crate) fn time(&self) -> syn::Result<Time> {
        let name = &self.name;
        match &self.value {
            Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => self.seconds(number).map(Time::Known),
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Millis::parse(&text.value())
                .map(Time::Known)
                .map_err(|reason| self.error(format!("`{name}`: {reason}"))),
            Expr::Lit(ExprLit { lit: Lit::Float(_), .. }) => Err(self.error(format!(
                "`{name}` is whole seconds, or a whole number with a unit: {name} = \"500ms\""
            ))),
            Expr::Unary(_) => Err(self.error(format!("`{name}` is a length of time and can not be negative"))),
            Expr::Lit(_) => Err(self.error(format!(
                "`{name}` is seconds ({name} = 600), a number with a unit ({name} = \"10m\"), or a const `Duration`"
            ))),
            constant => Ok(Time::Const(constant.clone())),
        }
    }

    fn seconds(&self, number: &LitInt) -> syn::Result<Millis> {
        let (name, digits, suffix) = (&self.name, number.base10_digits(), number.suffix());
        // `7d` is an integer to the lexer, and only in an expression a mistake to rustc.
        if !matches!(suffix, "" | "u64") {
            let quoted = format!("{digits}{suffix}");
            return Err(self.error(match Millis::parse(&quoted) {
                Ok(_) => format!("a number with a unit stands in quotes: {name} = \"{quoted}\""),
                Err(reason) => format!("`{name}`: {reason}"),
            }));
        }
        digits
            .parse()
            .ok()
            .and_then(Millis::from_secs)
            .ok_or_else(|| self.error(format!("`{name}` is at most 30 years")))
    }

    pub(crate) fn path(&self) -> Option<&ExprPath> {
        match &self.value {
            Expr::Path(path) => Some(path),
            _ => None,
        }
    }
}
