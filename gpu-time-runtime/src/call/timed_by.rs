//! The ways in which a call can be timed, of which the runtime chooses one for each call.

use crate::call::host::HostCall;
use crate::call::opened::OpenedCall;
use crate::call::scope::TimedCall;
use crate::call::source::Work;
use crate::record::{threads::StreamCall, timeline::CallId};
use crate::site::cost::CostGuard;
use crate::types::sample::Lost;

/// A timed call. The variant says what times it.
pub enum TimedBy<S, W> {
    /// Events or barriers on a stream.
    Stream(S),
    /// The host clock.
    Host(HostCall<W>),
    /// CUPTI, which records its kernels.
    Kernels(OpenedCall),
}

/// A way of timing a call on a stream.
pub(crate) trait StreamTimed<G, W>: TimedCall + Sized {
    /// `true` if starting and ending such a call waits for the GPU.
    const WAITS: bool = false;

    /// Starts the call. Returns `None` if it was lost.
    fn begin(call: StreamCall, guard: G, work: W) -> Option<Self>;
}

impl<S: TimedCall, W: Work> TimedCall for TimedBy<S, W> {
    #[inline]
    fn end(&mut self, lost: Option<Lost>, timing: &mut CostGuard<'_>) -> CallId {
        match self {
            TimedBy::Stream(call) => call.end(lost, timing),
            TimedBy::Host(call) => call.end(lost, timing),
            TimedBy::Kernels(call) => call.end(lost, timing),
        }
    }

    #[inline]
    fn pause(&self) {
        match self {
            TimedBy::Stream(call) => call.pause(),
            TimedBy::Host(call) => call.pause(),
            TimedBy::Kernels(call) => call.pause(),
        }
    }

    #[inline]
    fn resume(&self) {
        match self {
            TimedBy::Stream(call) => call.resume(),
            TimedBy::Host(call) => call.resume(),
            TimedBy::Kernels(call) => call.resume(),
        }
    }
}
