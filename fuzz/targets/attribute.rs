//! Expands the attribute. The first line of the input contains its arguments, and the rest is the
//! item. A function must expand to items, with or without errors. Also expands `scope!` and `guard!` with
//! the same arguments.

#![no_main]

extern crate proc_macro;

use std::str::FromStr;

use libfuzzer_sys::fuzz_target;
use proc_macro2::TokenStream;

// A procedural macro crate exports only its macros, so its modules are compiled here.
#[path = "../../gpu-time-macros/src/enabled/mod.rs"]
mod enabled;
#[path = "../../gpu-time-macros/src/items.rs"]
mod items;
#[path = "../../gpu-time-macros/src/keys.rs"]
mod keys;
#[allow(dead_code, reason = "there is no call whose source could be looked at")]
#[path = "../../gpu-time-macros/src/unbound.rs"]
mod unbound;

fuzz_target!(|text: &str| {
    let (args, item) = text.split_once('\n').unwrap_or((text, "fn f(stream: &Stream) {}"));
    let (Ok(args), Ok(item)) = (TokenStream::from_str(args), TokenStream::from_str(item)) else {
        return;
    };
    for is_unbound in [false, true] {
        enabled::block::guard(args.clone(), is_unbound);
    }
    enabled::block::scope(quote::quote!(#args { #item }));
    let was_function = syn::parse2::<syn::ItemFn>(item.clone()).is_ok();
    let output = enabled::rewrite::rewrite(args, item);
    if was_function && let Err(error) = syn::parse2::<syn::File>(output.clone()) {
        panic!("{error}: {output}");
    }
});
