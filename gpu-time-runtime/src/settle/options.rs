//! The options of `until_stable`.

use std::time::Duration;

use crate::base::console;
use crate::call::stream::RawHandle;
use crate::types::attribute::Cold;
use crate::types::handles::Stream;

/// Fewer samples have no 95 % interval of their median.
const FEWEST: u64 = 6;
/// When [`until_stable`](crate::until_stable) is content, and how long it tries.
///
/// | | default | NVBench has |
/// |---|---|---|
/// | [`margin`](Settle::margin) | 0.5 % of the median, by its 95 % interval | `--max-noise 0.5`: percent of the mean, by the standard deviation |
/// | [`min_samples`](Settle::min_samples) | 50 | `--min-samples 10` |
/// | [`min_time`](Settle::min_time) | 0.5 s | `--min-time 0.5`, of GPU time |
/// | [`timeout`](Settle::timeout) | 15 s | `--timeout 15` |
/// | [`cold`](Settle::cold), [`cold_dirty`](Settle::cold_dirty), [`as_found`](Settle::as_found) | as each function says | cold, by writing |
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
    /// How narrow the 95 % interval of each median is to become: half of its width as a share of the
    /// median, above 0 and below 1. An interval that is no wider than what times are told apart by
    /// (the device's event step; above 1 ms, 0.4 % of the time) counts as narrow enough, because more
    /// samples would not make it narrower.
    ///
    /// Another value is named in a line on stderr, and changes nothing.
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

    /// How many samples each series is to get from this run, whatever it had before: fed ones, or
    /// starved ones where there are no fed ones. It is at least 6, since fewer have no interval.
    pub fn min_samples(mut self, count: u64) -> Self {
        self.min_samples = count.max(FEWEST);
        self
    }

    /// For how long the closure is called at least, on the wall clock: a GPU that was idle takes a
    /// while to reach the clocks that it then keeps. The timeout wins over it.
    pub fn min_time(mut self, time: Duration) -> Self {
        self.min_time = time;
        self
    }

    /// When to give up, on the wall clock. A call that is under way then is waited for.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.timeout = time;
        self
    }

    /// Every timed call of the process runs with the L2 as found while the closure is called, also
    /// those whose attribute says `cold`. `GPU_TIME_COLD` wins over this and the next two.
    pub fn as_found(mut self) -> Self {
        self.cold = Some(None);
        self
    }

    /// Every timed call of the process runs as with `cold` while the closure is called.
    pub fn cold(mut self) -> Self {
        self.cold = Some(Some(Cold::Clean));
        self
    }

    /// Every timed call of the process runs as with `cold = "dirty"` while the closure is called.
    pub fn cold_dirty(mut self) -> Self {
        self.cold = Some(Some(Cold::Dirty));
        self
    }

    /// Times calls back to back: the closure is called once as ever, then captured so many times (at
    /// least once) into a graph, which is replayed until the time of a replay has settled. That is
    /// [`Settled::back_to_back`], and the only thing that is to settle.
    ///
    /// `stream` is what the closure launches on, by its handle, which any cudarc has:
    /// `stream.cu_stream()`. As a raw `CUstream` in the attribute, it is trusted to be one, and to outlive the
    /// run; no other thread may use it meanwhile. The run waits for it after each replay.
    ///
    /// While it is captured, the closure can neither wait for the stream nor allocate: calls that do
    /// answer an error, and then nothing is replayed and the run says why. What the closure does on the
    /// host happens once for each capture, and not in replays. Annotated functions get no events into
    /// this graph; such calls count as lost to `capture`. The L2 is as the call before leaves it, whatever
    /// `cold` says. cudarc's event tracking is to be off, as it makes the stream wait for what lies
    /// outside of the capture.
    pub fn graph(mut self, stream: impl RawHandle, calls: u32) -> Self {
        let stream = Stream(stream.gpu_time_address());
        self.graph = Some(Plan { stream, calls: calls.max(1) });
        self
    }
}

/// Which stream the closure launches on, and how often it is captured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    pub stream: Stream,
    pub calls: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_margin_that_makes_no_sense_changes_nothing() {
        for share in [0.0, -0.1, 1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Settle::default().margin(share), Settle::default(), "{share}");
        }
        assert_eq!(Settle::default().margin(0.02).margin, 0.02);
    }
}
