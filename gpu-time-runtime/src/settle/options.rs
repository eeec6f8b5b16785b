//! Options for `until_stable`.

use std::time::Duration;

use gpu_time_report::FEWEST_WITH_INTERVAL;

use crate::base::console;
use crate::types::{attribute::Cold, gpu_stream::GraphStream, handles::Stream};

/// Options for [`until_stable`](crate::until_stable): the precision to reach, and the time to
/// spend.
///
/// | | default | NVBench has |
/// |---|---|---|
/// | [`margin`](Settle::margin) | 0.5 % of the median, by its 95 % interval | `--max-noise 0.5`: percent of the mean, by the standard deviation |
/// | [`min_samples`](Settle::min_samples) | 50 | `--min-samples 10` |
/// | [`min_time`](Settle::min_time) | 0.5 s | `--min-time 0.5`, of GPU time |
/// | [`timeout`](Settle::timeout) | 15 s | `--timeout 15` |
/// | [`cold`](Settle::cold), [`cold_dirty`](Settle::cold_dirty), [`as_found`](Settle::as_found) | by each function's attribute | cold, by writing |
/// | [`graph`](Settle::graph) | no | "batch", without a graph |
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Settle {
    pub(super) margin: f64,
    pub(super) min_samples: u64,
    pub(super) min_time: Duration,
    pub(super) timeout: Duration,
    pub(super) cold: Option<Option<Cold>>,
    pub(super) graph: Option<Plan>,
}

impl Default for Settle {
    fn default() -> Self {
        Settle {
            margin: 0.005,
            min_samples: 50,
            min_time: Duration::from_millis(500),
            timeout: Duration::from_secs(15),
            cold: None,
            graph: None,
        }
    }
}

impl Settle {
    /// Sets the required precision of each median: half the width of its 95 % interval as a
    /// fraction of the median, above 0 and below 1. An interval no wider than the resolution of the
    /// times (the device's event step, or 0.4 % for times above 1 ms) counts as narrow enough,
    /// because more samples would not make it narrower.
    ///
    /// An invalid value is reported on stderr and ignored.
    pub fn margin(mut self, share: f64) -> Self {
        if share > 0.0 && share < 1.0 {
            self.margin = share;
        } else {
            console::say(&format!(
                "invalid value `{share}` for `Settle::margin`: expected a share above 0 and below 1, such \
                 as `0.005`"
            ));
        }
        self
    }

    /// Sets the minimum number of samples per series in this run, not counting earlier ones: fed
    /// samples, or starved ones if none are fed, or opened calls with `clock = "kernels"`. Values
    /// below 20 count as 20, because fewer samples do not give an interval.
    pub fn min_samples(mut self, count: u64) -> Self {
        self.min_samples = count.max(FEWEST_WITH_INTERVAL);
        self
    }

    /// Sets the minimum wall-clock time for calling the closure, because an idle GPU takes a while
    /// to reach its sustained clocks. The timeout takes precedence.
    pub fn min_time(mut self, time: Duration) -> Self {
        self.min_time = time;
        self
    }

    /// Sets the wall-clock time after which the run stops. A call in progress is completed.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    /// During the run, leaves the L2 as found for every timed call in the process, even if its
    /// attribute has `cold`. `GPU_TIME_COLD` takes precedence over this and the next two options.
    pub fn as_found(mut self) -> Self {
        self.cold = Some(None);
        self
    }

    /// During the run, applies `cold` to every timed call in the process.
    pub fn cold(mut self) -> Self {
        self.cold = Some(Some(Cold::Clean));
        self
    }

    /// During the run, applies `cold = "dirty"` to every timed call in the process.
    pub fn cold_dirty(mut self) -> Self {
        self.cold = Some(Some(Cold::Dirty));
        self
    }

    /// Times calls back to back: calls the closure once normally, captures it `calls` times (at
    /// least once) into a graph, and replays the graph until the replay time has settled. The
    /// result is [`Settled::back_to_back`](crate::Settled::back_to_back). No other series has to
    /// settle.
    ///
    /// `stream` is the stream on which the closure launches, given as a
    /// [`RawStream`](crate::RawStream): a constant such as
    /// [`PER_THREAD_STREAM`](crate::PER_THREAD_STREAM) or, with any cudarc,
    /// `unsafe { gpu_time::raw_stream(stream.cu_stream()) }`. No other thread may use it during the
    /// run. The run waits for the stream after each replay.
    ///
    /// During the capture, the closure can neither wait for the stream nor allocate. Such calls
    /// return an error; nothing is then replayed, and the run reports the reason. The closure's
    /// host work runs once per captured call, but not in replays. Annotated functions do not record
    /// events into this graph, and their calls count as lost to `capture`. Each call finds the L2
    /// as the previous one left it, regardless of `cold`. cudarc's event tracking must be off,
    /// because it makes the stream wait for work outside the capture.
    pub fn graph(mut self, stream: impl GraphStream, calls: u32) -> Self {
        let stream = stream.gpu_time_raw().stream();
        self.graph = Some(Plan { stream, calls: calls.max(1) });
        self
    }
}

/// The stream on which the closure launches, and the number of calls to capture.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    pub stream: Stream,
    pub calls: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_margin_is_ignored() {
        for share in [0.0, -0.1, 1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Settle::default().margin(share), Settle::default(), "{share}");
        }
        assert_eq!(Settle::default().margin(0.02).margin, 0.02);
    }
}
