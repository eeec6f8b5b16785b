//! The values of keys.

use proc_macro2::Ident;

/// A value, and its key, which locates later errors about the value.
pub struct Arg<T> {
    pub key: Ident,
    pub value: T,
}

/// The extent of a bracket. The runtime's `ScopeKind` has variants of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Launches,
    Body,
}

/// The clock that times the function. The runtime's `Clock` has variants of the same names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    Events,
    Sync,
    Host,
    Kernels,
}
