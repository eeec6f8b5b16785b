//! Series in the report.

mod figures;
mod kernels;
mod launch;
mod run;

pub(crate) use figures::total;
pub use kernels::{Elsewhere, ElsewhereReason, Kernel, KernelTimes};
pub use launch::{Launch, Launches};
pub use run::Run;

use serde::{Deserialize, Serialize};

use crate::units::printable;
use crate::{
    Bytes, CacheState, Clock, Dependence, Flops, Histogram, Losses, Measure, Stats, Summary,
    Timeline, UnknownError,
};

/// Measurements of a function, or of one of its launches, on one device in one cache state.
///
/// Always `timed = measured + opened + in_flight + lost` and `measured = fed + starved + at_floor`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Series {
    /// `cuda:N`, `host`, or `cuda:?` if the device could not be determined.
    pub device: String,
    /// The launch, or `None` for the whole function.
    pub launch: Option<Launch>,
    /// The kind of time: `sum`, a call's launches added up; `span`, a call from the first operation
    /// that it enqueued to the last; `launch`, one launch.
    pub measure: Measure,
    /// The key value that identifies this series within the function, or `None` without a key.
    pub key: Option<String>,
    /// The state of the L2 at the start: `as-found`, `cold`, `cold-dirty`, `after-cold` or
    /// `partial`.
    pub cache: CacheState,
    /// The clock: `events`; `sync`, the host clock between two barriers; `host`; or `kernels`, if
    /// the times are the busy times of [opened](KernelTimes) calls.
    pub clock: Clock,
    /// `true` if the launch is a graph node. The samples are then replays, and not every replay is
    /// sampled.
    pub graph: bool,
    /// The number of brackets begun, or the number of calls for a sum. For graphs, this is the
    /// number of replays read, plus the number of launches lost during capture.
    pub timed: u64,
    /// The number of timed brackets or calls that gave a sample.
    pub measured: u64,
    /// The number of timed brackets or calls that the GPU had not finished.
    pub in_flight: u64,
    /// The numbers of timed brackets or calls that gave no sample, by reason.
    pub lost: Losses,
    /// The number of samples in which the GPU cannot have waited for the CPU. All samples from the
    /// clocks `sync` and `host` are counted here too; they are host time, not GPU time.
    pub fed: u64,
    /// The number of samples in which the GPU may have waited for the CPU.
    pub starved: u64,
    /// The number of samples in which nothing ran. They are not included in any statistic.
    pub at_floor: u64,
    /// The number of fed samples with a queue behind them that was long enough to lengthen their
    /// event times. A sum is counted if all of its launches are.
    pub queued: u64,
    /// The number of samples with another timed bracket inside or overlapping.
    pub nested: u64,
    /// The number of samples that include waits and records from cudarc's event tracking.
    pub tracked: u64,
    /// `true` if no sample was fed. The figures then come from starved samples and are upper
    /// bounds.
    pub upper_bound: bool,
    /// The number of launches per call, if this is a sum.
    pub launches: Option<Launches>,
    /// The number of other brackets inside each fed sample, if what they add is known. `None` also without such
    /// brackets.
    pub inner_brackets: Option<Launches>,
    /// The statistics of the raw times, or `None` without samples. What [other brackets inside](Self::inner_brackets)
    /// and a [queue](Self::queued) add has been subtracted from each of them, in total [`added_ns`](Self::added_ns).
    pub raw_ns: Option<Stats>,
    /// The statistics of the raw times minus the bias, once per bracket, and never below 0. The
    /// host clock has no bias. `None` if there are no samples, if the bias is unknown, or for a sum
    /// whose calls made different numbers of launches, because no single bias then fits. The net
    /// sum is then the raw sum minus the bias times [`Launches::mean`] times `fed + starved`.
    pub net_ns: Option<Stats>,
    /// The bias subtracted from a raw time once per bracket, in nanoseconds. This is the device's bias.
    pub bias_ns: Option<f64>,
    /// The total of what other brackets inside and queues added to the samples, in nanoseconds. The times of
    /// this report do not contain it.
    pub added_ns: f64,
    /// The net sum. It is also known if calls made different numbers of launches, in which case
    /// `net_ns` is empty.
    pub net_sum_ns: Option<f64>,
    /// The estimated total time of all calls that were timed or skipped by sampling: the net sum,
    /// or the raw one if the bias is unknown, extrapolated from the samples to the calls that they
    /// represent. If every call is timed, this is the sum of the samples. `None` for graphs, whose
    /// replays are not counted, and without samples. Lost samples and those in flight are not
    /// included.
    pub estimated_total_ns: Option<f64>,
    /// The standard error of the estimated total: 0 if every call is timed, `None` if the samples
    /// do not show it, for the reason [`unknown_error`](Series::unknown_error).
    ///
    /// It only covers the error due to sampling. An occasional timed call takes longer than a
    /// skipped call, because caches are cold and the clock is read. With the host clock, the total
    /// for a function that takes tens of nanoseconds is therefore several times too high.
    pub estimated_total_error_ns: Option<f64>,
    /// Why the standard error of the estimated total is unknown: `counted`, the calls were picked
    /// by number, as with `every`, and the program may have the same period; `repeated`, sampled
    /// calls made this launch several times, so its samples were not drawn independently; `few`,
    /// there are fewer than 5,000 samples, or five phases, which may have missed rare calls that take long;
    /// `dominated`, few of the samples make up most of the error. `None` if it is known.
    pub unknown_error: Option<UnknownError>,
    /// The 95 % confidence interval of the raw median, or `None` with fewer than 20 samples, or
    /// with fewer than 15 independent ones where their number is an estimate.
    ///
    /// It is wider where samples depend on those before them, and after repeated
    /// [`looks`](Series::looks).
    pub ci95_ns: Option<[f64; 2]>,
    /// How far the times behind the percentiles depend on those before them. `None` without samples.
    pub dependence: Option<Dependence>,
    /// The number of looks at the interval so far, including this one. Looks at nearly the same
    /// samples count as one. 0 if the number is unknown.
    pub looks: u32,
    /// The histogram of the raw times behind the percentiles: those of the fed samples, or of the
    /// starved ones if none was fed. Empty without samples.
    pub histogram: Histogram,
    /// How the times in the histogram changed during the run. `None` without samples and in merged
    /// reports.
    pub timeline: Option<Timeline>,
    /// The net times, in a merged report whose sources had different biases. In other reports, they
    /// are the raw times minus a single bias.
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub net_histogram: Histogram,
    /// The figures of each merged run in which the series has samples, in the order of the
    /// processes. If there are more than 64 such runs, a merged report keeps a random 64. Empty in
    /// the report of a single process, the only kind that the runtime returns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Run>,
    /// The bytes that calls moved. `None` if the attribute does not give them, if they are not
    /// known for any sample, and for a launch of a function that makes several.
    pub bytes: Option<Bytes>,
    /// The floating-point operations done by calls. `None` in the same cases as for
    /// [`bytes`](Series::bytes).
    pub flops: Option<Flops>,
    /// The time that calls took on the host. It covers recorded calls and, of the calls timed by
    /// events, a thread's first ones and some of the others. `None` for the clocks `sync` and
    /// `host`, for an async function timed by events, for a launch of a function that makes
    /// several, and in a merged report if several of its reports have such calls.
    pub host_ns: Option<Stats>,
    /// The function's own part of its calls' time, according to the call tree.
    #[serde(skip)]
    pub(crate) own_share: Option<f64>,
    /// The part of its calls' time that is not also inside another call of the same function.
    #[serde(skip)]
    pub(crate) outer_share: Option<f64>,
    /// The figures of the recorded calls, or `None` without any. A launch has no such figures: they
    /// are part of its function's.
    #[serde(flatten, with = "kernels::flat")]
    pub kernel_times: Option<KernelTimes>,
}

impl Series {
    /// Creates a series without samples.
    #[doc(hidden)]
    pub fn new(device: String, measure: Measure, clock: Clock) -> Series {
        Series { device, measure, clock, ..Series::default() }
    }

    /// Creates a series for a function timed by CUDA events, from the raw times of its fed and
    /// starved samples. `bias_ns` is the bias per bracket.
    #[doc(hidden)]
    pub fn of_samples(
        device: &str,
        measure: Measure,
        [fed, starved]: [&Summary; 2],
        launches: Option<Launches>,
        bias_ns: f64,
    ) -> Series {
        let shown = if fed.count() > 0 { fed } else { starved };
        let samples = fed.count().saturating_add(starved.count());
        let sum = |bias: f64| fed.sum(bias) + starved.sum(bias);
        let removed_ns = bias_ns * launches.map_or(1.0, |launches| launches.mean);
        let has_one_bias = launches.is_none_or(|launches| launches.min == launches.max);
        let net_sum_ns = (samples > 0).then(|| sum(removed_ns));
        Series {
            timed: samples,
            measured: samples,
            fed: fed.count(),
            starved: starved.count(),
            upper_bound: fed.count() == 0 && starved.count() > 0,
            launches,
            raw_ns: shown.stats(0.0, sum(0.0)),
            net_ns: shown.stats(removed_ns, sum(removed_ns)).filter(|_| has_one_bias),
            bias_ns: Some(bias_ns),
            net_sum_ns,
            estimated_total_ns: net_sum_ns,
            estimated_total_error_ns: net_sum_ns.map(|_| 0.0),
            ci95_ns: shown.median_interval(&Dependence::none(shown.count()), 1),
            dependence: (samples > 0).then(|| Dependence::none(shown.count())),
            looks: 1,
            histogram: shown.histogram().clone(),
            ..Series::new(device.to_owned(), measure, Clock::Events)
        }
    }

    /// The device of calls that ran before the program had a context, for example.
    #[doc(hidden)]
    pub const UNKNOWN_DEVICE: &str = "cuda:?";

    /// Returns the device as the table and the page show it.
    pub(crate) fn shown_device(&self) -> String {
        if self.device == Series::UNKNOWN_DEVICE {
            "–".to_owned()
        } else {
            printable(&self.device)
        }
    }

    /// Returns the number of timed calls that CUPTI recorded. They are not measured by events.
    pub fn opened(&self) -> u64 {
        self.kernel_times.as_ref().map_or(0, |times| times.opened)
    }

    /// Returns the kernels of the recorded calls.
    pub(crate) fn kernels(&self) -> &[Kernel] {
        self.kernel_times.as_ref().map_or(&[], |times| &times.kernels)
    }

    /// Returns the number of independent samples that would determine the median as precisely as
    /// the samples behind the percentiles do, or `None` if it is unknown.
    pub fn independent(&self) -> Option<f64> {
        self.dependence.map(|dependence| dependence.independent)
    }

    /// Returns the figures of a series in the report of a single process, for the process at this
    /// index in [`Process::merged`](crate::Process::merged). `None` without samples.
    #[doc(hidden)]
    pub fn run(&self, process: u32) -> Option<Run> {
        let raw = self.raw_ns?;
        Some(Run {
            process,
            fed: self.fed,
            starved: self.starved,
            raw_median_ns: raw.median,
            net_median_ns: self.net_ns.map(|net| net.median),
            raw_mean_ns: raw.mean,
            ci95_ns: self.ci95_ns,
        })
    }

    /// Returns a sentence for each identity that does not hold.
    #[doc(hidden)]
    pub fn inconsistencies(&self) -> impl Iterator<Item = String> {
        let Series { timed, measured, in_flight, fed, starved, at_floor, .. } = self;
        let (opened, lost) = (self.opened(), self.lost.total());
        let brackets = (*timed != saturating_sum([*measured, opened, *in_flight, lost])).then(|| {
            format!(
                "{timed} timed, but {measured} measured + {opened} opened + {in_flight} in flight + \
                 {lost} lost"
            )
        });
        let samples = (*measured != saturating_sum([*fed, *starved, *at_floor])).then(|| {
            format!(
                "{measured} measured, but {fed} fed + {starved} starved + {at_floor} at the floor"
            )
        });
        let place = self.place();
        brackets.into_iter().chain(samples).map(move |broken| format!("{place}: {broken}"))
    }

    /// Describes the series by device, launch, graph, cache state and key.
    #[doc(hidden)]
    pub fn place(&self) -> String {
        let launch = self.launch.as_ref().map(|launch| format!(", {}", launch.label()));
        let graph = if self.graph { ", in graphs" } else { "" };
        let cache = Some(self.cache).filter(|&cache| cache != CacheState::AsFound);
        let cache = cache.map(|cache| format!(", {}", cache.name()));
        let key = self.key.as_ref().map(|key| format!(", key {key}"));
        let [launch, cache, key] = [launch, cache, key].map(Option::unwrap_or_default);
        format!("{}{launch}{graph}{cache}{key}", self.device)
    }
}

/// Adds up counts. Saturates, because a malicious report may contain counts that overflow.
pub(crate) fn saturating_sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}
