//! Marks and words used in cells of the table and the page, which of them a report has printed, and what they mean.

use std::cell::RefCell;
use std::collections::BTreeSet;

/// Marks a time that may be longer than the timed work.
pub const UPPER_BOUND: &str = "≤";
/// Marks a share that may be too large or too small, because a time that it is computed from is an
/// upper bound.
pub const UNCERTAIN: &str = "?";
/// Marks a rate that may be higher.
pub const LOWER_BOUND: &str = "≥";
/// Marks a total that is estimated from a sample of the calls.
pub const ESTIMATE: &str = "~";
/// Marks a row that was timed between two stream barriers.
pub const SYNC: &str = "sync";
/// Marks a row that was timed only by the host clock.
pub const HOST: &str = "host";
/// Marks a row whose times are the busy times of recorded calls.
pub const KERNELS: &str = "kernels";
/// Marks a launch in a graph, which has samples of replays.
pub const GRAPH: &str = "graph";
/// Precedes the number of launches per call.
pub const PER_CALL: &str = "×";
/// Marks times that still include the device's bias.
pub const RAW: &str = "raw";
/// The header of the column with shares of all GPU time.
pub const SHARE: &str = "share";
/// The header of the column with the mean GPU time per call in the call tree. Explained where totals have
/// work that it lacks.
pub const GPU_PER_CALL: &str = "GPU/call";
/// The header of the bandwidth column.
pub const GB_PER_S: &str = "GB/s";
/// A mark with its meaning.
pub struct Mark {
    pub mark: &'static str,
    /// A few words.
    pub short: &'static str,
    /// A sentence.
    pub long: &'static str,
}

const fn mark(mark: &'static str, short: &'static str, long: &'static str) -> Mark {
    Mark { mark, short, long }
}

/// The marks that are explained, in the order of the explanations.
static ALL: [Mark; 13] = [
    mark(
        UPPER_BOUND,
        "upper bound",
        "upper bound: the GPU may have waited for the CPU in all samples or, for a total, in more than 5% of it, or \
         most samples contain other brackets; `sleep` usually prevents both",
    ),
    mark(LOWER_BOUND, "lower bound", "lower bound: computed from times that are upper bounds"),
    mark(
        ESTIMATE,
        "estimate",
        "estimated from sampled calls or windows, ± its standard error; ±?, the sample cannot tell it",
    ),
    mark(
        RAW,
        "bias not removed",
        "calls made different numbers of launches, so the bias is removed from the total only",
    ),
    mark(HOST, "wall time on the CPU", "wall time on the CPU, not GPU time, so it has no share"),
    mark(
        SYNC,
        "wall time between barriers",
        "wall time between two stream barriers, launching and waiting included, so it has no share",
    ),
    mark(
        KERNELS,
        "time that the kernels ran",
        "time per call during which its kernels ran, by CUPTI's records",
    ),
    mark(
        PER_CALL,
        "launches per call",
        "launches per call; those of a kernel are per recorded call, and its share is of the kernel time of the function",
    ),
    mark(
        GB_PER_S,
        "share of peak",
        "in parentheses, the share of the memory's peak bandwidth; above 100%, caches served a part",
    ),
    mark(
        GRAPH,
        "sampled replays of a graph node",
        "replays of a graph node; not every replay is sampled",
    ),
    mark(SHARE, "of GPU time", "of the GPU time, without what functions inside account for"),
    mark(
        GPU_PER_CALL,
        "by events, on the call's own stream only",
        "by events, on the call's own stream; the total has the work of inner functions on other streams too",
    ),
    mark(
        UNCERTAIN,
        "uncertain share",
        "share that may be too large or too small, because some of the times are upper bounds, or only some of the \
         devices or processes had windows",
    ),
];

/// The marks that a report has printed, which are those that its legend explains.
#[derive(Default)]
pub struct Printed(RefCell<BTreeSet<&'static str>>);

impl Printed {
    /// Returns the mark, which the caller prints.
    pub fn print(&self, mark: &'static str) -> &'static str {
        self.0.borrow_mut().insert(mark);
        mark
    }

    /// Returns the mark for a figure that has it, and nothing for others.
    pub fn mark(&self, has: bool, mark: &'static str) -> &'static str {
        if has { self.print(mark) } else { "" }
    }

    /// Returns the mark of a figure that is only an upper bound, or nothing.
    pub fn bound(&self, is_bound: bool) -> &'static str {
        self.mark(is_bound, UPPER_BOUND)
    }

    /// Returns the marks to explain.
    pub fn explained(&self) -> impl Iterator<Item = &'static Mark> {
        ALL.iter().filter(|mark| self.0.borrow().contains(mark.mark))
    }
}
