//! A series of the report.

use serde::{Deserialize, Serialize};

use crate::{
    Bytes, CacheState, Clock, Flops, Histogram, Losses, Measure, Stats, Summary, Timeline,
};

/// What was measured of a function or of one of its launches, on one device in one cache state.
///
/// Always `timed = measured + in_flight + lost` and `measured = fed + starved + at_floor`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    #[doc(hidden)]
    pub device: String,
    #[doc(hidden)]
    pub launch: Option<Launch>,
    #[doc(hidden)]
    pub measure: Measure,
    #[doc(hidden)]
    pub key: Option<String>,
    #[doc(hidden)]
    pub cache: CacheState,
    #[doc(hidden)]
    pub clock: Clock,
    #[doc(hidden)]
    pub graph: bool,
    #[doc(hidden)]
    pub timed: u64,
    #[doc(hidden)]
    pub measured: u64,
    #[doc(hidden)]
    pub in_flight: u64,
    #[doc(hidden)]
    pub lost: Losses,
    #[doc(hidden)]
    pub fed: u64,
    #[doc(hidden)]
    pub starved: u64,
    #[doc(hidden)]
    pub at_floor: u64,
    #[doc(hidden)]
    pub queued: u64,
    #[doc(hidden)]
    pub nested: u64,
    #[doc(hidden)]
    pub tracked: u64,
    #[doc(hidden)]
    pub upper_bound: bool,
    /// Launches per call, where this is a sum of them.
    #[doc(hidden)]
    pub launches: Option<Launches>,
    #[doc(hidden)]
    pub raw_ns: Option<Stats>,
    #[doc(hidden)]
    pub net_ns: Option<Stats>,
    /// What `net_ns` is relieved of for each bracket.
    #[doc(hidden)]
    pub bias_ns: Option<f64>,
    /// The net sum, which is known also where calls of different numbers of launches leave `net_ns`
    /// empty.
    #[doc(hidden)]
    pub net_sum_ns: Option<f64>,
    #[doc(hidden)]
    #[serde(default)]
    pub estimated_total_ns: Option<f64>,
    #[doc(hidden)]
    #[serde(default)]
    pub estimated_total_error_ns: Option<f64>,
    #[doc(hidden)]
    pub ci95_ns: Option<[f64; 2]>,
    /// The raw times that `raw_ns` is over, but for its sum.
    #[doc(hidden)]
    #[serde(default)]
    pub histogram: Histogram,
    /// How the raw times of the histogram changed while the program ran.
    #[doc(hidden)]
    #[serde(default)]
    pub timeline: Option<Timeline>,
    /// The net times that `net_ns` is over, where one bias does not lead to them from the raw ones: in
    /// a merged report whose sources had different ones.
    #[doc(hidden)]
    #[serde(default, skip_serializing_if = "Histogram::is_empty")]
    pub net_histogram: Histogram,
    #[doc(hidden)]
    pub bytes: Option<Bytes>,
    #[doc(hidden)]
    pub flops: Option<Flops>,
}

/// A launch in the function's body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Launch {
    #[doc(hidden)]
    pub index: u32,
    /// The method, function or macro that launches.
    #[doc(hidden)]
    pub name: String,
    #[doc(hidden)]
    pub line: u32,
}

/// How many launches the calls of a sum made.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Launches {
    #[doc(hidden)]
    pub min: u32,
    #[doc(hidden)]
    pub mean: f64,
    #[doc(hidden)]
    pub max: u32,
}

impl Series {
    /// The series of a function that CUDA events timed, from the raw times of its fed and starved samples.
    /// `bias_ns` is removed once for each launch of a sum, and once for each sample of a span or a launch.
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
            device: device.to_owned(),
            launch: None,
            measure,
            key: None,
            cache: CacheState::AsFound,
            clock: Clock::Events,
            graph: false,
            timed: samples,
            measured: samples,
            in_flight: 0,
            lost: Losses::default(),
            fed: fed.count(),
            starved: starved.count(),
            at_floor: 0,
            queued: 0,
            nested: 0,
            tracked: 0,
            upper_bound: fed.count() == 0 && starved.count() > 0,
            launches,
            raw_ns: shown.stats(0.0, sum(0.0)),
            net_ns: shown.stats(removed_ns, sum(removed_ns)).filter(|_| has_one_bias),
            bias_ns: Some(bias_ns),
            net_sum_ns,
            estimated_total_ns: net_sum_ns,
            estimated_total_error_ns: net_sum_ns.map(|_| 0.0),
            ci95_ns: shown.median_interval(),
            histogram: shown.histogram().clone(),
            net_histogram: Histogram::default(),
            timeline: None,
            bytes: None,
            flops: None,
        }
    }

    /// `cuda:N`, or `host`.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// The launch, or `None` for the function.
    pub fn launch(&self) -> Option<&Launch> {
        self.launch.as_ref()
    }

    /// What the time is the time of: `sum`, a call's launches added up; `span`, a call from the first
    /// thing that it enqueued to the last; `launch`, one launch.
    pub fn measure(&self) -> &str {
        self.measure.name()
    }

    /// The value that splits the function into series, or `None` where nothing does.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// What the L2 held: `as-found`, `cold`, `cold-dirty`, `after-cold` or `partial`.
    pub fn cache(&self) -> &str {
        self.cache.name()
    }

    /// What told the time: `events`; `sync`, the host's clock between two barriers; or `host`.
    pub fn clock(&self) -> &str {
        self.clock.name()
    }

    /// The launch is a node of graphs, and the samples are replays, of which not every one is seen.
    pub fn graph(&self) -> bool {
        self.graph
    }

    /// Brackets begun, or calls for a sum; in graphs, replays that were read, and launches that were
    /// lost on their way into a graph.
    pub fn timed(&self) -> u64 {
        self.timed
    }

    /// Those that gave a sample.
    pub fn measured(&self) -> u64 {
        self.measured
    }

    /// Those that the GPU had not finished.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Those that gave no sample, by reason; every reason is listed.
    pub fn lost(&self) -> impl Iterator<Item = (&str, u64)> + '_ {
        self.lost.iter().map(|(reason, count)| (reason.name(), count))
    }

    /// Samples inside which the GPU cannot have waited for the CPU. Those of the clocks `sync` and `host`
    /// all count as fed: they are the host's time, whoever waited for whom.
    pub fn fed(&self) -> u64 {
        self.fed
    }

    /// Samples inside which the GPU may have waited for the CPU.
    pub fn starved(&self) -> u64 {
        self.starved
    }

    /// Samples inside which nothing ran. They are in no statistics.
    pub fn at_floor(&self) -> u64 {
        self.at_floor
    }

    /// Fed samples with so much queued behind them when the GPU passed them that their events read more
    /// than those of a single bracket. A sum counts if all its launches do.
    pub fn queued(&self) -> u64 {
        self.queued
    }

    /// Samples with another timed bracket inside, or overlapping.
    pub fn nested(&self) -> u64 {
        self.nested
    }

    /// Samples with waits and records of cudarc's event tracking inside.
    pub fn tracked(&self) -> u64 {
        self.tracked
    }

    /// No sample was fed, so the figures are over starved ones and bound the time from above.
    pub fn upper_bound(&self) -> bool {
        self.upper_bound
    }

    /// How many launches each call added up, where this is a sum.
    pub fn launches(&self) -> Option<&Launches> {
        self.launches.as_ref()
    }

    /// What the clock said, or `None` without samples.
    pub fn raw_ns(&self) -> Option<&Stats> {
        self.raw_ns.as_ref()
    }

    /// What is removed from a raw time for each bracket in it, in nanoseconds: the device's event bias,
    /// or what that is behind a queue, if most fed samples were [`queued`](Series::queued).
    pub fn bias_ns(&self) -> Option<f64> {
        self.bias_ns
    }

    /// Each raw time less the device's event bias, once for each bracket in it, and never below 0. The
    /// host's clock has no bias. `None` without samples, where the bias is not known, and for a sum
    /// whose calls made different numbers of launches: one bias does not fit all of its times. The net
    /// sum is then the raw sum less the bias times [`Launches::mean`] times `fed + starved`.
    pub fn net_ns(&self) -> Option<&Stats> {
        self.net_ns.as_ref()
    }

    /// What all calls took together that were to be timed or sampled: the net sum, or the raw one where no
    /// bias is known, of the samples and of what they stand for. Where every call is timed, it is the sum
    /// of the samples. `None` in graphs, whose replays nobody counts, and without samples. What was lost
    /// or is in flight is not in it.
    pub fn estimated_total_ns(&self) -> Option<f64> {
        self.estimated_total_ns
    }

    /// The standard error of that: 0 where every call is timed. Of calls that are counted out, as with
    /// `every`, it is what it would be if they came in random order. `None` also for a launch that sampled
    /// calls make several times, as in a loop: its samples were not drawn each by itself. It is the error
    /// of drawing alone. That a rare timed call lasts longer than those that are passed over, with caches
    /// cold and the clock to be read, is not in it: by the host's clock, the total of a function of tens of
    /// nanoseconds is several times too high.
    pub fn estimated_total_error_ns(&self) -> Option<f64> {
        self.estimated_total_error_ns
    }

    /// The interval that holds the raw median with 95 % confidence, or `None` with fewer than 6 samples.
    pub fn ci95_ns(&self) -> Option<[f64; 2]> {
        self.ci95_ns
    }

    /// The raw times that the percentiles are of: fed ones, or starved ones where there are no fed
    /// ones. Empty without samples.
    pub fn histogram(&self) -> &Histogram {
        &self.histogram
    }

    /// How these times changed while the program ran. `None` without samples, and where several reports
    /// were merged.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.timeline.as_ref()
    }

    /// The bytes that calls moved. `None` where the attribute does not say, for a launch of a function
    /// that makes several, and while no sample's are known.
    pub fn bytes(&self) -> Option<&Bytes> {
        self.bytes.as_ref()
    }

    /// The floating-point operations that calls did. `None` as for [`bytes`](Series::bytes).
    pub fn flops(&self) -> Option<&Flops> {
        self.flops.as_ref()
    }

    /// Returns `true` if the times are those of the GPU. The clocks `sync` and `host` read the host's time,
    /// which the GPU's waiting and the launching are part of.
    pub(crate) fn is_gpu_time(&self) -> bool {
        self.clock == Clock::Events
    }

    /// Whether a rate is known.
    pub(crate) fn has_rate(&self) -> bool {
        self.bytes.is_some_and(|bytes| bytes.gb_per_s.is_some())
            || self.flops.is_some_and(|flops| flops.tflop_per_s.is_some())
    }

    /// Compares the rate with the peak of its device.
    pub(crate) fn compare_with(&mut self, peak_gb_per_s: Option<f64>) {
        if let Some(bytes) = &mut self.bytes {
            bytes.peak_share = bytes.gb_per_s.zip(peak_gb_per_s).map(|(rate, peak)| rate / peak);
        }
    }

    /// The statistics that a reader wants: net where they are known, else raw.
    pub(crate) fn shown(&self) -> Option<&Stats> {
        self.net_ns.as_ref().or(self.raw_ns.as_ref())
    }

    /// What all calls took: net where that is known, else raw. In graphs, what was seen.
    pub(crate) fn total(&self) -> Option<f64> {
        self.estimated_total_ns.or(self.net_sum_ns).or(self.raw_ns.map(|raw| raw.sum))
    }

    /// Whether only raw figures can be shown because calls made different numbers of launches.
    pub(crate) fn is_raw_by_launches(&self) -> bool {
        self.net_ns.is_none() && self.net_sum_ns.is_some()
    }

    /// The identities that do not hold, each in a sentence.
    #[doc(hidden)]
    pub fn inconsistencies(&self) -> impl Iterator<Item = String> {
        let Series { timed, measured, in_flight, fed, starved, at_floor, .. } = self;
        let lost = self.lost.total();
        let brackets = (*timed != saturating_sum([*measured, *in_flight, lost])).then(|| {
            format!(
                "{timed} timed are not {measured} measured + {in_flight} in flight + {lost} lost"
            )
        });
        let samples = (*measured != saturating_sum([*fed, *starved, *at_floor])).then(|| {
            format!("{measured} measured are not {fed} fed + {starved} starved + {at_floor} at the floor")
        });
        let place = self.place();
        brackets.into_iter().chain(samples).map(move |broken| format!("{place}: {broken}"))
    }

    /// Device, launch, graph, cache state and key, for a sentence.
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

impl Launch {
    /// Its place among the launches in the body, from 0.
    pub fn index(&self) -> u32 {
        self.index
    }

    /// The method, function or macro that launches.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its line.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// How the table calls it. The index tells launches on one line apart.
    pub(crate) fn label(&self) -> String {
        format!("{} {}, line {}", self.name, self.index, self.line)
    }
}

impl Launches {
    /// The second line of a sum's label in the table.
    pub(crate) fn label(&self) -> String {
        let Launches { min, max, .. } = self;
        match (min, max) {
            (1, 1) => "sum of 1 launch".to_owned(),
            _ if min == max => format!("sum of {max} launches"),
            _ => format!("sum of {min}–{max} launches"),
        }
    }

    /// The fewest that a call made.
    pub fn min(&self) -> u32 {
        self.min
    }

    /// The mean number.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The most that a call made.
    pub fn max(&self) -> u32 {
        self.max
    }
}

/// What calls of all of these took. An empty sum of floating-point numbers would be -0.
pub(crate) fn total<'a>(all: impl Iterator<Item = &'a Series>) -> f64 {
    all.filter_map(Series::total).fold(0.0, |sum, ns| sum + ns)
}

/// What a hostile report says may be too much to add up.
pub(crate) fn saturating_sum(counts: impl IntoIterator<Item = u64>) -> u64 {
    counts.into_iter().fold(0, u64::saturating_add)
}
