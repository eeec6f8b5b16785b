//! The keys of an item's own attribute, and those that it inherits.
//!
//! An `impl`, `trait` or `mod` passes its keys on as an additional attribute of each member:
//!
//! ```text
//! #[gpu_timed(cold)] #[::gpu_time::gpu_timed(__inherited(cold = "dirty", warmup = 3))] fn …
//! ```
//! It comes last, so that the member's own attribute expands first and merges it. This also works
//! if the member's attribute comes from a `cfg_attr` or was imported under another name.

use proc_macro2::{Delimiter, Ident, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::{Attribute, Meta};

use crate::enabled::args::{Args, GivenKey};
use crate::enabled::awaits::mentions;
use crate::enabled::errors::Errors;
use crate::enabled::renamed::renamed;

/// The name of the attribute.
const NAME: &str = "gpu_timed";
/// The word that precedes inherited keys.
const INHERITED: &str = "__inherited";

/// The keys of an item.
///
/// Invariant: the inherited keys were checked where they are written, and no key is both the item's
/// own and inherited.
pub struct Keys {
    own: TokenStream,
    inherited: Vec<GivenKey>,
    /// The item has an attribute of its own.
    pub has_own: bool,
}

impl Keys {
    /// Reads the arguments of the attribute being expanded, and merges those that the item
    /// inherits. Returns the item without the inherited attribute.
    pub fn take(args: TokenStream, item: TokenStream) -> (Keys, TokenStream) {
        if let Some(inherited) = inherited(&args) {
            let inherited = Args::parse(inherited, &mut Errors::default()).given;
            return (Keys { own: TokenStream::new(), inherited, has_own: false }, item);
        }
        let mut handed_on = TokenStream::new();
        let mut trees: Vec<TokenTree> = Vec::new();
        for tree in item {
            match attribute(&tree).and_then(|args| inherited(&args)) {
                Some(keys) => {
                    // The `#` of the inherited attribute.
                    trees.pop();
                    handed_on = keys;
                }
                None => trees.push(tree),
            }
        }
        let given = Args::parse(args.clone(), &mut Errors::default()).given;
        let mut inherited = Args::parse(handed_on, &mut Errors::default()).given;
        inherited.retain(|outer| given.iter().all(|own| own.key != outer.key));
        (Keys { own: args, inherited, has_own: true }, trees.into_iter().collect())
    }

    /// Creates an empty collection of errors that knows the inherited keys.
    pub fn errors(&self) -> Errors {
        Errors::inheriting(self.inherited.iter().map(|given| given.key).collect())
    }

    /// Parses all keys.
    pub fn parse(&self, errors: &mut Errors) -> Args {
        let Keys { own, inherited, .. } = self;
        let inherited = inherited.iter().map(|given| &given.tokens);
        let tokens =
            if own.is_empty() { quote!(#(#inherited),*) } else { quote!(#(#inherited,)* #own) };
        Args::parse(tokens, errors)
    }

    /// Removes inherited keys. Returns `false` if there is none to remove.
    pub fn remove(&mut self, unfit: &[&str]) -> bool {
        let before = self.inherited.len();
        self.inherited.retain(|given| !unfit.contains(&given.key));
        self.inherited.len() < before
    }
}

/// Returns the attribute that passes these keys on to a member.
pub fn handed_on(args: &Args) -> TokenStream {
    let at = Span::mixed_site();
    let (name, word) = (Ident::new(NAME, at), Ident::new(INHERITED, at));
    let path = match args.krate.clone().or_else(renamed) {
        Some(path) => quote_spanned!(at=> #path::#name),
        None => quote_spanned!(at=> ::gpu_time::#name),
    };
    let keys = args.given.iter().map(|given| &given.tokens);
    quote_spanned!(at=> #[#path(#word(#(#keys),*))])
}

/// Returns `true` for `#[gpu_timed]` by any path.
pub fn is_ours(attr: &Attribute) -> bool {
    attr.path().segments.last().is_some_and(|last| last.ident == NAME)
}

/// Returns `true` for a `gpu_timed` attribute that the user wrote, directly or in a `cfg_attr`.
pub fn is_own(attr: &Attribute) -> bool {
    match &attr.meta {
        Meta::List(list) if attr.path().is_ident("cfg_attr") => mentions(&list.tokens, NAME),
        _ => is_ours(attr),
    }
}

/// Returns the arguments of a `gpu_timed` attribute, given its brackets.
fn attribute(tree: &TokenTree) -> Option<TokenStream> {
    let TokenTree::Group(brackets) = tree else { return None };
    if brackets.delimiter() != Delimiter::Bracket {
        return None;
    }
    let mut trees: Vec<TokenTree> = brackets.stream().into_iter().collect();
    match (trees.pop(), trees.pop()) {
        (Some(TokenTree::Group(args)), Some(TokenTree::Ident(name))) if name == NAME => {
            Some(args.stream())
        }
        _ => None,
    }
}

/// Returns the inherited keys, if these are the arguments of an inherited attribute.
fn inherited(args: &TokenStream) -> Option<TokenStream> {
    let mut trees = args.clone().into_iter();
    match (trees.next(), trees.next()) {
        (Some(TokenTree::Ident(word)), Some(TokenTree::Group(keys))) if word == INHERITED => {
            Some(keys.stream())
        }
        _ => None,
    }
}
