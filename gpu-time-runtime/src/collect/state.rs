//! Readings of the sites, from which reports are built.

use std::iter;
use std::sync::atomic::Ordering::Relaxed;

use crate::collect::devices::Biases;
use crate::config::Config;
use crate::cuda;
use crate::record::series_counters::SeriesCounters;
#[cfg(test)]
use crate::record::series_counters::SeriesTable;
use crate::site::callsite::CallSite;
use crate::site::counters::{CallCounters, Counts};
use crate::site::series_id::SeriesId;
use crate::stats::series::{SampleTimes, SeriesInfo};
use crate::stats::since::{Since, impl_since};
use crate::stats::tally::Tally;
use crate::stats::{bias::Bias, hold_deadline::HoldCounts, sampling::Population};
use crate::types::attribute::{Clock, Spec};
use crate::types::{device::DeviceId, record_mode::RecordMode, sample::Measure};
use gpu_time_report as report;

/// The counters of a site and its series, read while other threads continue to record.
#[derive(Clone)]
pub(crate) struct SiteState {
    pub site: &'static CallSite,
    pub calls: Counts,
    population: Population,
    pub holds: HoldCounts,
    series: Vec<SeriesState>,
}

/// A reading of a series.
#[derive(Clone)]
pub(crate) struct SeriesState {
    pub id: &'static SeriesId,
    tally: Tally,
    /// Empty in a reading without times.
    times: SampleTimes,
}

/// A series, as shown in a report.
pub(crate) struct SeriesView<'a> {
    pub info: SeriesInfo,
    pub tally: Tally,
    /// The series that provides the samples.
    pub state: &'a SeriesState,
}

impl_since!(Counts { warmup, skipped, unsampled, timed });

/// Returns the sites for a report on the time between two readings: those that were called, with
/// the series in which a bracket began. `looks` is the number of such reports so far, including
/// this one.
pub(crate) fn since(
    earlier: &[SiteState],
    now: &[SiteState],
    biases: &Biases,
    looks: u32,
) -> Vec<report::Site> {
    let gained = with_earlier(now, earlier).map(|(now, earlier)| match earlier {
        Some(earlier) => now.since(earlier),
        None => now.clone(),
    });
    gained
        .filter(|gained| gained.calls.calls() > 0 || !gained.series.is_empty())
        .map(|gained| gained.report(biases, Some(looks)))
        .collect()
}

/// Pairs each item with its earlier reading. Sites and series keep their positions; new ones are
/// added at the end.
fn with_earlier<'a, T>(
    now: &'a [T],
    earlier: &'a [T],
) -> impl Iterator<Item = (&'a T, Option<&'a T>)> {
    now.iter().zip(earlier.iter().map(Some).chain(iter::repeat(None)))
}

impl SiteState {
    /// Creates an empty reading.
    pub fn new(site: &'static CallSite) -> SiteState {
        SiteState {
            site,
            calls: Counts::default(),
            population: Population::default(),
            holds: HoldCounts::default(),
            series: Vec::new(),
        }
    }

    /// Adds the calls that a thread has counted.
    pub fn add_calls(&mut self, counters: &CallCounters) {
        let counts = counters.read();
        self.calls.add(counts);
        self.population.add(counters.population(counts));
    }

    /// Adds the calls on threads without their own counters for the site.
    pub fn add_shared_calls(&mut self) {
        let site = self.site;
        self.add_calls(&site.shared_counters());
        self.calls.skipped += site.skipped_inside.load(Relaxed);
        if site.is_span() {
            self.estimate_spans();
        }
    }

    /// Estimates the number of spans from those that were recorded. Root spans are passed over before their
    /// callsite is known.
    fn estimate_spans(&mut self) {
        self.population.estimate_calls();
        let others = self.population.calls - self.calls.timed as f64;
        self.calls.unsampled = others.max(0.0).round() as u64;
    }

    /// Returns the number of the site's calls on GPUs for which those in the call tree stand: all but the lost
    /// and unfinished ones. `None` if it is unknown.
    pub fn calls_in_tree(&self, biases: &Biases) -> Option<f64> {
        let views = self.views(biases);
        if self.population.is_estimated || views.iter().any(|view| view.info.graph) {
            return None;
        }
        let (mut timed, mut known) = (0, 0);
        for view in views.iter().filter(|view| view.info.launch.is_none()) {
            let counts = &view.tally.counts;
            timed += counts.timed;
            if matches!(view.info.clock, Clock::Events | Clock::Kernels) {
                known += counts.measured + counts.opened;
            }
        }
        (timed > 0).then(|| self.population.calls * known as f64 / timed as f64)
    }

    /// Adds the brackets of a series that a thread has counted, or that were counted for graphs.
    pub fn add_brackets(&mut self, counters: &SeriesCounters) {
        let at = counters.id.index();
        if at >= self.series.len() {
            let cells = self.site.series();
            let new = cells.iter().skip(self.series.len()).map(|cell| SeriesState {
                id: cell.id,
                tally: Tally::default(),
                times: SampleTimes::default(),
            });
            self.series.extend(new);
        }
        if let Some(series) = self.series.get_mut(at) {
            series.tally.counts.add(&counters.counts);
        }
    }

    /// Copies the sums of the series.
    #[cfg(feature = "metrics")]
    pub fn copy_sums(&mut self) {
        for (series, cell) in self.series.iter_mut().zip(self.site.series().iter()) {
            series.tally.sums = cell.series.sums();
            series.tally.inner = cell.series.inner();
        }
    }

    /// Copies the sums and times of the series at index `next`, and advances it. Returns `true` if more are left. Threads
    /// that record into the site wait only for the copy, not for the computation of the statistics.
    pub fn copy_times(&mut self, next: &mut usize) -> bool {
        let data = self.site.series().get(*next).map(|cell| cell.series.clone());
        if let Some((data, series)) = data.zip(self.series.get_mut(*next)) {
            series.tally.sums = data.sums();
            series.tally.inner = data.inner();
            series.times = data.times();
        }
        *next += 1;
        *next < self.series.len()
    }

    /// Returns `true` if a series has host clock times.
    pub fn has_host_times(&self) -> bool {
        self.series.iter().any(|series| series.id.device == DeviceId::Host)
    }

    /// Returns `true` if a series has times on a GPU, by events or by CUPTI.
    pub fn has_gpu_times(&self) -> bool {
        self.series.iter().any(|series| {
            let tally = &series.tally;
            let has_times = tally.sums.brackets.samples > 0 || tally.counts.opened > 0;
            series.id.device != DeviceId::Host && has_times
        })
    }

    /// Returns `true` if the kernels of some of the site's calls should have been recorded.
    pub fn wants_kernels(&self, config: &Config) -> bool {
        let Spec { clock, .. } = self.site.spec;
        let may_open = || match clock {
            Clock::Kernels => self.series.iter().any(|series| !series.id.on_default),
            _ => true,
        };
        let is_wanted = match config.recording {
            Some(recording) => recording != RecordMode::Off && clock != Clock::Host,
            None => clock == Clock::Kernels,
        };
        is_wanted && may_open() && self.calls.timed > 0
    }

    /// Returns the series, as shown in reports.
    pub fn views(&self, biases: &Biases) -> Vec<SeriesView<'_>> {
        let spec = &self.site.spec;
        let mut views = Vec::with_capacity(self.series.len());
        // An opened call that is finally counted on another device leaves an empty series.
        let begun = || self.series.iter().filter(|series| series.tally.counts.timed > 0);
        for series in begun() {
            let siblings = || begun().filter(|other| is_sibling(other.id, series.id));
            let measure = series.id.measure(spec.scope);
            if spec.is_single && measure == Measure::Launch && !series.id.graph {
                // If a call makes at most one launch, its sum is that launch. Only calls without a
                // launch are counted in a separate series, which is merged here.
                let mut sum = self.view(series, None, Measure::Sum, biases);
                if let Some(idle) = siblings().find(|other| other.id.launch.is_none()) {
                    sum.tally.counts.add_idle(&idle.tally.counts);
                }
                views.push(sum);
            }
            let is_merged = spec.is_single
                && measure == Measure::Sum
                && siblings().any(|other| other.id.launch.is_some());
            if !is_merged {
                views.push(self.view(series, series.id.launch, measure, biases));
            }
        }
        views
    }

    fn view<'a>(
        &self,
        series: &'a SeriesState,
        launch: Option<u32>,
        measure: Measure,
        biases: &Biases,
    ) -> SeriesView<'a> {
        let SeriesState { id, tally, .. } = *series;
        let launch = launch.and_then(|index| {
            let launch = self.site.spec.launches.get(index as usize)?;
            Some(report::value!(Launch { index, name: launch.name.to_owned(), line: launch.line }))
        });
        let info = SeriesInfo {
            device: id.device.to_string(),
            launch,
            measure,
            key: self.site.keys.text(id.key).map(str::to_owned),
            cache: id.cache,
            clock: id.clock,
            graph: id.graph,
            population: (!id.graph).then_some(self.population),
            repeats: id.repeats(),
            counted: self.site.rate.get().is_counted(),
            looks: None,
            start_ns: match id.clock {
                Clock::Events | Clock::Sync | Clock::Kernels => cuda::start_ns(),
                Clock::Host => 0,
            },
            bias: match id.clock {
                Clock::Events => biases.of(id.device),
                Clock::Sync | Clock::Host | Clock::Kernels => Some(Bias::NONE),
            },
        };
        SeriesView { info, tally, state: series }
    }

    /// Returns the site for the report. `looks` is the number of looks if the report is about a
    /// run.
    pub fn report(&self, biases: &Biases, looks: Option<u32>) -> report::Site {
        let SiteState { site, calls, holds, .. } = self;
        let series = self.views(biases).into_iter();
        report::value!(Site {
            launches_seen: site.spec.launches.len() as u32,
            options: site.spec.options.to_owned(),
            gpu_keys: gpu_keys(&site.spec),
            remarks: site.spec.remarks.to_vec(),
            calls: calls.calls(),
            warmup: calls.warmup,
            skipped: calls.all_skipped(),
            unsampled: calls.unsampled,
            timed: calls.timed,
            holds_released: holds.released,
            holds_expired: holds.expired,
            sample_rate: site.timed_share(),
            warnings: warnings(site),
            series: series
                .map(|view| {
                    let info = SeriesInfo { looks, ..view.info };
                    view.state.times.report(info, &view.tally)
                })
                .collect(),
            ..report::Site::new(
                site.name().to_owned(),
                site.spec.file.to_owned(),
                site.spec.line,
                site.spec.scope,
            )
        })
    }
}

/// Returns `true` if two series have the same device, cache state and key, and both or neither are from
/// graphs.
fn is_sibling(one: &SeriesId, other: &SeriesId) -> bool {
    let key = |id: &SeriesId| (id.device, id.cache, id.key, id.graph);
    key(one) == key(other)
}

/// Returns the keys of an attribute that need a GPU.
fn gpu_keys(spec: &Spec) -> Vec<String> {
    let given =
        [("cold", spec.cold.is_some()), ("sleep", spec.sleep.is_some()), ("graph", spec.graph)];
    given.into_iter().filter(|(_, is_given)| *is_given).map(|(key, _)| key.to_owned()).collect()
}

fn warnings(site: &CallSite) -> Vec<String> {
    let mut warnings = Vec::new();
    if site.hold_deadline().is_off() {
        warnings.push("holds hit their deadline too often and were switched off".to_owned());
    }
    if let Some(stream) = site.unknown_stream.get() {
        warnings.push(format!(
            "calls with a stream of the type `{stream}` are not timed, because safe code may give it any handle: \
             implement `GpuStream` for it"
        ));
    }
    let invalid = site.invalid_workloads.load(Relaxed);
    if invalid > 0 {
        warnings.push(format!(
            "`bytes` or `flops` of {invalid} timed calls are invalid and left out: expected finite \
             numbers that are not negative, and `None` where the work is not known"
        ));
    }
    warnings
}

impl Since for SiteState {
    fn since(&self, earlier: &SiteState) -> SiteState {
        let series = with_earlier(&self.series, &earlier.series);
        let series = series.filter_map(|(now, earlier)| match earlier {
            Some(earlier) => {
                let has_begun = now.tally.counts.timed > earlier.tally.counts.timed;
                has_begun.then(|| now.since(earlier))
            }
            None => Some(now.clone()),
        });
        SiteState {
            site: self.site,
            calls: self.calls.since(&earlier.calls),
            population: self.population.since(&earlier.population),
            holds: self.holds.since(&earlier.holds),
            series: series.collect(),
        }
    }
}

impl Since for SeriesState {
    fn since(&self, earlier: &SeriesState) -> SeriesState {
        SeriesState {
            id: self.id,
            tally: self.tally.since(&earlier.tally),
            times: self.times.since(&earlier.times),
        }
    }
}

#[cfg(test)]
impl SiteState {
    /// Creates the reading of a site with these calls, from samples that a test recorded into the
    /// table.
    pub(crate) fn of_table(
        site: &'static CallSite,
        calls: Counts,
        table: &SeriesTable,
    ) -> SiteState {
        let mut state = SiteState { calls, ..SiteState::new(site) };
        table.counters(0, usize::MAX).iter().for_each(|counters| state.add_brackets(counters));
        let mut next = 0;
        while state.copy_times(&mut next) {}
        state
    }
}

#[cfg(test)]
mod tests;
