//! The arguments of the attribute.

use crate::types::sampling::Sampling;
pub use gpu_time_report::{Clock, Remark, ScopeKind};

/// The arguments of one attribute, as constants that the compiler checked.
///
/// Generated code writes this as a struct literal, so that rustc reports a value of the wrong type at the
/// user's token.
pub struct Spec {
    /// Returns the type name of a marker function inside the annotated one, from which `label` takes the path.
    pub path: fn() -> &'static str,
    /// `name = "…"`; by default the path is the name.
    pub name: Option<&'static str>,
    /// The source file, by `file!()`.
    pub file: &'static str,
    /// The line of the function's name.
    pub line: u32,
    /// The column of the function's name.
    pub column: u32,
    /// `warmup = N`: the number of calls on each device that are not timed at first.
    pub warmup: u32,
    /// `sample = 0.01` or `every = 100`: the calls that are timed.
    pub sampling: Sampling,
    /// `cold` or `cold = "dirty"`.
    pub cold: Option<Cold>,
    /// `sleep` or `sleep = "50us"`.
    pub sleep: Option<Hold>,
    /// `graph`: launches in a capture become timed nodes of the graph.
    pub graph: bool,
    /// The function is async. Its stream is never held, because a hold would last across awaits.
    pub is_async: bool,
    /// The extent of a bracket.
    pub scope: ScopeKind,
    /// The clock that measures the time.
    pub clock: Clock,
    /// The launches that the macro found, in source order; empty in body scope.
    pub launches: &'static [Launch],
    /// A call makes at most one launch. The sum of a call is then its launch, and is not recorded twice.
    pub is_single: bool,
    /// The attribute's arguments as the user wrote them.
    pub options: &'static str,
    /// The macro's remarks on how it times the function.
    pub remarks: &'static [Remark],
}

/// A launch that the macro found.
pub struct Launch {
    /// The name of the method, function or macro that launches.
    pub name: &'static str,
    /// The line of the launch.
    pub line: u32,
}

/// The state in which a flush leaves the L2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cold {
    /// Evicted by reading: no line needs writing back.
    Clean,
    /// Evicted by writing: lines are dirty, as after a producer kernel.
    Dirty,
}

/// The time to hold the stream before a bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Until the bracket is enqueued, or a deadline passes.
    UntilEnqueued,
    /// For a fixed time, in nanoseconds.
    For(u64),
}
