//! The attribute's arguments.

use crate::types::sampling::Sampling;
pub use gpu_time_report::{Clock, Remark, ScopeKind};

/// The arguments of one attribute, as compile-time constants.
///
/// Generated code contains this as a struct literal, so rustc reports a value of the wrong type at
/// the user's own token.
pub struct Spec {
    /// Returns the type name of a marker function nested in the annotated function. `label`
    /// extracts the path from it.
    pub path: fn() -> &'static str,
    /// `name = "…"`. Without it, the function is named by its path.
    pub name: Option<&'static str>,
    /// The source file, from `file!()`.
    pub file: &'static str,
    /// The line with the function's name.
    pub line: u32,
    /// The column at which the function's name starts.
    pub column: u32,
    /// The version of the package with the function, if cargo builds it.
    pub version: Option<&'static str>,
    /// `warmup = N`: how many of the first calls on each device and with each key are left untimed.
    pub warmup: u32,
    /// `sample = 0.01` or `every = 100`: which calls are timed.
    pub sampling: Sampling,
    /// `cold` or `cold = "dirty"`.
    pub cold: Option<Cold>,
    /// `sleep` or `sleep = "50us"`.
    pub sleep: Option<Hold>,
    /// `graph`: captured launches become timed graph nodes.
    pub graph: bool,
    /// `helpers = false` turns it off: the work of helper threads may belong to the function.
    pub helpers: bool,
    /// The spec is of a span of `tracing`, not of an attribute.
    pub is_span: bool,
    /// The function is async. Its stream is never held, because the hold would outlast an await.
    pub is_async: bool,
    /// The part of the function that a bracket covers.
    pub scope: ScopeKind,
    /// The clock that times the calls.
    pub clock: Clock,
    /// The attribute gives neither a stream nor a clock, so calls are on the default stream if there is one.
    pub takes_default: bool,
    /// The launches found by the macro, in source order. Empty in body scope.
    pub launches: &'static [LaunchSpec],
    /// A call makes at most one launch. The call's sum equals that launch, so it is not recorded
    /// separately.
    pub is_single: bool,
    /// The attribute's arguments as the user wrote them.
    pub options: &'static str,
    /// The macro's remarks about how it times the function.
    pub remarks: &'static [Remark],
}

impl Spec {
    /// Creates the spec of an attribute without arguments, on a function with this name and without
    /// visible launches. For tests and benches, which have no annotated function.
    #[doc(hidden)]
    pub const fn named(name: &'static str) -> Spec {
        Spec {
            path: || "",
            name: Some(name),
            file: file!(),
            line: line!(),
            column: 1,
            version: None,
            warmup: 0,
            sampling: Sampling::ALL,
            cold: None,
            sleep: None,
            graph: false,
            helpers: true,
            is_span: false,
            is_async: false,
            scope: ScopeKind::Body,
            clock: Clock::Events,
            takes_default: false,
            launches: &[],
            is_single: false,
            options: "",
            remarks: &[],
        }
    }
}

/// A launch found by the macro.
pub struct LaunchSpec {
    /// The name of the method, function or macro that launches.
    pub name: &'static str,
    /// The line that contains the launch.
    pub line: u32,
}

/// The state in which a flush leaves the L2 cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cold {
    /// Clean: no line needs writing back.
    Clean,
    /// Dirty: lines need writing back, as after a producer kernel has run.
    Dirty,
}

/// The time for which the stream is held before a bracket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Until the bracket is enqueued or a deadline passes.
    UntilEnqueued,
    /// For a fixed time, in nanoseconds.
    For(u64),
}
