//! Parses the attribute's tokens into [`Args`], and reports all mistakes together.
//!
//! A value remains an expression if the compiler can check its type better.

use proc_macro2::{TokenStream, TokenTree};
use syn::buffer::Cursor;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{Expr, Ident, LitStr, Path, Token};

use crate::enabled::errors::Errors;
use crate::enabled::values;
use crate::keys::{Arity, Key};

/// The extent of a bracket. The runtime's `ScopeKind` has variants of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Launches,
    Body,
}

/// The clock that times the function. The runtime's `Clock` has variants of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    Events,
    Sync,
    Host,
    Kernels,
}

/// The clocks as they are written.
pub const CLOCKS: [(&str, Clock); 4] = [
    ("events", Clock::Events),
    ("sync", Clock::Sync),
    ("host", Clock::Host),
    ("kernels", Clock::Kernels),
];

/// The arguments of the attribute.
#[derive(Default)]
pub struct Args {
    /// The source text, for the report.
    pub text: String,
    /// `false` if an argument could not be parsed.
    pub complete: bool,
    pub stream: Option<Expr>,
    pub name: Option<Expr>,
    pub warmup: Option<Expr>,
    pub sample: Option<Expr>,
    pub every: Option<Expr>,
    /// The name of a variant of the runtime's `Cold`.
    pub cold: Option<&'static str>,
    /// A time in nanoseconds, or `None` to hold the stream until the bracket is enqueued.
    pub sleep: Option<Option<u64>>,
    /// Launches in a stream capture become timed nodes of the graph.
    pub graph: bool,
    pub scope: Option<Scope>,
    /// The names of further launches.
    pub launch: Vec<LitStr>,
    pub clock: Option<Clock>,
    /// The value that splits the site into series.
    pub series: Option<Expr>,
    /// The number of bytes that a call moves.
    pub bytes: Option<Expr>,
    pub flops: Option<Expr>,
    /// The work of helper threads may belong to the function.
    pub helpers: Option<bool>,
    pub krate: Option<Path>,
    pub skip: bool,
    /// All keys as they were written.
    pub given: Vec<GivenKey>,
}

/// A key with its value, as the user wrote them.
#[derive(Clone)]
pub struct GivenKey {
    pub key: &'static str,
    pub ident: Ident,
    pub tokens: TokenStream,
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
                    errors.push(input.error("expected `,`"));
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

    /// Returns a given key as it was written.
    pub fn key(&self, name: &str) -> Option<&Ident> {
        self.given.iter().find(|given| given.key == name).map(|given| &given.ident)
    }

    /// Returns a given key that needs a stream, and the argument as the user would write it.
    pub fn needing_stream(&self) -> Option<(&'static str, &'static str)> {
        let arguments = [
            (self.clock == Some(Clock::Events), "clock", "clock = \"events\""),
            (self.clock == Some(Clock::Sync), "clock", "clock = \"sync\""),
            (self.cold.is_some(), "cold", "cold"),
            (self.sleep.is_some(), "sleep", "sleep"),
            (self.graph, "graph", "graph"),
            (self.scope == Some(Scope::Launches), "scope", "scope = \"launches\""),
            (!self.launch.is_empty(), "launch", "launch"),
        ];
        arguments.into_iter().find(|(is_given, ..)| *is_given).map(|(_, key, text)| (key, text))
    }

    /// Returns the keys other than `skip`.
    pub fn other_keys(&self) -> Vec<&'static str> {
        self.given.iter().map(|given| given.key).filter(|key| *key != "skip").collect()
    }

    /// Reads one `key` or `key = value`.
    fn pair(&mut self, input: ParseStream) -> syn::Result<()> {
        if !input.peek(Ident::peek_any) {
            return Err(input.error("expected a key, such as `warmup = 10`"));
        }
        let ident = input.call(Ident::parse_any)?;
        let at_key = |message| syn::Error::new(ident.span(), message);
        let key = Key::find(&ident.unraw().to_string()).map_err(at_key)?;
        if input.peek(syn::token::Paren) || input.peek(Token![:]) {
            return Err(at_key(key.expected()));
        }
        let has_equals = input.parse::<Option<Token![=]>>()?.is_some();
        if has_equals && (input.is_empty() || input.peek(Token![,])) {
            return Err(at_key(key.missing_value()));
        }
        if self.key(key.name).is_some() {
            if has_equals {
                input.parse::<Expr>()?;
            }
            return Err(at_key(key.repeated()));
        }
        let tokens = TokenStream::new();
        self.given.push(GivenKey { key: key.name, ident: ident.clone(), tokens });
        if key.arity == Arity::One && !has_equals {
            return Err(at_key(key.missing_value()));
        }
        if key.name == "crate" {
            self.krate = Some(values::path(key, input)?);
            return Ok(());
        }
        let value = if has_equals { Some(input.parse()?) } else { None };
        self.set(key, value)
    }

    /// Sets the field of a key. A value is missing only where the key permits that.
    fn set(&mut self, key: &Key, value: Option<Expr>) -> syn::Result<()> {
        match (key.name, value) {
            ("graph", None) => self.graph = true,
            ("skip", None) => self.skip = true,
            ("cold", None) => self.cold = Some("Clean"),
            ("sleep", None) => self.sleep = Some(None),
            (_, None) => {}
            ("warmup", value) => self.warmup = value,
            ("key", value) => self.series = value,
            ("bytes", value) => self.bytes = value,
            ("flops", value) => self.flops = value,
            ("stream", Some(value)) => self.stream = Some(values::stream(value)?),
            ("name", Some(value)) => self.name = Some(values::name(value)?),
            ("sample", Some(value)) => self.sample = Some(values::sample(key, value)?),
            ("every", Some(value)) => self.every = Some(values::every(key, value)?),
            ("cold", Some(value)) => {
                self.cold = Some(values::choice(key, value, &[("dirty", "Dirty")])?);
            }
            ("sleep", Some(value)) => self.sleep = Some(Some(values::time(key, value)?)),
            ("scope", Some(value)) => {
                let scopes = [("launches", Scope::Launches), ("body", Scope::Body)];
                self.scope = Some(values::choice(key, value, &scopes)?);
            }
            ("launch", Some(value)) => self.launch = values::launch(key, value)?,
            ("helpers", Some(value)) => self.helpers = Some(values::boolean(key, value)?),
            ("clock", Some(value)) => self.clock = Some(values::choice(key, value, &CLOCKS)?),
            (_, Some(value)) => return Err(syn::Error::new_spanned(value, key.takes_no_value())),
        }
        Ok(())
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
