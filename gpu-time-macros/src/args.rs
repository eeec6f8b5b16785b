//! Attribute tokens -> [`Args`]: every key known and given once, all mistakes reported together.
//!
//! Values whose type the compiler can check better stay expressions.

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, ExprArray, ExprLit, ExprUnary, Ident, Lit, LitStr, Path, Token, UnOp};

use crate::bindings::bare;
use crate::errors::Errors;
use crate::rules::{self, Key};

/// What the user wrote between the parentheses.
#[derive(Default)]
pub struct Args {
    /// All of it, for the report.
    pub text: String,
    /// Whether all of it could be read.
    pub complete: bool,
    pub stream: Option<Arg<Expr>>,
    pub name: Option<Arg<Expr>>,
    pub warmup: Option<Arg<Expr>>,
    pub sample: Option<Arg<Expr>>,
    pub every: Option<Arg<Expr>>,
    pub cold: Option<Arg<Cold>>,
    pub sleep: Option<Arg<Hold>>,
    pub graph: Option<Arg<()>>,
    pub scope: Option<Arg<Scope>>,
    pub launch: Option<Arg<Vec<LitStr>>>,
    pub clock: Option<Arg<Clock>>,
    pub series: Option<Arg<Expr>>,
    pub bytes: Option<Arg<Expr>>,
    pub flops: Option<Arg<Expr>>,
    pub krate: Option<Arg<Path>>,
}

/// A value, and where to point when it does not suit.
pub struct Arg<T> {
    pub key: Ident,
    pub value: T,
}

/// The state in which the L2 is left.
#[derive(Clone, Copy)]
pub enum Cold {
    Clean,
    Dirty,
}

/// How long the stream is held.
#[derive(Clone, Copy)]
pub enum Hold {
    UntilEnqueued,
    Nanoseconds(u64),
}

/// What a bracket goes around.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Launches,
    Body,
}

/// What tells the time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    Events,
    Sync,
    Host,
}

impl Args {
    /// Reads all keys; what could not be read is in `errors` and absent from the result.
    pub fn parse(tokens: TokenStream, errors: &mut Errors) -> Args {
        let mut args = Args { text: one_line(&tokens), ..Args::default() };
        let mut seen = Vec::new();
        let parser = |input: ParseStream| {
            while !input.is_empty() {
                if let Err(error) = args.pair(input, &mut seen) {
                    errors.push(error);
                    skip_to_comma(input)?;
                } else if !input.is_empty() && !input.peek(Token![,]) {
                    errors.push(input.error(rules::EXPECTED_COMMA));
                    skip_to_comma(input)?;
                }
                if !input.is_empty() {
                    input.parse::<Token![,]>()?;
                }
            }
            Ok(())
        };
        if let Err(error) = parser.parse2(tokens) {
            errors.push(error);
        }
        args.complete = errors.is_empty();
        args
    }

    /// Whether this clock is asked for.
    pub fn has_clock(&self, clock: Clock) -> bool {
        self.clock.as_ref().is_some_and(|arg| arg.value == clock)
    }

    /// Reads one `key` or `key = value`.
    fn pair(&mut self, input: ParseStream, seen: &mut Vec<String>) -> syn::Result<()> {
        if !input.peek(Ident::peek_any) {
            return Err(input.error(rules::EXPECTED_KEY));
        }
        let key = input.call(Ident::parse_any)?;
        let name = key.unraw().to_string();
        let known = Key::find(&name).map_err(|message| syn::Error::new(key.span(), message))?;
        let example = known.example;
        if input.peek(syn::token::Paren) {
            return Err(syn::Error::new(key.span(), known.expected()));
        }
        let equals: Option<Token![=]> = input.parse()?;
        if equals.is_some() && (input.is_empty() || input.peek(Token![,])) {
            return Err(syn::Error::new(key.span(), known.missing_value()));
        }
        if seen.contains(&name) {
            if equals.is_some() {
                input.parse::<Expr>()?;
            }
            return Err(syn::Error::new(key.span(), known.repeated()));
        }
        seen.push(name.clone());

        if name == "crate" {
            equals.ok_or_else(|| syn::Error::new(key.span(), known.missing_value()))?;
            let value = input
                .call(Path::parse_mod_style)
                .map_err(|error| syn::Error::new(error.span(), format!("expected {example}")))?;
            self.krate = Some(Arg { key, value });
            return Ok(());
        }
        let value = match equals {
            Some(_) => Some(input.parse::<Expr>()?),
            None => None,
        };

        let value = match value {
            None if known.needs_value => {
                return Err(syn::Error::new(key.span(), known.missing_value()));
            }
            value => value,
        };
        let wrong = |value: &Expr| syn::Error::new_spanned(value, format!("expected {example}"));

        match (name.as_str(), value) {
            ("stream", Some(value)) => self.stream = Some(Arg { key, value }),
            ("warmup", Some(value)) => self.warmup = Some(Arg { key, value }),
            ("sample", Some(value)) => {
                if number(&value).is_some_and(|share| share <= 0.0 || share > 1.0) {
                    let message = format!("expected {example}, a share above 0.0 and up to 1.0");
                    return Err(syn::Error::new_spanned(value, message));
                }
                self.sample = Some(Arg { key, value });
            }
            ("every", Some(value)) => {
                if number(&value).is_some_and(|calls| calls <= 0.0) {
                    let message = format!("expected {example}, a whole number from 1");
                    return Err(syn::Error::new_spanned(value, message));
                }
                self.every = Some(Arg { key, value });
            }
            ("key", Some(value)) => self.series = Some(Arg { key, value }),
            ("bytes", Some(value)) => self.bytes = Some(Arg { key, value }),
            ("flops", Some(value)) => self.flops = Some(Arg { key, value }),
            ("name", Some(value)) => {
                if string(&value).is_some_and(|text| text.value().trim().is_empty()) {
                    return Err(syn::Error::new_spanned(value, "a name cannot be empty"));
                }
                self.name = Some(Arg { key, value });
            }
            ("cold", None) => self.cold = Some(Arg { key, value: Cold::Clean }),
            ("cold", Some(value)) => match text(&value).as_deref() {
                Some("dirty") => self.cold = Some(Arg { key, value: Cold::Dirty }),
                _ => return Err(wrong(&value)),
            },
            ("sleep", None) => self.sleep = Some(Arg { key, value: Hold::UntilEnqueued }),
            ("sleep", Some(value)) => match text(&value).as_deref().and_then(nanoseconds) {
                Some(ns) => self.sleep = Some(Arg { key, value: Hold::Nanoseconds(ns) }),
                None => {
                    let message = format!(
                        "expected {example}, in `ns`, `us`, `ms` or `s`, of at most a second"
                    );
                    return Err(syn::Error::new_spanned(value, message));
                }
            },
            ("graph", None) => self.graph = Some(Arg { key, value: () }),
            ("graph", Some(value)) => {
                let message = format!("`graph` takes no value: write {example}");
                return Err(syn::Error::new_spanned(value, message));
            }
            ("scope", Some(value)) => match text(&value).as_deref() {
                Some("launches") => self.scope = Some(Arg { key, value: Scope::Launches }),
                Some("body") => self.scope = Some(Arg { key, value: Scope::Body }),
                _ => return Err(wrong(&value)),
            },
            ("clock", Some(value)) => match text(&value).as_deref() {
                Some("events") => self.clock = Some(Arg { key, value: Clock::Events }),
                Some("sync") => self.clock = Some(Arg { key, value: Clock::Sync }),
                Some("host") => self.clock = Some(Arg { key, value: Clock::Host }),
                _ => return Err(wrong(&value)),
            },
            ("launch", Some(value)) => {
                let names = strings(&value).ok_or_else(|| wrong(&value))?;
                if let Some(name) = names.iter().find(|name| !is_identifier(name)) {
                    let message =
                        "expected the name of a method, function or macro, without its path";
                    return Err(syn::Error::new_spanned(name, message));
                }
                self.launch = Some(Arg { key, value: names });
            }
            _ => return Err(syn::Error::new(key.span(), known.missing_value())),
        }
        Ok(())
    }
}

/// The arguments as one line of text.
fn one_line(tokens: &TokenStream) -> String {
    tokens.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn skip_to_comma(input: ParseStream) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}

/// The string literal that the expression is, also where a `macro_rules!` fragment wraps it.
fn string(value: &Expr) -> Option<&LitStr> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text),
        Expr::Group(group) => string(&group.expr),
        _ => None,
    }
}

/// The number that the expression is, if it is written as one.
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

/// Reads a time such as `50us` or `1.5 ms`.
fn nanoseconds(text: &str) -> Option<u64> {
    let at = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(at);
    let scale = match unit.trim() {
        "ns" => 1.0,
        // The micro sign and the Greek letter look the same.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    let ns = (number.parse::<f64>().ok()? * scale).round();
    // The stream stands still for it: longer than a second is of no use.
    (1.0..=1e9).contains(&ns).then_some(ns as u64)
}

#[cfg(test)]
mod tests {
    use super::nanoseconds;

    #[test]
    fn times() {
        assert_eq!(nanoseconds("50us"), Some(50_000));
        assert_eq!(nanoseconds("50\u{b5}s"), Some(50_000));
        assert_eq!(nanoseconds("50\u{3bc}s"), Some(50_000));
        assert_eq!(nanoseconds("1.5 ms"), Some(1_500_000));
        assert_eq!(nanoseconds("1ns"), Some(1));
        assert_eq!(nanoseconds("1s"), Some(1_000_000_000));
        for wrong in
            ["", "50", "us", "1.1s", "50 parsecs", "-5us", "0us", "0.1ns", "1e3us", "1.2.3us"]
        {
            assert_eq!(nanoseconds(wrong), None, "{wrong}");
        }
    }
}
