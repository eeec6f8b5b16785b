//! The paths and variables in generated code. The user's code can neither shadow nor see them.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote_spanned};
use syn::Path;
use syn::spanned::Spanned;

/// The name under which a function with `crate = PATH` imports `gpu_time::__private`.
const IMPORT: &str = "__gpu_time_private";

/// The path of `gpu-time`, and the generated variables.
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

    /// Returns the path of `gpu_time::__private`, which generated code uses.
    pub fn private(&self, at: Span) -> TokenStream {
        match &self.krate {
            Some(_) => Ident::new(IMPORT, at).into_token_stream(),
            None => quote_spanned!(at=> ::gpu_time::__private),
        }
    }

    /// Returns the `use` of the user's path. It is the only item with that path, so that an invalid path
    /// causes one error, located at the path.
    pub fn import(&self) -> Option<TokenStream> {
        let path = self.krate.as_ref()?;
        let at = ours(path.segments.last().span());
        let import = Ident::new(IMPORT, at);
        Some(quote_spanned!(at=> use #path::__private as #import;))
    }
}

/// Returns a variable that the user's code can neither see nor shadow.
///
/// The prefix is for constants and unit structs, which hygiene does not cover.
pub fn local(name: &str) -> Ident {
    format_ident!("__gpu_time_{name}", span = Span::mixed_site())
}

/// Returns a span that lints treat as macro code, located at the user's tokens.
pub fn ours(at: Span) -> Span {
    Span::mixed_site().located_at(at)
}
