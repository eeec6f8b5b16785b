//! A series of the merged report.

use gpu_time_report::merge::{agree, join};
use gpu_time_report::{Clock, Dependence, Histogram, Launches, Series, Site, Summary, Work};

use super::combine::add;
use super::kernels;
use super::runs::{Processes, Runs};
use crate::series_id::is_same_series;

/// The sum of one series over several reports.
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
    net: Net,
}

/// The net times of [`Samples`].
enum Net {
    /// At least one report has none.
    Unknown,
    /// The raw times minus this bias, in nanoseconds.
    Offset(f64),
    /// A separate distribution, because the biases of the reports differ.
    Separate(Summary),
}

impl MergedSeries {
    /// Creates the sum from one report, in which `site` has the series.
    pub fn new(
        device: Option<usize>,
        site: &Site,
        series: &Series,
        processes: Processes,
    ) -> Result<MergedSeries, &'static str> {
        let mut runs = Runs::default();
        runs.add(series, processes)?;
        Ok(MergedSeries {
            runs,
            device,
            samples: Samples::of(series),
            raw_sum_ns: series.raw_ns.map_or(0.0, |raw| raw.sum),
            represented: kernels::represented(site, series),
            bytes: series.bytes.as_ref().map(Work::of_bytes),
            flops: series.flops.as_ref().map(Work::of_flops),
            series: series.clone(),
        })
    }

    /// Returns `true` if a series of another report is the same series.
    pub fn is_of(&self, device: Option<usize>, series: &Series) -> bool {
        let line = |series: &Series| series.launch.as_ref().map(|launch| launch.line);
        self.device == device
            && is_same_series(&self.series, series)
            && line(&self.series) == line(series)
    }

    /// Adds the same series of another report, in which `site` has it.
    pub fn add(
        &mut self,
        site: &Site,
        theirs: &Series,
        processes: Processes,
    ) -> Result<(), &'static str> {
        self.runs.add(theirs, processes)?;
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
        // The reports cover different periods.
        series.timeline = None;
        // An unknown device keeps its name.
        if let Some(id) = device.and_then(|at| ids.get(at)) {
            series.device.clone_from(id);
        }
        let is_opened = series.clock == Clock::Kernels;
        let brackets = series.fed.saturating_add(series.starved);
        let count = if is_opened { series.opened() } else { brackets };
        series.upper_bound = series.fed == 0 && series.starved > 0;
        if let Some(Samples { bias_ns, raw, dependence, net, .. }) = samples {
            series.bias_ns = bias_ns;
            let net_sum_ns = series.net_sum_ns.unwrap_or_default();
            series.raw_ns = raw.stats(0.0, raw_sum_ns);
            series.net_ns = match &net {
                Net::Unknown => None,
                Net::Offset(bias) => raw.stats(*bias, net_sum_ns),
                Net::Separate(net) => net.stats(0.0, net_sum_ns),
            };
            series.dependence = Some(dependence);
            series.looks = 1;
            series.ci95_ns = raw.median_interval(&dependence, series.looks);
            series.net_histogram = match net {
                Net::Separate(net) => net.histogram().clone(),
                Net::Unknown | Net::Offset(_) => Histogram::default(),
            };
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
        let brackets = series.launches.map_or(1, |launches| launches.max);
        let net = match (&series.net_ns, series.bias_ns) {
            (Some(net), _) if !series.net_histogram.is_empty() => {
                Net::Separate(Summary::of(net, series.net_histogram.clone()))
            }
            (Some(_), Some(bias)) => Net::Offset(bias * f64::from(brackets)),
            _ => Net::Unknown,
        };
        let raw = Summary::of(raw, series.histogram.clone());
        let (fed, bias_ns) = (series.fed > 0, series.bias_ns);
        let dependence = series.dependence.unwrap_or(Dependence::none(raw.count()));
        Some(Samples { fed, bias_ns, raw, dependence, net })
    }

    /// Adds the samples of another report. Fed samples replace starved ones.
    fn add(&mut self, theirs: Samples) {
        match (self.fed, theirs.fed) {
            (true, false) => {}
            (false, true) => *self = theirs,
            _ => {
                agree(&mut self.bias_ns, &theirs.bias_ns);
                let ours = std::mem::replace(&mut self.net, Net::Unknown);
                self.net = match (ours, theirs.net) {
                    (Net::Offset(ours), Net::Offset(same)) if ours == same => Net::Offset(ours),
                    (ours, net) => match (ours.summary(&self.raw), net.summary(&theirs.raw)) {
                        (Some(mut ours), Some(net)) => {
                            ours.merge(&net);
                            Net::Separate(ours)
                        }
                        _ => Net::Unknown,
                    },
                };
                self.raw.merge(&theirs.raw);
                self.dependence.merge(&theirs.dependence);
            }
        }
    }
}

impl Net {
    /// Returns the net times as a separate distribution, derived from `raw`.
    fn summary(self, raw: &Summary) -> Option<Summary> {
        match self {
            Net::Unknown => None,
            Net::Offset(bias) => {
                Some(Summary::of(&raw.stats(bias, 0.0)?, raw.histogram().less(bias)))
            }
            Net::Separate(net) => Some(net),
        }
    }
}
