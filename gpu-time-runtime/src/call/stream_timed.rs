//! The ways of timing a call that may have a stream.

use crate::call::host::HostCall;
use crate::call::scope::TimedCall;
use crate::record::call::StreamCall;

/// A way of timing a call whose `stream` expression gives a stream or `None`.
pub(crate) trait StreamTimed<G, W>: TimedCall + Sized {
    /// `true` if beginning and ending such a call waits for the GPU.
    const WAITS: bool = false;

    /// Begins the call on its stream; `None` if it was lost.
    fn on_stream(call: StreamCall, guard: G, work: W) -> Option<Self>;

    /// Begins a call without a stream, which the host clock times.
    fn on_host(call: HostCall<W>) -> Self;
}
