//! The facts of one timed call that its brackets and graph nodes share.

use crate::cuda::Context;
use crate::record::threads::ThreadRecorder;
use crate::record::timeline::CallId;
use crate::site::callsite::CallSite;
use crate::types::handles::Stream;
use crate::types::key::SeriesKey;

/// One timed call on a stream: its site, thread, context and stream.
pub(crate) struct StreamCall {
    pub site: &'static CallSite,
    /// The recorder of the thread that began the call. All brackets of the call stay with it.
    pub thread: &'static ThreadRecorder,
    pub context: &'static Context,
    pub stream: Stream,
    /// cudarc enqueues waits and records of its own around the launches.
    pub tracked: bool,
    /// The call's id in the trace.
    pub call_id: CallId,
    /// The value that splits the site into series.
    pub key: SeriesKey,
    /// Calls that this one stands for.
    pub weight: f32,
}
