//! Values passed in by generated code: a call's stream, key and workload.

use crate::call::first;
use crate::site::{callsite::CallSite, counters::CallCounters};
use crate::types::{handles::Stream, key::KeyText, workload::Workload};

/// The value of a `stream` expression.
pub enum Source<G> {
    /// A stream.
    Stream(StreamSource<G>),
    /// The expression was `None` or `Err`, so the call runs on the CPU.
    Host,
}

/// A stream, as described by the application's types.
pub struct StreamSource<G> {
    pub(crate) stream: Stream,
    /// The `CUcontext`, or 0 for a raw handle. 0 stands for the stream's own context, or for the
    /// current context if this is the NULL stream or the per-thread stream.
    pub(crate) context: usize,
    /// Set if cudarc enqueues its own waits and records around launches.
    pub(crate) tracked: bool,
    /// Detects whether the stream has been dropped.
    pub(crate) guard: G,
}

/// The warm-up calls of a site that the calling thread has leased.
#[derive(Clone, Copy)]
pub struct Leases(Option<(&'static CallSite, &'static CallCounters)>);

impl Leases {
    /// No leases, for calls that are timed regardless of warm-up or have it checked later.
    pub(crate) const NONE: Leases = Leases(None);

    #[inline(always)]
    pub(crate) fn of(site: &'static CallSite, counters: Option<&'static CallCounters>) -> Leases {
        Leases(counters.map(|counters| (site, counters)))
    }

    /// Uses up a leased warm-up call in this context. Returns `false` if there is none.
    #[inline(always)]
    fn take(self, context: usize) -> bool {
        self.0.is_some_and(|(site, counters)| {
            !site.is_plain() && context != 0 && counters.pass_over(context, site.rate.epoch())
        })
    }
}

impl<G> Source<G> {
    /// Describes a stream. Must be called while the value of the `stream` expression is alive. Returns
    /// `None` if the call uses up a leased warm-up call, which needs neither `tracked` nor `guard`.
    ///
    /// If the stream is never destroyed, that value may be a temporary and the last owner of the
    /// context. Therefore the context is retained before the value is dropped.
    #[inline(always)]
    pub fn stream(
        stream: usize,
        context: usize,
        tracked: impl FnOnce() -> bool,
        guard: impl FnOnce() -> G,
        leases: Leases,
    ) -> Option<Source<G>> {
        if leases.take(context) {
            return None;
        }
        let stream = Stream(stream);
        if stream.is_implicit() && context != 0 {
            first::register_context(stream, context);
        }
        let (tracked, guard) = (tracked(), guard());
        Some(Source::Stream(StreamSource { stream, context, tracked, guard }))
    }

    /// Describes a call without a stream.
    pub fn host() -> Option<Source<G>> {
        Some(Source::Host)
    }
}

/// A call's key and workload, each evaluated at most once.
pub trait Details {
    /// The type that stores the workload in the call.
    type Work: Work;
    /// The expressions that remain after the key.
    type Rest;

    /// The attribute has a `key`, `bytes` or `flops`. Such calls do not lease warm-up calls.
    const HAS_DETAILS: bool;

    /// Evaluates `key`. Called for timed calls, and to find out which series a warm-up call belongs
    /// to.
    fn key(self) -> (Option<KeyText>, Self::Rest);

    /// Evaluates `bytes` and `flops`. Called only for timed calls.
    fn work(rest: Self::Rest) -> Self::Work;
}

/// A call's workload; `()` for calls without `bytes` and `flops`.
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

/// The details for an attribute without `key`, `bytes` and `flops`.
pub struct NoDetails;

impl Details for NoDetails {
    const HAS_DETAILS: bool = false;
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
    const HAS_DETAILS: bool = true;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::site::counters::Lease;
    use crate::types::attribute::Spec;
    use crate::types::device::DeviceId;

    const CONTEXT: usize = 7;

    fn leases(calls: u32) -> Leases {
        let site: &'static CallSite = Box::leak(Box::new(CallSite::new(Spec::named("leases"))));
        let counters: &'static CallCounters = Box::leak(Box::default());
        let lease = Lease { device: DeviceId::Cuda(0), calls };
        counters.skip_warmup(lease, CONTEXT, site.rate.epoch());
        Leases::of(site, Some(counters))
    }

    /// Describes a stream of this context. Returns `true` if the call goes on, and how many of the two
    /// closures ran.
    fn described(context: usize, leases: Leases) -> (bool, u32) {
        let (mut tracked, mut guards) = (0, 0);
        let is_tracked = || {
            tracked += 1;
            true
        };
        let source = Source::stream(0x70, context, is_tracked, || guards += 1, leases);
        (source.is_some(), tracked + guards)
    }

    #[test]
    fn leased_call_finds_out_nothing_about_its_stream() {
        let leases = leases(2);
        assert_eq!(described(CONTEXT, leases), (false, 0));
        assert_eq!(described(CONTEXT + 1, leases), (true, 2), "another context");
        assert_eq!(described(0, leases), (true, 2), "a raw handle");
        assert_eq!(described(CONTEXT, Leases::NONE), (true, 2));
        assert_eq!(described(CONTEXT, leases), (false, 0));
        assert_eq!(described(CONTEXT, leases), (true, 2), "all are used up");
    }
}
