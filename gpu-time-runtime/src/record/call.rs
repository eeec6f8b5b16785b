//! The facts of one timed call that its brackets and graph nodes share.

use crate::cuda::Context;
use crate::record::threads::ThreadRecorder;
use crate::record::timeline::CallId;
use crate::site::callsite::CallSite;
use crate::types::handles::Stream;
use crate::types::key::SeriesKey;

/// Site, lane, context and stream of one call.
pub(crate) struct StreamCall {
    pub site: &'static CallSite,
    /// The lane of the thread that entered. All brackets of the call stay with it.
    pub thread: &'static ThreadRecorder,
    pub context: &'static Context,
    pub stream: Stream,
    /// cudarc puts waits and records of its own around what is launched.
    pub tracked: bool,
    /// The call as a trace knows it.
    pub call_id: CallId,
    /// What splits the site into series.
    pub key: SeriesKey,
    /// How many calls this one stands for.
    pub weight: f32,
}
