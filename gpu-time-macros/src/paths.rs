//! How generated code spells what it names: nothing that the user can shadow, see or be shadowed by.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::Path;

/// Where `gpu-time` lives, and our locals.
pub struct Paths {
    krate: Option<Path>,
    /// The variable that holds the scope.
    pub scope: Ident,
}

impl Paths {
    /// `krate` is the user's `crate = PATH`.
    pub fn new(krate: Option<Path>) -> Paths {
        Paths { krate, scope: local("scope") }
    }

    /// The module of ours that generated code may name.
    pub fn private(&self, at: Span) -> TokenStream {
        match &self.krate {
            Some(path) => {
                let path = path.to_token_stream().into_iter().map(|mut tree| {
                    // `$crate` means nothing without the hygiene that it came with.
                    if !matches!(&tree, TokenTree::Ident(ident) if ident == "$crate") {
                        tree.set_span(at);
                    }
                    tree
                });
                let path: TokenStream = path.collect();
                quote_spanned!(at=> #path::__private)
            }
            None => quote_spanned!(at=> ::gpu_time::__private),
        }
    }
}

/// A variable that the user's code can neither see nor hide.
///
/// The prefix keeps it apart from constants and unit structs, which hygiene does not.
pub fn local(name: &str) -> Ident {
    format_ident!("__gpu_time_{name}", span = Span::mixed_site())
}

/// A span of code that is ours, so that lints spare it, located where the user would look.
pub fn ours(at: Span) -> Span {
    Span::mixed_site().located_at(at)
}
