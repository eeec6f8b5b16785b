//! The kernels, copies and memsets that recorded calls enqueued.

use serde::{Deserialize, Serialize};

use crate::Stats;
use crate::kinds::named;
use crate::largest::{sort_by_largest, sort_by_name};

/// Figures of the recorded calls of a series: the calls whose work CUPTI recorded.
///
/// A recorded call has no event brackets. The work that inner functions enqueue is included, except
/// in the self busy time. Without recorded calls, all values are 0 or empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct KernelTimes {
    /// The number of recorded calls.
    pub opened: u64,
    /// The time per call during which at least one of its kernels, copies or memsets ran. In a
    /// merged report, this and the following statistics are `None` if several of its reports have
    /// them, because percentiles cannot be combined.
    pub busy_ns: Option<Stats>,
    /// The part of the busy time that no inner annotated function accounts for.
    pub self_busy_ns: Option<Stats>,
    /// The time per call from the start of the first kernel to the end of the last one.
    pub span_ns: Option<Stats>,
    /// The part of the span during which none of the call's kernels ran.
    pub gaps_ns: Option<Stats>,
    /// The mean number of kernels per call, without copies and memsets.
    pub kernels_per_call: Option<f64>,
    /// The largest number of streams that one call used.
    pub streams: Option<u32>,
    /// The different kernels, copies and memsets, largest share first. There are at most 256. If
    /// there are more, the launch configurations of a kernel are combined into an entry whose grid
    /// is zero. If that does not suffice, and in merged reports, further kernels are combined into
    /// an entry `<other>`.
    pub kernels: Vec<Kernel>,
    /// The work that events do not bracket, so that the event times of the series do not include
    /// it.
    pub elsewhere: Vec<Elsewhere>,
    /// The number of records for which CUPTI knew no times. They are not included in any figure.
    pub zero_times: u64,
}

impl KernelTimes {
    /// Sorts the kernels: those with the largest share of the calls' time first.
    #[doc(hidden)]
    pub fn sort_kernels(&mut self) {
        sort_by_name(&mut self.kernels, |kernel| &kernel.name);
        sort_by_largest(&mut self.kernels, |kernel| kernel.share);
    }

    /// Returns `true` if a merged report left out statistics, because several of its reports had
    /// them.
    pub(crate) fn has_dropped(&self) -> bool {
        self.opened > 0 && self.span_ns.is_none()
            || self.kernels.iter().any(|kernel| kernel.time_ns.is_none())
    }
}

/// A kernel with one launch configuration or with several, a kind of copy, or a memset.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Kernel {
    /// The demangled name, or a name in brackets for a copy or a memset, such as `[copy HtoD]`.
    pub name: String,
    /// The number of blocks in each dimension, or zeros for a copy, a memset, or a kernel with
    /// several launch configurations.
    pub grid: [u32; 3],
    /// The number of threads of a block in each dimension.
    pub block: [u32; 3],
    /// The number of registers per thread.
    pub registers: u16,
    /// The shared memory per block in bytes, static and dynamic.
    pub shared_bytes: u32,
    /// The mean number of launches per call. Each recorded call counts for as many as it represents.
    pub per_call: f64,
    /// The number of launches in all recorded calls.
    pub count: u64,
    /// The statistics of the launches' times. `None` in a merged report, if several of its reports
    /// have the kernel.
    pub time_ns: Option<Stats>,
    /// The total time of the launches, in nanoseconds.
    pub total_ns: f64,
    /// The total time as a share of the total time of all kernels of the series.
    pub share: f64,
}

impl Kernel {
    /// The name of the entry that combines all kernels beyond the limit.
    #[doc(hidden)]
    pub const OTHER: &str = "<other>";

    /// Returns `true` for a copy, which has its kind in brackets as its name.
    pub(crate) fn is_copy(&self) -> bool {
        self.name.starts_with("[copy")
    }

    /// Returns `true` for a memset.
    pub(crate) fn is_memset(&self) -> bool {
        self.name.starts_with("[memset")
    }

    /// Returns the launch configuration, or the empty text for a copy or a memset.
    pub(crate) fn configuration(&self) -> String {
        if self.grid == [0; 3] {
            let is_kernel = !self.is_copy() && !self.is_memset();
            let has_shapes = self.name != Kernel::OTHER && is_kernel;
            return if has_shapes { "several shapes".to_owned() } else { String::new() };
        }
        let [grid, block] = [self.grid, self.block].map(|[x, y, z]| match (y, z) {
            (1, 1) => x.to_string(),
            (_, 1) => format!("{x}×{y}"),
            _ => format!("{x}×{y}×{z}"),
        });
        format!("grid {grid}, block {block}")
    }
}

/// Work that calls enqueued outside of their event brackets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Elsewhere {
    /// The demangled name of the kernel.
    pub name: String,
    /// The number of launches.
    pub count: u64,
    /// The total time of these launches, in nanoseconds.
    pub total_ns: f64,
    /// The reason: `other-stream`, the stream was not the timed one; `after-stop`, the work was
    /// enqueued outside of the launches that events bracket.
    pub why: ElsewhereReason,
}

impl Elsewhere {
    /// Creates work with this many launches and their total time.
    #[doc(hidden)]
    pub fn new(name: String, count: u64, total_ns: f64, why: ElsewhereReason) -> Elsewhere {
        Elsewhere { name, count, total_ns, why }
    }
}

named! {
    /// The reason why events do not bracket some of a call's work.
    #[derive(PartialOrd, Ord, Hash)]
    #[non_exhaustive]
    pub enum ElsewhereReason {
        /// The work was on a stream other than the timed one.
        OtherStream = "other-stream",
        /// The work was enqueued outside of the launches that events bracket: before the first one, or
        /// after the stop event of one.
        AfterStop = "after-stop",
    }
}

/// Writes the figures as members of the series, with empty values if there are none, so that
/// scripts need no default.
pub(super) mod flat {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
    use serde_json::{Map, Value};

    use super::KernelTimes;

    pub fn serialize<S: Serializer>(times: &Option<KernelTimes>, to: S) -> Result<S::Ok, S::Error> {
        match times {
            Some(times) => times.serialize(to),
            None => KernelTimes::default().serialize(to),
        }
    }

    /// Goes through `Value`, because flattened numbers arrive as maps if the program enables
    /// serde_json's feature `arbitrary_precision`, and only `Value` can read those.
    pub fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<KernelTimes>, D::Error> {
        let members = Value::Object(Map::deserialize(from)?);
        let times = KernelTimes::deserialize(members).map_err(de::Error::custom)?;
        Ok(Some(times).filter(|times| times.opened > 0))
    }
}
