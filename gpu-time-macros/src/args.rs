//! Parses the attribute's tokens into [`Args`], and reports all mistakes together.
//!
//! A value remains an expression if the compiler can check its type better.

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::buffer::Cursor;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Expr, ExprArray, ExprLit, ExprUnary, Ident, Lit, LitStr, Path, Token, UnOp};

use crate::bindings::bare;
use crate::errors::Errors;
use crate::rules::{self, Key};

/// The arguments of the attribute.
#[derive(Default)]
pub struct Args {
    /// The source text, for the report.
    pub text: String,
    /// `false` if an argument could not be parsed.
    pub complete: bool,
    pub stream: Option<Arg<Expr>>,
    pub name: Option<Arg<Expr>>,
    pub warmup: Option<Arg<Expr>>,
    pub sample: Option<Arg<Expr>>,
    pub every: Option<Arg<Expr>>,
    pub cold: Option<Arg<Cold>>,
    pub sleep: Option<Arg<Hold>>,
    pub kernels: Option<Arg<Kernels>>,
    pub graph: Option<Arg<()>>,
    pub scope: Option<Arg<Scope>>,
    pub launch: Option<Arg<Vec<LitStr>>>,
    pub clock: Option<Arg<Clock>>,
    pub series: Option<Arg<Expr>>,
    pub bytes: Option<Arg<Expr>>,
    pub flops: Option<Arg<Expr>>,
    pub krate: Option<Arg<Path>>,
    pub skip: Option<Arg<()>>,
    /// All keys as they were written.
    pub given: Vec<Given>,
}

/// A key with its value, as the user wrote them.
#[derive(Clone)]
pub struct Given {
    pub key: &'static str,
    pub tokens: TokenStream,
}

/// A value, and its key, which locates later errors about the value.
pub struct Arg<T> {
    pub key: Ident,
    pub value: T,
}

/// The state in which a flush leaves the L2.
#[derive(Clone, Copy)]
pub enum Cold {
    Clean,
    Dirty,
}

/// The time for which a sleep kernel holds the stream.
#[derive(Clone, Copy)]
pub enum Hold {
    UntilEnqueued,
    Nanoseconds(u64),
}

/// The timed calls whose kernels are recorded.
pub enum Kernels {
    Usual,
    Share(Expr),
}

/// The extent of a bracket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Launches,
    Body,
}

/// The clock that times the function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    Events,
    Sync,
    Host,
    Kernels,
}

impl Args {
    /// Parses all keys. Reports those that cannot be parsed, and leaves them out of the result.
    pub fn parse(tokens: TokenStream, errors: &mut Errors) -> Args {
        let mut args = Args { text: one_line(&tokens), ..Args::default() };
        let parser = |input: ParseStream| {
            while !input.is_empty() {
                let start = input.cursor();
                let pair = args.pair(input);
                if let (Ok(()), Some(given)) = (&pair, args.given.last_mut()) {
                    given.tokens = between(start, input.cursor());
                }
                if let Err(error) = pair {
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

    /// Sets the name of a block, which comes before the keys.
    pub fn name_of_block(&mut self, name: Expr) -> syn::Result<()> {
        let key = Key::find("name").map_err(|message| syn::Error::new_spanned(&name, message))?;
        let ident = Ident::new(key.name, name.span());
        self.name = Some(Pair { ident, key }.name(name)?);
        Ok(())
    }

    /// Returns `true` if the attribute names this clock.
    pub fn has_clock(&self, clock: Clock) -> bool {
        self.clock.as_ref().is_some_and(|arg| arg.value == clock)
    }

    /// Returns the first given key that needs a stream, and the argument as the user would write
    /// it.
    pub fn needing_stream(&self) -> Option<(&'static str, &'static str)> {
        let arguments = [
            (self.has_clock(Clock::Events), "clock", "clock = \"events\""),
            (self.has_clock(Clock::Sync), "clock", "clock = \"sync\""),
            (self.cold.is_some(), "cold", "cold"),
            (self.sleep.is_some(), "sleep", "sleep"),
            (self.graph.is_some(), "graph", "graph"),
            (self.has_scope(Scope::Launches), "scope", "scope = \"launches\""),
            (self.launch.is_some(), "launch", "launch"),
        ];
        arguments.into_iter().find(|(is_given, ..)| *is_given).map(|(_, key, text)| (key, text))
    }

    /// Returns the keys other than `skip`.
    pub fn other_keys(&self) -> Vec<&'static str> {
        self.given.iter().map(|given| given.key).filter(|key| *key != rules::SKIP).collect()
    }

    fn has_scope(&self, scope: Scope) -> bool {
        self.scope.as_ref().is_some_and(|arg| arg.value == scope)
    }

    /// Reads one `key` or `key = value`.
    fn pair(&mut self, input: ParseStream) -> syn::Result<()> {
        if !input.peek(Ident::peek_any) {
            return Err(input.error(rules::EXPECTED_KEY));
        }
        let ident = input.call(Ident::parse_any)?;
        let at_key = |message| syn::Error::new(ident.span(), message);
        let key = Key::find(&ident.unraw().to_string()).map_err(at_key)?;
        if input.peek(syn::token::Paren) {
            return Err(at_key(key.expected()));
        }
        let has_equals = input.parse::<Option<Token![=]>>()?.is_some();
        if has_equals && (input.is_empty() || input.peek(Token![,])) {
            return Err(at_key(key.missing_value()));
        }
        if self.given.iter().any(|given| given.key == key.name) {
            if has_equals {
                input.parse::<Expr>()?;
            }
            return Err(at_key(key.repeated()));
        }
        self.given.push(Given { key: key.name, tokens: TokenStream::new() });
        if key.needs_value && !has_equals {
            return Err(at_key(key.missing_value()));
        }
        let pair = Pair { ident, key };
        if key.name == "crate" {
            self.krate = Some(pair.path(input)?);
            return Ok(());
        }
        let value = if has_equals { Some(input.parse()?) } else { None };
        match (key.name, value) {
            ("cold", value) => self.cold = Some(pair.cold(value)?),
            ("sleep", value) => self.sleep = Some(pair.sleep(value)?),
            ("kernels", value) => self.kernels = Some(pair.kernels(value)?),
            ("graph", value) => self.graph = Some(pair.graph(value)?),
            (rules::SKIP, Some(value)) => {
                return Err(syn::Error::new_spanned(value, rules::SKIP_VALUE));
            }
            (rules::SKIP, None) => self.skip = Some(pair.arg(())),
            ("stream", Some(value)) => self.stream = Some(pair.arg(value)),
            ("name", Some(value)) => self.name = Some(pair.name(value)?),
            ("warmup", Some(value)) => self.warmup = Some(pair.arg(value)),
            ("sample", Some(value)) => self.sample = Some(pair.sample(value)?),
            ("every", Some(value)) => self.every = Some(pair.every(value)?),
            ("scope", Some(value)) => self.scope = Some(pair.scope(value)?),
            ("launch", Some(value)) => self.launch = Some(pair.launch(value)?),
            ("clock", Some(value)) => self.clock = Some(pair.clock(value)?),
            ("key", Some(value)) => self.series = Some(pair.arg(value)),
            ("bytes", Some(value)) => self.bytes = Some(pair.arg(value)),
            ("flops", Some(value)) => self.flops = Some(pair.arg(value)),
            _ => return Err(pair.wrong(&pair.ident)),
        }
        Ok(())
    }
}

/// A key whose value is being read.
struct Pair {
    ident: Ident,
    key: &'static Key,
}

impl Pair {
    fn arg<T>(self, value: T) -> Arg<T> {
        Arg { key: self.ident, value }
    }

    /// The error for a value of the wrong form.
    fn wrong(&self, value: impl ToTokens) -> syn::Error {
        syn::Error::new_spanned(value, self.key.expected())
    }

    /// The error for a value of the right form that is out of range.
    fn out_of_range(&self, value: impl ToTokens, range: &str) -> syn::Error {
        syn::Error::new_spanned(value, format!("{}, {range}", self.key.expected()))
    }

    fn path(self, input: ParseStream) -> syn::Result<Arg<Path>> {
        let path = input.call(Path::parse_mod_style);
        let path = path.map_err(|error| syn::Error::new(error.span(), self.key.expected()))?;
        Ok(self.arg(path))
    }

    fn name(self, value: Expr) -> syn::Result<Arg<Expr>> {
        if string(&value).is_some_and(|text| text.value().trim().is_empty()) {
            return Err(syn::Error::new_spanned(value, "a name cannot be empty"));
        }
        Ok(self.arg(value))
    }

    fn sample(self, value: Expr) -> syn::Result<Arg<Expr>> {
        let value = self.share(value)?;
        Ok(self.arg(value))
    }

    fn kernels(self, value: Option<Expr>) -> syn::Result<Arg<Kernels>> {
        let kernels = match value {
            None => Kernels::Usual,
            Some(value) if string(&value).is_some() => return Err(self.wrong(value)),
            Some(value) => Kernels::Share(self.share(value)?),
        };
        Ok(self.arg(kernels))
    }

    fn share(&self, value: Expr) -> syn::Result<Expr> {
        match number(&value) {
            Some(share) if share <= 0.0 || share > 1.0 => {
                Err(self.out_of_range(value, "a share above 0 and up to 1"))
            }
            _ => Ok(value),
        }
    }

    fn every(self, value: Expr) -> syn::Result<Arg<Expr>> {
        if number(&value).is_some_and(|calls| calls <= 0.0) {
            return Err(self.out_of_range(value, "a whole number from 1"));
        }
        Ok(self.arg(value))
    }

    fn cold(self, value: Option<Expr>) -> syn::Result<Arg<Cold>> {
        let cold = match value {
            None => Cold::Clean,
            Some(value) if text(&value).as_deref() == Some("dirty") => Cold::Dirty,
            Some(value) => return Err(self.wrong(value)),
        };
        Ok(self.arg(cold))
    }

    fn sleep(self, value: Option<Expr>) -> syn::Result<Arg<Hold>> {
        let Some(value) = value else { return Ok(self.arg(Hold::UntilEnqueued)) };
        match text(&value).as_deref().and_then(nanoseconds) {
            Some(ns) => Ok(self.arg(Hold::Nanoseconds(ns))),
            None => {
                Err(self.out_of_range(value, "a time of at most 1 s in `ns`, `us`, `ms` or `s`"))
            }
        }
    }

    fn graph(self, value: Option<Expr>) -> syn::Result<Arg<()>> {
        match value {
            None => Ok(self.arg(())),
            Some(value) => {
                let message = format!("`graph` takes no value: write {}", self.key.example);
                Err(syn::Error::new_spanned(value, message))
            }
        }
    }

    fn scope(self, value: Expr) -> syn::Result<Arg<Scope>> {
        let scope = match text(&value).as_deref() {
            Some("launches") => Scope::Launches,
            Some("body") => Scope::Body,
            _ => return Err(self.wrong(value)),
        };
        Ok(self.arg(scope))
    }

    fn clock(self, value: Expr) -> syn::Result<Arg<Clock>> {
        let clock = match text(&value).as_deref() {
            Some("events") => Clock::Events,
            Some("sync") => Clock::Sync,
            Some("host") => Clock::Host,
            Some("kernels") => Clock::Kernels,
            _ => return Err(self.wrong(value)),
        };
        Ok(self.arg(clock))
    }

    fn launch(self, value: Expr) -> syn::Result<Arg<Vec<LitStr>>> {
        let names = strings(&value).ok_or_else(|| self.wrong(value))?;
        if let Some(name) = names.iter().find(|name| !is_identifier(name)) {
            let message = "expected the name of a method, function or macro, without its path";
            return Err(syn::Error::new_spanned(name, message));
        }
        Ok(self.arg(names))
    }
}

/// Returns the tokens between two positions.
pub fn between(mut at: Cursor, end: Cursor) -> TokenStream {
    let mut trees = Vec::new();
    while at != end
        && let Some((tree, next)) = at.token_tree()
    {
        trees.push(tree);
        at = next;
    }
    trees.into_iter().collect()
}

/// Returns the tokens as one line of text.
fn one_line(tokens: &TokenStream) -> String {
    tokens.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}

fn skip_to_comma(input: ParseStream) -> syn::Result<()> {
    while !input.is_empty() && !input.peek(Token![,]) {
        input.parse::<TokenTree>()?;
    }
    Ok(())
}

/// Returns the string literal, also if a `macro_rules!` fragment wraps it.
fn string(value: &Expr) -> Option<&LitStr> {
    match value {
        Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text),
        Expr::Group(group) => string(&group.expr),
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
