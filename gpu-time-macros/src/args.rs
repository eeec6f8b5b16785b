//! Parses the attribute's tokens into [`Args`], and reports all mistakes together.
//!
//! A value remains an expression if the compiler can check its type better.

use proc_macro2::{TokenStream, TokenTree};
use syn::buffer::Cursor;
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Expr, Ident, LitStr, Path, Token};

use crate::errors::Errors;
use crate::keys::{Arity, Key};
use crate::pair::Pair;
use crate::values::{Arg, Clock, Scope};

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
    /// The name of a variant of the runtime's `Cold`.
    pub cold: Option<Arg<&'static str>>,
    /// A time in nanoseconds, or `None` to hold the stream until the bracket is enqueued.
    pub sleep: Option<Arg<Option<u64>>>,
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

    /// Sets the name of a block, which comes before the keys.
    pub fn name_of_block(&mut self, name: Expr) -> syn::Result<()> {
        let key = Key::find("name").map_err(|message| syn::Error::new_spanned(&name, message))?;
        let ident = Ident::new(key.name, name.span());
        self.name = Some(Pair { ident, key }.name(name)?);
        Ok(())
    }

    /// Returns a given key as it was written.
    pub fn key(&self, name: &str) -> Option<&Ident> {
        self.given.iter().find(|given| given.key == name).map(|given| &given.ident)
    }

    /// Returns `true` if the attribute names this clock.
    pub fn has_clock(&self, clock: Clock) -> bool {
        self.clock.as_ref().is_some_and(|arg| arg.value == clock)
    }

    /// Returns `true` if the attribute names this scope.
    pub fn has_scope(&self, scope: Scope) -> bool {
        self.scope.as_ref().is_some_and(|arg| arg.value == scope)
    }

    /// Returns a given key that needs a stream, and the argument as the user would write it.
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
        let pair = Pair { ident, key };
        if key.name == "crate" {
            self.krate = Some(pair.path(input)?);
            return Ok(());
        }
        let value = if has_equals { Some(input.parse()?) } else { None };
        self.set(pair, value)
    }

    /// Sets the field of a key.
    fn set(&mut self, pair: Pair, value: Option<Expr>) -> syn::Result<()> {
        match (pair.key.name, value) {
            ("cold", value) => self.cold = Some(pair.cold(value)?),
            ("sleep", value) => self.sleep = Some(pair.sleep(value)?),
            ("graph", value) => self.graph = Some(pair.flag(value)?),
            ("skip", value) => self.skip = Some(pair.flag(value)?),
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
