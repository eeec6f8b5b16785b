//! Programs that must compile, without a warning, and run with the attribute: a module each. They are odd on purpose,
//! so Clippy does not see them.
#![cfg(not(clippy))]

mod blocks;
mod containers;
mod cuda_core;
mod forbid_unsafe;
mod harness;
mod keys;
mod other_macros;
mod shadowed;
mod streams;
mod without_stream;
