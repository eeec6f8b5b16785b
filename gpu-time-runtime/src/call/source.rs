//! Values passed in by generated code: a call's stream, key and workload.

use crate::types::{handles::Stream, key::KeyText, workload::Workload};

/// The stream that a call names.
pub enum Source<G> {
    /// A stream.
    Stream(StreamSource<G>),
    /// The function names no stream, or the expression was `None` or `Err`, so that the call runs on the CPU.
    None,
    /// A value of this type, which may return any handle, so the call is not timed.
    Unknown(&'static str),
}

/// A stream, as described by the application's types.
pub struct StreamSource<G> {
    pub(crate) stream: Stream,
    /// The `CUcontext`, or 0 for a raw handle. 0 stands for the stream's own context, or for the
    /// current context if this is the NULL stream or the per-thread stream.
    pub(crate) context: usize,
    /// Set if cudarc waits for and records events of its own around launches.
    pub(crate) tracked: bool,
    /// Detects whether the stream has been dropped.
    pub(crate) guard: G,
}

/// A call's key and workload, each evaluated at most once.
pub trait Details {
    /// The expressions that remain after the key.
    type Rest;

    /// The attribute has a `key`, `bytes` or `flops`. Such calls do not lease warm-up calls.
    const HAS_DETAILS: bool;

    /// Evaluates `key`. Called for timed calls, and to find out which series a warm-up call belongs
    /// to.
    fn key(self) -> (Option<KeyText>, Self::Rest);

    /// Evaluates `bytes` and `flops`. Called only for timed calls.
    fn work(rest: Self::Rest) -> Workload;
}

/// The details for an attribute without `key`, `bytes` and `flops`.
pub struct NoDetails;

impl Details for NoDetails {
    type Rest = ();

    const HAS_DETAILS: bool = false;

    #[inline(always)]
    fn key(self) -> (Option<KeyText>, ()) {
        (None, ())
    }

    #[inline(always)]
    fn work((): ()) -> Workload {
        Workload::UNKNOWN
    }
}

/// The user's expressions as closures.
pub struct CallDetails<K, W> {
    /// `key = EXPR`.
    pub key: K,
    /// `bytes = EXPR`, `flops = EXPR`.
    pub work: W,
}

impl<K, W> Details for CallDetails<K, W>
where
    K: FnOnce() -> Option<KeyText>,
    W: FnOnce() -> Workload,
{
    type Rest = W;

    const HAS_DETAILS: bool = true;

    #[inline(always)]
    fn key(self) -> (Option<KeyText>, W) {
        ((self.key)(), self.work)
    }

    #[inline(always)]
    fn work(rest: W) -> Workload {
        rest()
    }
}
