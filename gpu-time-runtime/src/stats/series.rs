//! Samples of one series: a launch or a call at one site, on one device, in one cache state and with one key.

use crate::stats::bias::Bias;
use crate::stats::bracket_counts::BracketCounts;
use crate::stats::kernels::{CallFigures, OpenedCalls};
use crate::stats::looks::Looks;
use crate::stats::rates::RateBasis;
use crate::stats::sampling::Population;
use crate::stats::since::Since;
use crate::stats::tally::{InnerBrackets, PerSample, SampleSums, Tally};
use crate::stats::total::{OpeningDraw, Total};
use crate::types::sample::{CacheState, Measure, Sample, SampleFlags};
use crate::types::{attribute::Clock, workload::Workload};
use gpu_time_report::{
    self as report, Batches, Course, Dependence, Distribution, Summary, UnknownError,
};

/// The recorded samples of a series. The memory grows with the range of their times, up to 256 KiB.
///
/// Brackets are counted separately, by the threads that record them, in [`BracketCounts`].
#[derive(Clone, Debug)]
pub struct SeriesData {
    sums: SampleSums,
    /// `None` until a sample has, or may have, other brackets inside, or a queue behind it.
    inner: Option<Box<InnerBrackets>>,
    looks: Looks,
    fed: TimeRecorder,
    starved: TimeRecorder,
    /// `None` without host times and opened calls.
    calls: Option<Box<CallTimes>>,
}

/// Figures of whole calls.
#[derive(Clone, Debug, Default)]
struct CallTimes {
    /// The times that calls took on the host.
    host: Distribution,
    /// `None` without opened calls.
    opened: Option<Box<OpenedCalls>>,
    /// The times of the samples with `clock = "kernels"`, by the choice of their phase.
    recorded: Total,
}

/// Raw times of fed or of starved samples: their distribution, their course over the run, and their
/// dependence on each other.
#[derive(Clone, Debug)]
struct TimeRecorder {
    distribution: Distribution,
    course: Course,
    /// `None` without samples.
    batches: Option<Box<Batches>>,
    /// The batches since the last [`SeriesData::begin_run`]. `None` without a run, or if there were no samples
    /// when it began.
    run: Option<Box<Batches>>,
}

/// The times of a copied series, used to make a report.
#[derive(Clone, Debug, Default)]
pub struct SampleTimes {
    fed: TimeSummary,
    starved: TimeSummary,
    host: Summary,
    /// `None` without opened calls, and in a difference between two copies.
    opened: Option<Box<report::KernelTimes>>,
    /// As in [`CallTimes`]. Empty in a difference between two copies.
    recorded: Total,
    looks: u32,
}

#[derive(Clone, Debug, Default)]
struct TimeSummary {
    summary: Summary,
    /// `None` in a difference between two copies, because a slot of the course may begin before the
    /// earlier copy.
    course: Option<Course>,
    /// `None` in a difference between two copies, if the earlier one had samples and the current run did not
    /// begin with it.
    batches: Option<Box<Batches>>,
    /// The batches since the last run began.
    run: Option<Box<Batches>>,
}

/// Properties of a series that its samples do not contain.
#[derive(Clone, Debug)]
pub struct SeriesInfo {
    /// `cuda:N` or `host`.
    pub device: String,
    /// The launch, or `None` for the whole function.
    pub launch: Option<report::Launch>,
    /// The interval that a sample measures.
    pub measure: Measure,
    /// The value of the attribute's `key`.
    pub key: Option<String>,
    /// The state of the L2 before each bracket.
    pub cache: CacheState,
    /// The clock that measured the times.
    pub clock: Clock,
    /// The launch is a graph node.
    pub graph: bool,
    /// The start of the process, on the clock of [`Sample::at_ns`].
    pub start_ns: u64,
    /// The calls that the samples were drawn from. `None` for graph replays, which are not calls.
    pub population: Option<Population>,
    /// The number of looks at a run so far, including this one. `None` for the whole series, which
    /// counts its looks itself.
    pub looks: Option<u32>,
    /// The calls were sampled by count, as with `every`, and not at random.
    pub counted: bool,
    /// A sampled call may have produced several samples, which are then not independent draws.
    pub repeats: bool,
    /// The bias of each bracket; `None` if it is unknown.
    pub bias: Option<Bias>,
}

impl SeriesData {
    /// Creates a series without samples.
    pub fn new() -> Self {
        SeriesData {
            sums: SampleSums::default(),
            inner: None,
            looks: Looks::default(),
            fed: TimeRecorder::new(),
            starved: TimeRecorder::new(),
            calls: None,
        }
    }

    /// Counts a look at the series, such as a report or snapshot.
    pub fn look(&mut self) {
        self.looks.look(self.sums.brackets.samples);
    }

    /// Begins a run. From then on, the dependence between the run's samples is also determined without earlier ones.
    pub fn begin_run(&mut self) {
        self.fed.begin_run();
        self.starved.begin_run();
    }

    /// Records a sample.
    #[inline(always)]
    pub fn record(&mut self, sample: Sample) {
        if sample.flags.at_floor {
            return;
        }
        self.sums.brackets.record(sample.brackets);
        let is_alone = (sample.inner, sample.added_ns) == (Some(0), Some(0.0));
        if sample.flags.fed && (!is_alone || self.inner.is_some()) {
            self.record_inner(sample);
        }
        if sample.weight != 1.0 {
            self.sums.weighted.record(sample);
        }
        if sample.flags.fed { &mut self.fed } else { &mut self.starved }.record(sample);
    }

    #[cold]
    fn record_inner(&mut self, sample: Sample) {
        let none = || Box::new(self.fed.nothing_inside());
        self.inner.get_or_insert_with(none).record(sample);
    }

    /// Records the time that a call took on the host, in nanoseconds.
    pub fn record_host(&mut self, ns: u64) {
        self.calls.get_or_insert_default().host.record(ns as f64);
    }

    /// Records an opened call, whose kernels represent those of `represents` calls. Its busy time becomes a sample
    /// only with `clock = "kernels"`. With another clock, it counts only towards the estimated total.
    pub fn record_opened(
        &mut self,
        call: &CallFigures<'_>,
        represents: f64,
        sample: Sample,
        clock: Clock,
        workload: Workload,
        draw: OpeningDraw,
    ) {
        self.opened_calls().record(call, represents);
        if clock == Clock::Kernels {
            let calls = self.calls.get_or_insert_default();
            calls.recorded.add(1.0, sample.raw_ns(), sample.weight.into(), draw);
            let flags = SampleFlags { fed: true, ..sample.flags };
            self.record(sample.flagged(flags));
            self.sums.rates.record(sample.flagged(flags), workload);
        } else {
            self.sums.weighted.record_opened(sample);
        }
    }

    /// Counts CUPTI records of opened calls that have no times.
    pub fn count_zero_times(&mut self, count: u64) {
        self.opened_calls().count_zero_times(count);
    }

    fn opened_calls(&mut self) -> &mut OpenedCalls {
        self.calls.get_or_insert_default().opened.get_or_insert_default()
    }

    /// Records the work of a sample that has already been recorded.
    #[cold]
    pub fn record_work(&mut self, sample: Sample, workload: Workload) {
        if !sample.flags.at_floor {
            self.sums.rates.record(sample, workload);
        }
    }

    /// Returns the sums.
    pub fn sums(&self) -> SampleSums {
        self.sums
    }

    /// Returns the brackets inside the samples.
    pub fn inner(&self) -> InnerBrackets {
        self.inner.as_deref().copied().unwrap_or_else(|| self.fed.nothing_inside())
    }

    /// Summarizes the times. This takes longer than copying the series, so call it on a copy,
    /// without the site's lock.
    pub fn times(&self) -> SampleTimes {
        let calls = self.calls.as_ref();
        let opened = calls.and_then(|calls| calls.opened.as_ref());
        SampleTimes {
            fed: self.fed.summary(),
            starved: self.starved.summary(),
            host: calls.map_or_else(Summary::default, |calls| calls.host.summary()),
            opened: opened.map(|opened| Box::new(opened.report())),
            recorded: calls.map_or_else(Total::default, |calls| calls.recorded),
            looks: self.looks.count(),
        }
    }

    /// Returns the histogram of the fed samples if `fed` is `true`, and of the starved ones
    /// otherwise.
    #[cfg(feature = "metrics")]
    pub fn histogram(&self, fed: bool) -> report::Histogram {
        let times = if fed { &self.fed } else { &self.starved };
        times.distribution.summary().histogram().clone()
    }
}

impl Since for SampleTimes {
    fn since(&self, earlier: &SampleTimes) -> SampleTimes {
        SampleTimes {
            fed: self.fed.since(&earlier.fed),
            starved: self.starved.since(&earlier.starved),
            host: self.host.since(&earlier.host),
            opened: None,
            recorded: Total::default(),
            looks: self.looks,
        }
    }
}

impl Since for TimeSummary {
    fn since(&self, earlier: &TimeSummary) -> TimeSummary {
        let is_whole = earlier.summary.count() == 0;
        let summary = self.summary.since(&earlier.summary);
        // If another run has begun in the meantime, its batches cover only a part of these samples.
        let run = self.run.as_ref().filter(|run| run.count() >= summary.count());
        TimeSummary {
            summary,
            course: None,
            batches: if is_whole { self.batches.clone() } else { run.cloned() },
            run: None,
        }
    }
}

impl SampleTimes {
    /// Returns the figures of opened calls, if there are any.
    #[cfg(test)]
    pub fn opened(&self) -> Option<&report::KernelTimes> {
        self.opened.as_deref()
    }

    /// Returns the standard error of the total of recorded calls, or `None` if there are too few. The number of calls is
    /// known unless other series have some of the samples.
    fn recorded_error_ns(&self, population: Population) -> Option<f64> {
        let is_whole = (self.recorded.calls / population.weights - 1.0).abs() < 1e-3;
        let is_count_known = is_whole && !population.is_estimated;
        Some(population.scale() * self.recorded.known_error_ns(is_count_known)?)
    }

    /// Returns the series for the report. The counts are read before the times, so the statistics
    /// may include a few more samples.
    ///
    /// The bias of a sum of k launches is k times that of a bracket. The histogram does not store k
    /// for each sample, so if k varies, only the sum of all times has a net figure.
    pub fn report(&self, info: SeriesInfo, tally: &Tally) -> report::Series {
        let SampleSums { brackets, weighted, rates } = &tally.sums;
        let BracketCounts { timed, in_flight, measured, fed, starved, at_floor, .. } = tally.counts;
        let BracketCounts { queued, nested, tracked, lost, .. } = tally.counts;
        // With `clock = "kernels"`, the samples are the opened calls, which are recorded as fed.
        let samples =
            if info.clock == Clock::Kernels { tally.counts.opened } else { fed + starved };
        let basis = if starved == 0 || fed > 0 { &self.fed } else { &self.starved };
        let dependence = basis.dependence();
        let looks = info.looks.unwrap_or(self.looks).max(1);
        let sum = |bias: f64| self.fed.summary.sum(bias) + self.starved.summary.sum(bias);
        let stats = |bias: f64| basis.summary.stats(bias, sum(bias));
        let bias_ns = info.bias.map(|bias| bias.ns);
        let net_ns = tally.removed_ns(info.bias).and_then(stats);
        let net_sum_ns = bias_ns.filter(|_| samples > 0).map(|bias| match &net_ns {
            Some(net) => net.sum,
            None => (sum(0.0) - bias * brackets.sum as f64).max(0.0),
        });
        let has_times = samples > 0 || tally.counts.opened > 0;
        let estimate = info.population.filter(|_| has_times).map(|population| {
            let mean = brackets.mean();
            let (seen_ns, bias_ns) = net_sum_ns.zip(bias_ns).unwrap_or((sum(0.0), 0.0));
            weighted.total(seen_ns, bias_ns, mean, population)
        });
        let is_sampled = info.population.is_some_and(|population| population.variance > 0.0);
        let error_ns = estimate.map(|estimate| match estimate.error_ns() {
            _ if is_sampled && info.repeats => Err(UnknownError::Repeated),
            _ if is_sampled && info.counted => Err(UnknownError::Counted),
            // The calls of one phase were not chosen independently.
            _ if is_sampled && self.recorded.calls > 0.0 => {
                let population = info.population.unwrap_or_default();
                self.recorded_error_ns(population).ok_or(UnknownError::Few)
            }
            error_ns => error_ns,
        });
        let rate_basis = RateBasis {
            fed: fed > 0 || info.clock == Clock::Kernels,
            samples: basis.summary.count(),
            median_ns: net_ns.map(|net| net.median),
            bias_ns,
        };
        report::value!(Series {
            launch: info.launch,
            key: info.key,
            cache: info.cache,
            graph: info.graph,
            timed,
            measured,
            in_flight,
            lost,
            fed,
            starved,
            at_floor,
            queued,
            nested,
            tracked,
            upper_bound: fed == 0 && starved > 0,
            inner_brackets: tally.removed_inner().map(PerSample::report),
            launches: (info.measure == Measure::Sum && samples > 0).then(|| brackets.report()),
            raw_ns: stats(0.0),
            net_ns,
            bias_ns,
            added_ns: tally.inner.added_ns,
            net_sum_ns,
            estimated_total_ns: estimate.map(|estimate| estimate.total_ns),
            estimated_total_error_ns: error_ns.and_then(Result::ok),
            unknown_error: error_ns.and_then(Result::err),
            ci95_ns: basis.summary.median_interval(&dependence, looks),
            dependence: (samples > 0).then_some(dependence),
            looks,
            timeline: basis.course.as_ref().and_then(|course| course.timeline(info.start_ns)),
            histogram: basis.summary.histogram().clone(),
            bytes: rates.bytes(rate_basis),
            flops: rates.flops(rate_basis),
            host_ns: self.host.stats(0.0, self.host.sum(0.0)),
            kernel_times: (tally.counts.opened > 0).then(|| report::value!(KernelTimes {
                opened: tally.counts.opened,
                ..self.opened.as_deref().cloned().unwrap_or_default()
            })),
            ..report::Series::new(info.device, info.measure, info.clock)
        })
    }
}

impl TimeSummary {
    fn dependence(&self) -> Dependence {
        let found = self.batches.as_ref().map(|batches| batches.dependence());
        found.unwrap_or(Dependence::none(self.summary.count()))
    }
}

impl TimeRecorder {
    fn new() -> Self {
        TimeRecorder {
            distribution: Distribution::new(),
            course: Course::new(),
            batches: None,
            run: None,
        }
    }

    /// Returns the statistics of the brackets inside, if there were none so far.
    fn nothing_inside(&self) -> InnerBrackets {
        InnerBrackets::of_nothing(self.batches.as_ref().map_or(0, |batches| batches.count()))
    }

    fn begin_run(&mut self) {
        self.run = self.batches.is_some().then(Box::default);
    }

    #[inline]
    fn record(&mut self, sample: Sample) {
        let ns = sample.alone_ns();
        self.distribution.record(ns);
        self.course.record(sample.at_ns, ns);
        self.batches.get_or_insert_default().record(ns);
        if let Some(run) = &mut self.run {
            run.record(ns);
        }
    }

    fn summary(&self) -> TimeSummary {
        TimeSummary {
            summary: self.distribution.summary(),
            course: Some(self.course.clone()),
            batches: self.batches.clone(),
            run: self.run.clone(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
