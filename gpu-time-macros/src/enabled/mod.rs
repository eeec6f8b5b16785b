//! The attribute, `scope!` and `guard!` with the feature `enabled`, as functions on tokens.

mod args;
mod awaits;
mod bindings;
pub mod block;
mod conflicts;
mod container;
mod errors;
mod expand;
mod fragments;
mod func;
mod inherited;
mod launches;
mod marks;
mod paths;
mod plan;
mod positions;
mod renamed;
pub mod rewrite;
mod source;
mod values;
