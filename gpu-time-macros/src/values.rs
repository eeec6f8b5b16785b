//! The values of keys.

use proc_macro2::Ident;
use syn::Expr;

/// A value, and its key, which locates later errors about the value.
pub struct Arg<T> {
    pub key: Ident,
    pub value: T,
}

/// The state in which a flush leaves the L2.
#[derive(Clone, Copy)]
pub enum Cold {
    Clean,
    Dirty,
}

/// The time for which a sleep kernel holds the stream.
#[derive(Clone, Copy)]
pub enum Hold {
    UntilEnqueued,
    Nanoseconds(u64),
}

/// The timed calls whose kernels are recorded.
pub enum Kernels {
    Usual,
    Share(Expr),
}

/// The extent of a bracket.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    Launches,
    Body,
}

/// The clock that times the function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    Events,
    Sync,
    Host,
    Kernels,
}
