//! Collects all errors, so that they are reported together.

use proc_macro2::TokenStream;
use quote::ToTokens;

/// The errors so far, and the inherited keys that do not apply to the function.
#[derive(Default)]
pub struct Errors {
    all: Option<syn::Error>,
    /// The keys that come from an `impl`, `trait` or `mod` around the function.
    inherited: Vec<&'static str>,
    unfit: Vec<&'static str>,
    /// An error says that the function returns before its work is done.
    pub returns_early: bool,
    /// The attribute is on an expression or a statement, so the errors replace it instead of
    /// following it.
    pub is_expression: bool,
}

impl Errors {
    /// Creates an empty collection, for a function that inherits these keys.
    pub fn inheriting(inherited: Vec<&'static str>) -> Errors {
        Errors { inherited, ..Errors::default() }
    }

    /// Adds an error at the given tokens.
    pub fn at(&mut self, tokens: impl ToTokens, message: impl std::fmt::Display) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    /// Adds an error about these keys. If one of them is inherited, it is marked as unfit instead,
    /// because the function's own keys win.
    pub fn about(
        &mut self,
        keys: &[&'static str],
        tokens: impl ToTokens,
        message: impl std::fmt::Display,
    ) {
        match keys.iter().find(|key| self.inherits(key)) {
            Some(inherited) => self.mark_unfit(inherited),
            None => self.at(tokens, message),
        }
    }

    /// Marks an inherited key as one that does not apply to the function.
    pub fn mark_unfit(&mut self, key: &'static str) {
        self.unfit.push(key);
    }

    /// Returns `true` if the function inherits the key.
    pub fn inherits(&self, key: &str) -> bool {
        self.inherited.contains(&key)
    }

    /// Adds an error.
    pub fn push(&mut self, error: syn::Error) {
        match &mut self.all {
            Some(all) => all.combine(error),
            none => *none = Some(error),
        }
    }

    /// Returns `true` if there are no errors, and all inherited keys apply.
    pub fn is_empty(&self) -> bool {
        self.all.is_none() && self.unfit.is_empty()
    }

    /// Returns the inherited keys that do not apply.
    pub fn unfit(&self) -> &[&'static str] {
        &self.unfit
    }

    /// Returns one `compile_error!` for each error.
    pub fn into_tokens(self) -> TokenStream {
        self.all.map(|all| all.to_compile_error()).unwrap_or_default()
    }
}
