//! How generated code spells what it names: nothing that the user can shadow, see or be shadowed by.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::Path;
use syn::spanned::Spanned;

/// The name of our module in a function that says where `gpu-time` lives.
const IMPORT: &str = "__gpu_time_private";

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
            Some(_) => Ident::new(IMPORT, at).into_token_stream(),
            None => quote_spanned!(at=> ::gpu_time::__private),
        }
    }

    /// The item by which the user's path is named once: where it leads nowhere, they are told so once,
    /// and there.
    pub fn import(&self) -> Option<TokenStream> {
        let path = self.krate.as_ref()?;
        let at = ours(path.segments.last().span());
        let import = Ident::new(IMPORT, at);
        Some(quote_spanned!(at=> use #path::__private as #import;))
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
