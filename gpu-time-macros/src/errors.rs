//! Every mistake found, to be reported together.

use proc_macro2::TokenStream;
use quote::ToTokens;

/// The mistakes so far.
#[derive(Default)]
pub struct Errors(Option<syn::Error>);

impl Errors {
    /// Notes a mistake at the given tokens.
    pub fn at(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    /// Notes a mistake.
    pub fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(all) => all.combine(error),
            none => *none = Some(error),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// One `compile_error!` for each.
    pub fn into_tokens(self) -> TokenStream {
        self.0.map(|all| all.to_compile_error()).unwrap_or_default()
    }
}
