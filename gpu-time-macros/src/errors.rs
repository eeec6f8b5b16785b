//! Collects all errors, so that they are reported together.

use proc_macro2::TokenStream;
use quote::ToTokens;

/// The errors so far.
#[derive(Default)]
pub struct Errors(Option<syn::Error>);

impl Errors {
    /// Adds an error at the given tokens.
    pub fn at(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    /// Adds an error.
    pub fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            none => *none = Some(error),
        }
    }

    /// Returns `true` if there are no errors.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Returns one `compile_error!` for each error.
    pub fn into_tokens(self) -> TokenStream {
        self.0.map(|all| all.to_compile_error()).unwrap_or_default()
    }
}
