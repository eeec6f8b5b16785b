//! A series of the merged report.

use gpu_time_report::merge::{agree, join};
use gpu_time_report::{
    Clock, Dependence, Histogram, Launches, Process, Series, Site, Summary, Work, value,
};

use super::combine::add;
use super::kernels;
use super::runs::Runs;
use crate::series_id::is_same_series;

/// The sum of one series over several reports.
#[derive(Default)]
pub struct MergedSeries {
    /// The index of its device among the merged devices. `None` if the device is unknown.
    device: Option<usize>,
    /// The identity and the counts. The statistics are computed at the end, from the other fields.
    series: Series,
    /// The times behind the statistics; `None` if there are no samples yet.
    samples: Option<Samples>,
    raw_sum_ns: f64,
    /// The number of calls that the recorded calls represent.
    represented: f64,
    bytes: Option<Work>,
    flops: Option<Work>,
    runs: Runs,
}

/// The times behind percentiles: those of all fed samples, or of all starved ones.
struct Samples {
    fed: bool,
    bias_ns: Option<f64>,
    raw: Summary,
    dependence: Dependence,
    /// `None` if at least one report has no net times.
    net: Option<Summary>,
    /// The difference between raw and net times, in nanoseconds; `None` if the reports have several.
    removed_ns: Option<f64>,
}

impl MergedSeries {
    /// Creates the sum of no reports, for a series like this one on a merged device.
    pub fn new(device: Option<usize>, series: &Series) -> MergedSeries {
        let Series { measure, cache, clock, graph, bias_ns, .. } = *series;
        let Series { device: id, launch, key, .. } = series.clone();
        MergedSeries {
            device,
            series: value!(Series {
                launch,
                key,
                cache,
                graph,
                bias_ns,
                ..Series::new(id, measure, clock)
            }),
            ..MergedSeries::default()
        }
    }

    /// Returns `true` if a series of another report is the same series.
    pub fn is_of(&self, device: Option<usize>, series: &Series) -> bool {
        let line = |series: &Series| series.launch.as_ref().map(|launch| launch.line);
        self.device == device
            && is_same_series(&self.series, series)
            && line(&self.series) == line(series)
    }

    /// Adds the series of a process's report, in which `site` has it. The runs of the process begin at `first`.
    pub fn add(
        &mut self,
        site: &Site,
        theirs: &Series,
        process: &Process,
        first: u32,
    ) -> Result<(), &'static str> {
        self.runs.add(theirs, process, first)?;
        let ours = &mut self.series;
        add_estimate(ours, theirs);
        ours.unknown_error = ours.unknown_error.or(theirs.unknown_error);
        if let Some(raw) = &theirs.raw_ns {
            self.raw_sum_ns += raw.sum;
            ours.added_ns += theirs.added_ns;
            ours.net_sum_ns = match self.samples {
                None => theirs.net_sum_ns,
                Some(_) => ours.net_sum_ns.zip(theirs.net_sum_ns).map(|(ours, more)| ours + more),
            };
        }
        merge_launches(ours, theirs);
        // Percentiles cannot be combined without all of the times.
        ours.host_ns = match (ours.timed, theirs.timed) {
            (0, _) => theirs.host_ns,
            (_, 0) => ours.host_ns,
            _ => None,
        };
        for (count, more) in [
            (&mut ours.timed, theirs.timed),
            (&mut ours.measured, theirs.measured),
            (&mut ours.in_flight, theirs.in_flight),
            (&mut ours.fed, theirs.fed),
            (&mut ours.starved, theirs.starved),
            (&mut ours.at_floor, theirs.at_floor),
            (&mut ours.queued, theirs.queued),
            (&mut ours.nested, theirs.nested),
            (&mut ours.tracked, theirs.tracked),
        ] {
            add(count, more);
        }
        ours.lost.add_all(theirs.lost);
        let calls = [self.represented, kernels::represented(site, theirs)];
        join(&mut ours.kernel_times, theirs.kernel_times.clone(), |ours, theirs| {
            kernels::merge(ours, theirs, calls);
        });
        self.represented += calls[1];
        join(&mut self.bytes, theirs.bytes.as_ref().map(Work::of_bytes), Work::add);
        join(&mut self.flops, theirs.flops.as_ref().map(Work::of_flops), Work::add);
        join(&mut self.samples, Samples::of(theirs), Samples::add);
        Ok(())
    }

    /// Returns the merged series. `ids` are the ids of the merged devices.
    pub fn finish(self, ids: &[String]) -> Series {
        let MergedSeries { device, mut series, samples, raw_sum_ns, bytes, flops, runs, .. } = self;
        series.runs = runs.finish();
        // An unknown device keeps its name.
        if let Some(id) = device.and_then(|at| ids.get(at)) {
            series.device.clone_from(id);
        }
        let is_opened = series.clock == Clock::Kernels;
        let brackets = series.fed.saturating_add(series.starved);
        let count = if is_opened { series.opened() } else { brackets };
        series.upper_bound = series.fed == 0 && series.starved > 0;
        if let Some(Samples { bias_ns, raw, dependence, net, removed_ns, .. }) = samples {
            series.bias_ns = bias_ns;
            let net_sum_ns = series.net_sum_ns.unwrap_or_default();
            series.raw_ns = raw.stats(0.0, raw_sum_ns);
            series.net_ns = net.as_ref().and_then(|net| match removed_ns {
                Some(bias) => raw.stats(bias, net_sum_ns),
                None => net.stats(0.0, net_sum_ns),
            });
            series.dependence = Some(dependence);
            series.looks = 1;
            series.ci95_ns = raw.median_interval(&dependence, series.looks);
            let separate = net.as_ref().filter(|_| removed_ns.is_none());
            series.net_histogram =
                separate.map_or(Histogram::default(), |net| net.histogram().clone());
            series.histogram = raw.histogram().clone();
        }
        // With the clock `kernels`, the times of the series are the busy times.
        if let Some(times) = series.kernel_times.as_mut().filter(|_| is_opened) {
            times.busy_ns = series.raw_ns;
        }
        let median_ns = series.net_ns.map(|net| net.median);
        series.bytes = bytes.map(|work| work.bytes(count, median_ns));
        series.flops = flops.map(|work| work.flops(count, median_ns));
        series
    }
}

/// Adds the estimated total of another report. The estimates are independent, so their variances add up.
fn add_estimate(ours: &mut Series, theirs: &Series) {
    let Some(their_ns) = theirs.estimated_total_ns else { return };
    let errors = ours.estimated_total_error_ns.zip(theirs.estimated_total_error_ns);
    (ours.estimated_total_ns, ours.estimated_total_error_ns) = match ours.estimated_total_ns {
        Some(ns) => (Some(ns + their_ns), errors.map(|(one, other)| one.hypot(other))),
        None => (Some(their_ns), theirs.estimated_total_error_ns),
    };
}

/// Merges the numbers of launches and of inner brackets. The means are weighted by the counts of samples, so call this
/// before those are added.
fn merge_launches(ours: &mut Series, theirs: &Series) {
    let pool = |[one, other]: [u64; 2]| {
        let share = other as f64 / (one as f64 + other as f64).max(1.0);
        move |ours: &mut Launches, theirs: Launches| {
            ours.min = ours.min.min(theirs.min);
            ours.max = ours.max.max(theirs.max);
            ours.mean += (theirs.mean - ours.mean) * share;
        }
    };
    let samples = [&*ours, theirs].map(|series| series.fed.saturating_add(series.starved));
    join(&mut ours.launches, theirs.launches, pool(samples));
    let is_unknown = |series: &Series| series.inner_brackets.is_none() && series.nested > 0;
    if is_unknown(ours) || is_unknown(theirs) {
        ours.inner_brackets = None;
    } else {
        let fed = [ours.fed, theirs.fed];
        join(&mut ours.inner_brackets, theirs.inner_brackets, pool(fed));
    }
}

impl Samples {
    /// Returns the samples of one report, or `None` if it has none.
    fn of(series: &Series) -> Option<Samples> {
        let raw = series.raw_ns.as_ref().filter(|_| !series.histogram.is_empty())?;
        let (fed, bias_ns) = (series.fed > 0, series.bias_ns);
        let brackets = series.launches.map_or(1, |launches| launches.max);
        let removed_ns = bias_ns
            .filter(|_| series.net_histogram.is_empty())
            .map(|bias| bias * f64::from(brackets));
        let net_histogram = match removed_ns {
            Some(ns) => series.histogram.less(ns),
            None => series.net_histogram.clone(),
        };
        let net = series.net_ns.as_ref().filter(|_| !net_histogram.is_empty());
        let net = net.map(|net| Summary::of(net, net_histogram));
        let raw = Summary::of(raw, series.histogram.clone());
        let dependence = series.dependence.unwrap_or(Dependence::none(raw.count()));
        Some(Samples { fed, bias_ns, raw, dependence, net, removed_ns })
    }

    /// Adds the samples of another report. Fed samples replace starved ones.
    fn add(&mut self, theirs: Samples) {
        match (self.fed, theirs.fed) {
            (true, false) => {}
            (false, true) => *self = theirs,
            _ => {
                agree(&mut self.bias_ns, &theirs.bias_ns);
                agree(&mut self.removed_ns, &theirs.removed_ns);
                self.net = self.net.take().zip(theirs.net).map(|(mut ours, theirs)| {
                    ours.merge(&theirs);
                    ours
                });
                self.raw.merge(&theirs.raw);
                self.dependence.merge(&theirs.dependence);
            }
        }
    }
}
