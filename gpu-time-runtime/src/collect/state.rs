//! Readings of the sites, from which reports are built.

use std::iter;
use std::sync::atomic::Ordering::Relaxed;

use crate::collect::devices::Biases;
use crate::cuda;
use crate::record::threads::{self, Threads};
use crate::site::series_id::{SeriesCell, SeriesId};
use crate::site::{callsite::CallSite, counters::Counts};
use crate::stats::series::{SampleTimes, SeriesInfo, Tally};
use crate::stats::since::{Since, impl_since};
use crate::stats::{bias::Bias, hold_deadline::HoldCounts, sampling::Population};
use crate::types::{attribute::Clock, device::DeviceId, sample::Measure};
use gpu_time_report as report;

/// The counters of a site and its series at one moment.
#[derive(Clone)]
pub(crate) struct SiteState {
    pub site: &'static CallSite,
    pub calls: Counts,
    population: Population,
    holds: HoldCounts,
    series: Vec<SeriesState>,
}

/// The counters of a series at one moment.
#[derive(Clone)]
pub(crate) struct SeriesState {
    pub id: &'static SeriesId,
    /// Brackets begun, or calls for a sum.
    timed: u64,
    /// Brackets neither measured nor lost yet.
    in_flight: u64,
    tally: Tally,
    /// Empty until [`SiteState::copy_times`] is called.
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

/// Returns the sites of the report on what happened between two readings: those that were called, with the
/// series in which a bracket has begun. `looks` is the number of times that this was asked so far.
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
    /// Creates an empty reading with space for the site's series.
    pub fn new(site: &'static CallSite) -> SiteState {
        let len = site.series().len();
        SiteState {
            site,
            calls: Counts::default(),
            population: Population::default(),
            holds: HoldCounts::default(),
            series: Vec::with_capacity(len),
        }
    }

    /// Reads the counters. Allocates only if a series was created after [`SiteState::new`] was
    /// called.
    pub fn read(&mut self, threads: &Threads) {
        (self.calls, self.population) = threads::counts(self.site, threads);
        self.series.extend(self.site.series().iter().map(|SeriesCell { id, series }| {
            SeriesState {
                id,
                timed: 0,
                in_flight: 0,
                tally: series.tally(),
                times: SampleTimes::default(),
            }
        }));
    }

    /// Adds the brackets that a thread, or the graphs, have begun in a series.
    pub fn add_brackets(&mut self, id: &SeriesId, timed: u64, in_flight: u64) {
        if let Some(series) = self.series.get_mut(id.index()) {
            series.timed += timed;
            series.in_flight += in_flight;
        }
    }

    /// Copies the times of all series and the outcomes of holds.
    pub fn copy_times(&mut self) {
        let cells = self.site.series();
        for (series, cell) in self.series.iter_mut().zip(cells.iter()) {
            series.times = cell.series.times();
        }
        drop(cells);
        self.holds = self.site.hold_deadline().counts();
    }

    /// Returns `true` if a series has host clock times.
    pub fn has_host_times(&self) -> bool {
        self.series.iter().any(|series| series.id.device == DeviceId::Host)
    }

    /// Returns the series, as shown in reports.
    pub fn views(&self, biases: &Biases) -> Vec<SeriesView<'_>> {
        let spec = &self.site.spec;
        let mut views = Vec::with_capacity(self.series.len());
        for series in &self.series {
            let siblings = || self.series.iter().filter(|other| is_sibling(other.id, series.id));
            let measure = series.id.measure(spec.scope);
            if spec.is_single && measure == Measure::Launch && !series.id.graph {
                // The sum of a single launch is that launch. Only calls without a launch are
                // counted in a separate series, which is merged here.
                let mut sum = self.view(series, None, Measure::Sum, biases);
                if let Some(idle) = siblings().find(|other| other.id.launch.is_none()) {
                    sum.tally.add_idle(&idle.tally);
                    sum.info.timed += idle.timed;
                    sum.info.in_flight += idle.in_flight;
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
        let SeriesState { id, timed, in_flight, tally, .. } = *series;
        let launch = launch.and_then(|index| {
            let launch = self.site.spec.launches.get(index as usize)?;
            Some(report::Launch { index, name: launch.name.to_owned(), line: launch.line })
        });
        let info = SeriesInfo {
            device: id.device.to_string(),
            launch,
            measure,
            key: self.site.keys.text(id.key).map(str::to_owned),
            cache: id.cache,
            clock: id.clock,
            graph: id.graph,
            timed,
            in_flight,
            population: (!id.graph).then_some(self.population),
            repeats: id.repeats(),
            counted: self.site.rate.get().is_counted(),
            looks: None,
            start_ns: match id.clock {
                Clock::Events | Clock::Sync => cuda::start_ns(),
                Clock::Host => 0,
            },
            bias: match id.clock {
                Clock::Events => biases.of(id.device),
                Clock::Sync | Clock::Host => Some(Bias::NONE),
            },
        };
        SeriesView { info, tally, state: series }
    }

    /// Returns the site of the report. `looks` is the number of looks at a run, if it is of one.
    pub fn report(&self, biases: &Biases, looks: Option<u32>) -> report::Site {
        let SiteState { site, calls, holds, .. } = self;
        let series = self.views(biases).into_iter();
        report::Site {
            name: site.name().to_owned(),
            file: site.spec.file.to_owned(),
            line: site.spec.line,
            scope: site.spec.scope,
            launches_seen: site.spec.launches.len() as u32,
            options: site.spec.options.to_owned(),
            remarks: site.spec.remarks.to_vec(),
            calls: calls.calls(),
            warmup: calls.warmup,
            skipped: calls.all_skipped(),
            unsampled: calls.unsampled,
            timed: calls.timed,
            holds_released: holds.released,
            holds_expired: holds.expired,
            sample_rate: site.rate.get().rate(),
            warnings: warnings(site),
            series: series
                .map(|view| {
                    let info = SeriesInfo { looks, ..view.info };
                    view.state.times.report(info, &view.tally)
                })
                .collect(),
        }
    }
}

/// Returns `true` if two series differ only in their launch.
fn is_sibling(one: &SeriesId, other: &SeriesId) -> bool {
    let key = |id: &SeriesId| (id.device, id.cache, id.key, id.graph);
    key(one) == key(other)
}

fn warnings(site: &CallSite) -> Vec<String> {
    let mut warnings = Vec::new();
    if site.hold_deadline().is_off() {
        warnings.push("holds hit their deadline too often and were switched off".to_owned());
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
            Some(earlier) => (now.timed > earlier.timed).then(|| now.since(earlier)),
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
        let tally = self.tally.since(&earlier.tally);
        SeriesState {
            id: self.id,
            // Includes brackets that had begun before the earlier reading and ended after it.
            timed: tally.ended() + self.in_flight,
            in_flight: self.in_flight,
            tally,
            times: self.times.since(&earlier.times),
        }
    }
}

#[cfg(test)]
impl SiteState {
    /// Reads a site whose samples were recorded by a test, with the given calls and brackets in
    /// flight.
    pub(crate) fn of_samples(
        site: &'static CallSite,
        calls: Counts,
        in_flight: &[u64],
    ) -> SiteState {
        let mut state = SiteState::new(site);
        state.read(&threads::locked_threads());
        state.calls = calls;
        for (series, in_flight) in state.series.iter_mut().zip(in_flight) {
            series.in_flight = *in_flight;
            series.timed = series.tally.ended() + in_flight;
        }
        state.copy_times();
        state
    }
}

#[cfg(test)]
mod tests;
