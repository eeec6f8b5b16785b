//! The attribute as a function on tokens.

use proc_macro2::TokenStream;
use quote::quote;

use crate::args::Args;
use crate::errors::Errors;
use crate::expand::expand;
use crate::func::TimedFn;
use crate::plan::Plan;

/// Rewrites the item. If there are errors, returns the item unchanged, followed by all of them.
pub fn rewrite(args: TokenStream, item: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let args = Args::parse(args, &mut errors);
    let func = TimedFn::parse(item.clone(), &mut errors);
    match func.and_then(|func| Plan::new(args, func, &mut errors)) {
        Some(plan) => expand(plan),
        None => {
            let errors = errors.into_tokens();
            quote!(#item #errors)
        }
    }
}
