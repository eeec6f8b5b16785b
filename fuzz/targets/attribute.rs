//! Expands the attribute. The first line of the input contains its arguments, and the rest is the
//! item. A function must expand to items, with or without errors. Also expands `scope!` and `guard!` with
//! the same arguments.

#![no_main]

use std::str::FromStr;

use libfuzzer_sys::fuzz_target;
use proc_macro2::TokenStream;

// A procedural macro crate exports only its macros, so its modules are compiled here.
#[path = "../../gpu-time-macros/src/args.rs"]
mod args;
#[path = "../../gpu-time-macros/src/awaits.rs"]
mod awaits;
#[path = "../../gpu-time-macros/src/bindings.rs"]
mod bindings;
#[path = "../../gpu-time-macros/src/block.rs"]
mod block;
#[path = "../../gpu-time-macros/src/conflicts.rs"]
mod conflicts;
#[path = "../../gpu-time-macros/src/container.rs"]
mod container;
#[path = "../../gpu-time-macros/src/errors.rs"]
mod errors;
#[path = "../../gpu-time-macros/src/expand.rs"]
mod expand;
#[path = "../../gpu-time-macros/src/fragments/mod.rs"]
mod fragments;
#[path = "../../gpu-time-macros/src/func.rs"]
mod func;
#[path = "../../gpu-time-macros/src/inherited.rs"]
mod inherited;
#[path = "../../gpu-time-macros/src/items.rs"]
mod items;
#[path = "../../gpu-time-macros/src/keys.rs"]
mod keys;
#[path = "../../gpu-time-macros/src/launches/mod.rs"]
mod launches;
#[path = "../../gpu-time-macros/src/marks.rs"]
mod marks;
#[path = "../../gpu-time-macros/src/pair.rs"]
mod pair;
#[path = "../../gpu-time-macros/src/paths.rs"]
mod paths;
#[path = "../../gpu-time-macros/src/plan.rs"]
mod plan;
#[path = "../../gpu-time-macros/src/positions.rs"]
mod positions;
#[path = "../../gpu-time-macros/src/rewrite.rs"]
mod rewrite;
#[path = "../../gpu-time-macros/src/source.rs"]
mod source;
#[path = "../../gpu-time-macros/src/values.rs"]
mod values;

fuzz_target!(|text: &str| {
    let (args, item) = text.split_once('\n').unwrap_or((text, "fn f(stream: &Stream) {}"));
    let (Ok(args), Ok(item)) = (TokenStream::from_str(args), TokenStream::from_str(item)) else {
        return;
    };
    block::guard(args.clone());
    block::scope(quote::quote!(#args { #item }));
    let was_function = syn::parse2::<syn::ItemFn>(item.clone()).is_ok();
    let output = rewrite::rewrite(args, item);
    if was_function && let Err(error) = syn::parse2::<syn::File>(output.clone()) {
        panic!("{error}: {output}");
    }
});
