//! The ways in which a call can be timed, of which the runtime chooses one for each call.

use crate::call::call_on_stream::CallOnStream;
use crate::call::host::HostCall;
use crate::call::opened::OpenedCall;
use crate::call::stream::StreamGuard;
use crate::record::timeline::CallId;
use crate::site::cost::CostGuard;
use crate::types::sample::Lost;

/// A timed call. The variant says what times it.
pub(crate) enum TimedCall<G> {
    /// Events or barriers on a stream.
    OnStream(CallOnStream<G>),
    /// The host clock.
    Host(HostCall),
    /// CUPTI, which records its kernels.
    Opened(OpenedCall),
    #[cfg(test)]
    Logged(logged::Log),
}

impl<G: StreamGuard> TimedCall<G> {
    /// Ends the call and returns its number in the trace. `lost` is the reason if there is no
    /// sample; `timing` meters the host time spent here.
    #[inline]
    pub fn end(&mut self, lost: Option<Lost>, timing: &mut CostGuard<'_>) -> CallId {
        match self {
            TimedCall::OnStream(call) => call.end(lost, timing),
            TimedCall::Host(call) => call.end(lost),
            TimedCall::Opened(call) => call.end(lost),
            #[cfg(test)]
            TimedCall::Logged(log) => log.end(lost),
        }
    }

    /// Marks that an async function stops running on this thread: it begins to wait for a future, or a
    /// poll of that future has ended. A call may end after this without a [`resume`](Self::resume).
    #[inline]
    pub fn pause(&self) {
        match self {
            TimedCall::OnStream(call) => call.pause(),
            TimedCall::Host(_) => {}
            TimedCall::Opened(call) => call.pause(),
            #[cfg(test)]
            TimedCall::Logged(log) => log.add("pause"),
        }
    }

    /// Marks that an async function, or a future that it waits for, runs on this thread until the next
    /// [`pause`](Self::pause). A call begins as resumed.
    #[inline]
    pub fn resume(&self) {
        match self {
            TimedCall::OnStream(call) => call.resume(),
            TimedCall::Host(_) => {}
            TimedCall::Opened(call) => call.resume(),
            #[cfg(test)]
            TimedCall::Logged(log) => log.add("resume"),
        }
    }
}

/// Calls that log what happens to them, for tests of the scope.
#[cfg(test)]
pub(super) mod logged {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Default, Clone)]
    pub(crate) struct Log(Arc<Mutex<Vec<&'static str>>>);

    impl Log {
        pub fn add(&self, entry: &'static str) {
            self.0.lock().unwrap().push(entry);
        }

        /// Returns the entries, and removes them.
        pub fn take(&self) -> Vec<&'static str> {
            std::mem::take(&mut self.0.lock().unwrap())
        }

        pub fn end(&self, lost: Option<Lost>) -> CallId {
            self.add(match lost {
                None => "end",
                Some(Lost::Cancelled) => "cancelled",
                Some(_) => "failed",
            });
            CallId::default()
        }
    }
}
