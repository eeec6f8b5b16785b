//! The forms of the values of keys.

use proc_macro2::Ident;
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::ParseStream;
use syn::{Error, Expr, ExprArray, ExprLit, ExprUnary, Lit, LitStr, Path, Result, UnOp};

use crate::enabled::bindings::bare;
use crate::keys::Key;

/// The error for a value of the wrong form.
fn wrong(key: &Key, value: impl ToTokens) -> Error {
    Error::new_spanned(value, key.expected())
}

/// The error for a value of the right form that is out of range.
fn out_of_range(key: &Key, value: impl ToTokens, range: &str) -> Error {
    Error::new_spanned(value, format!("{}, {range}", key.expected()))
}

pub fn path(key: &Key, input: ParseStream) -> Result<Path> {
    let path = input.call(Path::parse_mod_style);
    path.map_err(|error| Error::new(error.span(), key.expected()))
}

pub fn name(value: Expr) -> Result<Expr> {
    if string(&value).is_some_and(|text| text.value().trim().is_empty()) {
        return Err(Error::new_spanned(value, "a name cannot be empty"));
    }
    // A constant begins with a capital letter.
    if let Some(word) = word(&value).filter(|word| word.starts_with(char::is_lowercase)) {
        return Err(Error::new_spanned(value, format!("write the name in quotes: `\"{word}\"`")));
    }
    Ok(value)
}

pub fn stream(value: Expr) -> Result<Expr> {
    match bare(&value) {
        Expr::Lit(_) => {
            Err(Error::new_spanned(value, "expected a stream, such as `stream = self.stream`"))
        }
        _ => Ok(value),
    }
}

pub fn sample(key: &Key, value: Expr) -> Result<Expr> {
    if string(&value).is_some() {
        return Err(wrong(key, value));
    }
    match number(&value) {
        Some(share) if share <= 0.0 || share > 1.0 => {
            Err(out_of_range(key, value, "a share above 0 and up to 1"))
        }
        _ => Ok(value),
    }
}

pub fn every(key: &Key, value: Expr) -> Result<Expr> {
    if number(&value).is_some_and(|calls| calls <= 0.0) {
        return Err(out_of_range(key, value, "a whole number from 1"));
    }
    Ok(value)
}

/// Returns a time in nanoseconds.
pub fn time(key: &Key, value: Expr) -> Result<u64> {
    let ns = text(&value).as_deref().and_then(nanoseconds);
    let range = "a time of at most 1 s in `ns`, `us`, `ms` or `s`";
    ns.ok_or_else(|| out_of_range(key, value, range))
}

pub fn boolean(key: &Key, value: Expr) -> Result<bool> {
    match &value {
        Expr::Lit(ExprLit { lit: Lit::Bool(value), .. }) => Ok(value.value),
        _ => Err(wrong(key, value)),
    }
}

/// Returns what belongs to the value, which must be one of these texts.
pub fn choice<T: Copy>(key: &Key, value: Expr, choices: &[(&str, T)]) -> Result<T> {
    let text = text(&value);
    let chosen = choices.iter().find(|(choice, _)| text.as_deref() == Some(choice));
    chosen.map(|(_, choice)| *choice).ok_or_else(|| wrong(key, value))
}

pub fn launch(key: &Key, value: Expr) -> Result<Vec<LitStr>> {
    let names = strings(&value).ok_or_else(|| wrong(key, value))?;
    if let Some(name) = names.iter().find(|name| !is_identifier(name)) {
        let message = "expected the name of a method, function or macro, without its path";
        return Err(Error::new_spanned(name, message));
    }
    Ok(names)
}

fn string(value: &Expr) -> Option<&LitStr> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text),
        _ => None,
    }
}

/// Returns the only word of the value, if it is a path of one.
fn word(value: &Expr) -> Option<String> {
    match bare(value) {
        Expr::Path(path) => path.path.get_ident().map(Ident::to_string),
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
