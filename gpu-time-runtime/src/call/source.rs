//! The values that generated code passes in: the stream of a call, its key and its workload.

use crate::call::first;
use crate::types::{handles::Stream, key::KeyText, workload::Workload};

/// The value of a `stream` expression.
pub enum Source<G> {
    /// A stream.
    Stream(StreamSource<G>),
    /// The expression was `None` or `Err`: the call runs on the CPU.
    Host,
}

/// A stream as described by the application's types.
pub struct StreamSource<G> {
    pub(crate) stream: Stream,
    /// The `CUcontext`, or 0 for a raw handle. 0 stands for the stream's own context, or for the
    /// current one if this is the NULL or the per-thread stream.
    pub(crate) context: usize,
    /// cudarc enqueues waits and records of its own around launches.
    pub(crate) tracked: bool,
    /// Detects later whether the stream was dropped.
    pub(crate) guard: G,
}

impl<G> Source<G> {
    /// Describes a stream. Must be called while the value of the expression is alive.
    ///
    /// For a stream that is never destroyed, that value may be a temporary that is the last owner
    /// of the context. The context is therefore retained before the value is dropped.
    #[inline]
    pub fn stream(stream: usize, context: usize, tracked: bool, guard: G) -> Source<G> {
        let stream = Stream(stream);
        if stream.is_implicit() && context != 0 {
            first::register_context(stream, context);
        }
        Source::Stream(StreamSource { stream, context, tracked, guard })
    }
}

/// The key and the workload of a call, each evaluated at most once.
pub trait Details {
    /// The type that stores the workload in the call.
    type Work: Work;
    /// The expressions that remain after the key.
    type Rest;

    /// The attribute has a `key`.
    const HAS_KEY: bool;

    /// Evaluates `key`. Asked for timed calls, and to know which series a call warms up.
    fn key(self) -> (Option<KeyText>, Self::Rest);

    /// Evaluates `bytes` and `flops`. Called for timed calls only.
    fn work(rest: Self::Rest) -> Self::Work;
}

/// The workload of a call; `()` for calls without `bytes` and `flops`.
pub trait Work: Copy + Send + Sync + 'static {
    /// Returns the workload.
    fn get(self) -> Workload;
}

impl Work for () {
    #[inline(always)]
    fn get(self) -> Workload {
        Workload::UNKNOWN
    }
}

impl Work for Workload {
    #[inline(always)]
    fn get(self) -> Workload {
        self
    }
}

/// The details of an attribute without `key`, `bytes` and `flops`.
pub struct NoDetails;

impl Details for NoDetails {
    const HAS_KEY: bool = false;
    type Work = ();
    type Rest = ();

    #[inline(always)]
    fn key(self) -> (Option<KeyText>, ()) {
        (None, ())
    }

    #[inline(always)]
    fn work((): ()) {}
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
    // Also set for `bytes` and `flops` alone: such a call leases no warm-up.
    const HAS_KEY: bool = true;
    type Work = Workload;
    type Rest = W;

    #[inline(always)]
    fn key(self) -> (Option<KeyText>, W) {
        ((self.key)(), self.work)
    }

    #[inline(always)]
    fn work(rest: W) -> Workload {
        rest()
    }
}
