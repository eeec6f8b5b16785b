//! The ways of timing a call that may have a stream.

use crate::call::host::HostCall;
use crate::call::scope::TimedCall;
use crate::call::source::Work;
use crate::record::call::StreamCall;
use crate::record::timeline::CallId;
use crate::site::cost::Timing;
use crate::types::sample::Lost;

/// A call whose `stream` expression gives a stream or `None`.
pub enum StreamOrHost<S, W> {
    /// On a stream.
    Stream(S),
    /// On the CPU, without a stream.
    Host(HostCall<W>),
}

/// A way of timing a call on a stream.
pub(crate) trait StreamTimed<G, W>: TimedCall + Sized {
    /// `true` if beginning and ending such a call waits for the GPU.
    const WAITS: bool = false;

    /// Begins the call; `None` if it was lost.
    fn begin(call: StreamCall, guard: G, work: W) -> Option<Self>;
}

impl<S: TimedCall, W: Work> TimedCall for StreamOrHost<S, W> {
    #[inline]
    fn end(&mut self, lost: Option<Lost>, timing: &mut Timing<'_>) -> CallId {
        match self {
            StreamOrHost::Stream(call) => call.end(lost, timing),
            StreamOrHost::Host(call) => call.end(lost, timing),
        }
    }
}
