//! Collects all errors, so that they are reported together.

use proc_macro::{Delimiter, Group, Ident, Literal, Punct, Spacing, Span, TokenStream, TokenTree};

/// The errors so far, each a `compile_error!`.
#[derive(Default)]
pub struct CompileErrors(TokenStream);

impl CompileErrors {
    /// Adds an error that points at one token.
    pub fn at(&mut self, span: Span, message: &str) {
        self.between(span, span, message);
    }

    /// Adds an error that points at everything from `start` to `end`.
    pub fn between(&mut self, start: Span, end: Span, message: &str) {
        let punct = |c, spacing| TokenTree::from(Punct::new(c, spacing));
        let mut text = TokenTree::from(Literal::string(message));
        text.set_span(end);
        let tokens = [
            punct(':', Spacing::Joint),
            punct(':', Spacing::Alone),
            Ident::new("core", start).into(),
            punct(':', Spacing::Joint),
            punct(':', Spacing::Alone),
            Ident::new("compile_error", start).into(),
            punct('!', Spacing::Alone),
        ];
        self.0.extend(tokens.map(|mut tree| {
            tree.set_span(start);
            tree
        }));
        let mut braces = TokenTree::from(Group::new(Delimiter::Brace, text.into()));
        braces.set_span(end);
        self.0.extend([braces]);
    }

    /// Returns one `compile_error!` for each error.
    pub fn into_tokens(self) -> TokenStream {
        self.0
    }
}
