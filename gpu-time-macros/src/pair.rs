//! A key whose value is being read, and the forms of the values.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Expr, ExprArray, ExprLit, ExprUnary, Lit, LitStr, Path, UnOp};

use crate::bindings::bare;
use crate::keys::Key;
use crate::values::{Arg, Clock, Scope};

/// A key whose value is being read.
pub struct Pair {
    pub ident: Ident,
    pub key: &'static Key,
}

impl Pair {
    pub fn arg<T>(self, value: T) -> Arg<T> {
        Arg { key: self.ident, value }
    }

    /// The error for a value of the wrong form.
    pub fn wrong(&self, value: impl ToTokens) -> syn::Error {
        syn::Error::new_spanned(value, self.key.expected())
    }

    /// The error for a value of the right form that is out of range.
    fn out_of_range(&self, value: impl ToTokens, range: &str) -> syn::Error {
        syn::Error::new_spanned(value, format!("{}, {range}", self.key.expected()))
    }

    pub fn path(self, input: ParseStream) -> syn::Result<Arg<Path>> {
        let path = input.call(Path::parse_mod_style);
        let path = path.map_err(|error| syn::Error::new(error.span(), self.key.expected()))?;
        Ok(self.arg(path))
    }

    pub fn name(self, value: Expr) -> syn::Result<Arg<Expr>> {
        if string(&value).is_some_and(|text| text.value().trim().is_empty()) {
            return Err(syn::Error::new_spanned(value, "a name cannot be empty"));
        }
        Ok(self.arg(value))
    }

    pub fn sample(self, value: Expr) -> syn::Result<Arg<Expr>> {
        if string(&value).is_some() {
            return Err(self.wrong(value));
        }
        match number(&value) {
            Some(share) if share <= 0.0 || share > 1.0 => {
                Err(self.out_of_range(value, "a share above 0 and up to 1"))
            }
            _ => Ok(self.arg(value)),
        }
    }

    pub fn every(self, value: Expr) -> syn::Result<Arg<Expr>> {
        if number(&value).is_some_and(|calls| calls <= 0.0) {
            return Err(self.out_of_range(value, "a whole number from 1"));
        }
        Ok(self.arg(value))
    }

    pub fn cold(self, value: Option<Expr>) -> syn::Result<Arg<&'static str>> {
        match value {
            None => Ok(self.arg("Clean")),
            Some(value) => self.choice(value, &[("dirty", "Dirty")]),
        }
    }

    pub fn sleep(self, value: Option<Expr>) -> syn::Result<Arg<Option<u64>>> {
        let Some(value) = value else { return Ok(self.arg(None)) };
        match text(&value).as_deref().and_then(nanoseconds) {
            Some(ns) => Ok(self.arg(Some(ns))),
            None => {
                Err(self.out_of_range(value, "a time of at most 1 s in `ns`, `us`, `ms` or `s`"))
            }
        }
    }

    /// Reads a key that takes no value.
    pub fn flag(self, value: Option<Expr>) -> syn::Result<Arg<()>> {
        match value {
            None => Ok(self.arg(())),
            Some(value) => Err(syn::Error::new_spanned(value, self.key.takes_no_value())),
        }
    }

    pub fn scope(self, value: Expr) -> syn::Result<Arg<Scope>> {
        self.choice(value, &[("launches", Scope::Launches), ("body", Scope::Body)])
    }

    pub fn clock(self, value: Expr) -> syn::Result<Arg<Clock>> {
        self.choice(
            value,
            &[
                ("events", Clock::Events),
                ("sync", Clock::Sync),
                ("host", Clock::Host),
                ("kernels", Clock::Kernels),
            ],
        )
    }

    /// Reads a value that must be one of these texts.
    fn choice<T: Copy>(self, value: Expr, choices: &[(&str, T)]) -> syn::Result<Arg<T>> {
        let text = text(&value);
        match choices.iter().find(|(choice, _)| text.as_deref() == Some(choice)) {
            Some((_, choice)) => Ok(self.arg(*choice)),
            None => Err(self.wrong(value)),
        }
    }

    pub fn launch(self, value: Expr) -> syn::Result<Arg<Vec<LitStr>>> {
        let names = strings(&value).ok_or_else(|| self.wrong(value))?;
        if let Some(name) = names.iter().find(|name| !is_identifier(name)) {
            let message = "expected the name of a method, function or macro, without its path";
            return Err(syn::Error::new_spanned(name, message));
        }
        Ok(self.arg(names))
    }
}

fn string(value: &Expr) -> Option<&LitStr> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text),
        _ => None,
    }
}

/// Returns the value of a numeric literal, negated or not.
fn number(value: &Expr) -> Option<f64> {
    match bare(value) {
        Expr::Lit(ExprLit { lit: Lit::Int(number), .. }) => number.base10_parse().ok(),
        Expr::Lit(ExprLit { lit: Lit::Float(number), .. }) => number.base10_parse().ok(),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => number(expr).map(|n| -n),
        _ => None,
    }
}

fn text(value: &Expr) -> Option<String> {
    string(value).map(LitStr::value)
}

fn strings(value: &Expr) -> Option<Vec<LitStr>> {
    match value {
        Expr::Array(ExprArray { elems, .. }) if !elems.is_empty() => {
            elems.iter().map(|name| string(name).cloned()).collect()
        }
        _ => string(value).map(|name| vec![name.clone()]),
    }
}

fn is_identifier(name: &LitStr) -> bool {
    name.parse_with(Ident::parse_any).is_ok()
}

/// Parses a time such as `50us` or `1.5 ms`.
fn nanoseconds(text: &str) -> Option<u64> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(at);
    let scale = match unit.trim() {
        "ns" => 1.0,
        // The micro sign and the Greek letter mu.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let ns = (number.parse::<f64>().ok()? * scale).round();
    // The stream is blocked for this time. More than a second is never useful.
    (1.0..=1e9).contains(&ns).then_some(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    #[test]
    fn durations() {
        assert_eq!(nanoseconds("50us"), Some(50_000));
        assert_eq!(nanoseconds("50\u{b5}s"), Some(50_000));
        assert_eq!(nanoseconds("50\u{3bc}s"), Some(50_000));
        assert_eq!(nanoseconds("1.5 ms"), Some(1_500_000));
        assert_eq!(nanoseconds("1ns"), Some(1));
        assert_eq!(nanoseconds("1s"), Some(1_000_000_000));
        for invalid in
            ["", "50", "us", "1.1s", "50 parsecs", "-5us", "0us", "0.1ns", "1e3us", "1.2.3us"]
        {
            assert_eq!(nanoseconds(invalid), None, "{invalid}");
        }
    }
}
