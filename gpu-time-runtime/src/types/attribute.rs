//! What the attribute says of one function.

use crate::types::sampling::Sampling;
pub use gpu_time_report::{Clock, Remark, ScopeKind};

/// What the attribute said, as constants that the compiler checked.
///
/// Generated code writes this as a struct literal, so that a value of the wrong type is rustc's own
/// error at the user's own token.
pub struct Spec {
    /// Gives the type name of a marker function inside the annotated one; `label` reads it.
    pub path: fn() -> &'static str,
    /// `name = "…"`, else the path speaks.
    pub name: Option<&'static str>,
    /// Source file as `file!()` gives it.
    pub file: &'static str,
    /// Line of the function's name.
    pub line: u32,
    /// Column of the function's name.
    pub column: u32,
    /// `warmup = N`: the first N calls on each device that would otherwise be timed are not.
    pub warmup: u32,
    /// `sample = 0.01`, `every = 100`: the calls that are timed.
    pub sampling: Sampling,
    /// `cold`, `cold = "dirty"`.
    pub cold: Option<Cold>,
    /// `sleep`, `sleep = "50us"`.
    pub sleep: Option<Hold>,
    /// `graph`: launches in a capture become timed nodes of the graph.
    pub graph: bool,
    /// The function is async, so that a hold would last across its awaits: it never gets one.
    pub is_async: bool,
    /// What a bracket goes around.
    pub scope: ScopeKind,
    /// What tells the time.
    pub clock: Clock,
    /// The launches that the macro saw, in source order; empty in body scope.
    pub launches: &'static [Launch],
    /// A call makes one launch at most: then a call's sum is its launch, and is not kept twice.
    pub is_single: bool,
    /// The attribute's arguments as the user wrote them.
    pub options: &'static str,
    /// The macro's remarks on how it times the function.
    pub remarks: &'static [Remark],
}

/// A launch that the macro saw.
pub struct Launch {
    /// The method, function or macro that launches.
    pub name: &'static str,
    /// Its line.
    pub line: u32,
}

/// The state in which a flush leaves the L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cold {
    /// Evicted by reading: no line needs writing back.
    Clean,
    /// Evicted by writing: what a producer kernel leaves behind.
    Dirty,
}

/// How long the stream is held before a bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Until the bracket has been enqueued, or a deadline passes.
    UntilEnqueued,
    /// For a fixed time, in nanoseconds.
    For(u64),
}
