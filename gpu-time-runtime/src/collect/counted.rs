//! What was counted of a site at one moment, and the series of the report that this comes to.

use std::collections::HashMap;
use std::ptr;

use crate::collect::devices::{Biases, device_id};
use crate::collect::state::{SeriesState, SiteState};
use crate::cuda;
use crate::record::threads;
use crate::site::callsite::CallSite;
use crate::site::counters::Counts;
use crate::site::series_id::{SeriesCell, SeriesId};
use crate::stats::bias::Bias;
use crate::stats::sampling::Population;
use crate::stats::series::{SeriesInfo, Tally};
use crate::types::attribute::Clock;
use crate::types::sample::Measure;
use gpu_time_report as report;

/// What the lanes counted of a row: timed, in flight.
pub(super) type Tallies = HashMap<*const SeriesId, (u64, u64)>;

/// What was counted of a site at one moment, with each row and its tally.
pub(crate) struct SiteCounts {
    pub site: &'static CallSite,
    pub counts: Counts,
    population: Population,
    rows: Vec<(&'static SeriesId, Tally)>,
}

/// A series of the report before its statistics are made.
pub(crate) struct SeriesCounts {
    pub info: SeriesInfo,
    pub tally: Tally,
    /// The index of the row whose samples it shows.
    pub row: usize,
}

impl SiteCounts {
    /// What is counted of it now.
    pub(super) fn of(site: &'static CallSite, threads_: &threads::AllThreads) -> SiteCounts {
        let rows =
            site.series().iter().map(|SeriesCell { id, series }| (*id, series.tally())).collect();
        let (counts, population) = threads::counts(site, threads_);
        SiteCounts { site, counts, population, rows }
    }

    /// The series that these rows come to.
    pub(super) fn shown(&self, tallies: &Tallies, biases: &Biases) -> Vec<SeriesCounts> {
        let spec = &self.site.spec;
        let on_threads =
            |row: &'static SeriesId| tallies.get(&ptr::from_ref(row)).copied().unwrap_or_default();
        let mut shown = Vec::new();
        for (row, tally) in &self.rows {
            let is_same = |other: &SeriesId| {
                let place = |row: &SeriesId| (row.device, row.cache, row.key, row.graph);
                place(other) == place(row)
            };
            let (timed, in_flight) = on_threads(row);
            let info = |launch: Option<u32>, measure: Measure| SeriesInfo {
                device: device_id(row.device),
                launch: launch.and_then(|index| {
                    let launch = spec.launches.get(index as usize)?;
                    Some(report::Launch { index, name: launch.name.to_owned(), line: launch.line })
                }),
                measure,
                key: self.site.keys.text(row.key).map(str::to_owned),
                cache: row.cache,
                clock: row.clock,
                graph: row.graph,
                timed,
                in_flight,
                population: (!row.graph).then_some(self.population),
                repeats: row.repeats(),
                start_ns: match row.clock {
                    Clock::Events | Clock::Sync => cuda::start_ns(),
                    Clock::Host => 0,
                },
                bias: match row.clock {
                    Clock::Events => biases.of(row.device),
                    Clock::Sync | Clock::Host => Some(Bias::NONE),
                },
            };
            let measure = row.measure(spec.scope);
            if spec.is_single && measure == Measure::Launch && !row.graph {
                // The sum of one launch is that launch; only calls without one are counted apart.
                let idle =
                    self.rows.iter().find(|(idle, _)| idle.launch.is_none() && is_same(idle));
                let (mut sum, mut tally) = (info(None, Measure::Sum), *tally);
                if let Some((idle, of_idle)) = idle {
                    tally.add_idle(*of_idle);
                    let (timed, in_flight) = on_threads(idle);
                    sum.timed += timed;
                    sum.in_flight += in_flight;
                }
                shown.push(SeriesCounts { info: sum, tally, row: row.index() });
            }
            let is_shown_so = spec.is_single
                && measure == Measure::Sum
                && self.rows.iter().any(|(other, _)| other.launch.is_some() && is_same(other));
            if !is_shown_so {
                shown.push(SeriesCounts {
                    info: info(row.launch, measure),
                    tally: *tally,
                    row: row.index(),
                });
            }
        }
        shown
    }

    /// The site with its series at this moment.
    pub(super) fn state(self, tallies: &Tallies, biases: &Biases) -> SiteState {
        let shown = self.shown(tallies, biases);
        let SiteCounts { site, counts, .. } = self;
        let row = |SeriesCounts { info, tally, row }| {
            // Who times a call waits for this copy, and not for the statistics.
            let recorded = site.series().get(row)?.series.recorded();
            Some(SeriesState { info, tally, recorded })
        };
        let rows = shown.into_iter().filter_map(row).collect();
        let mut warnings = Vec::new();
        let (holds, is_off) = {
            let policy = site.hold_deadline();
            (policy.counts(), policy.is_off())
        };
        if is_off {
            warnings.push("holds hit their deadline too often and were switched off".to_owned());
        }
        let invalid = site.invalid_workloads();
        if invalid > 0 {
            warnings.push(format!(
            "`bytes` or `flops` of {invalid} timed calls are invalid and left out: expected finite \
             numbers that are not negative, and `None` where the work is not known"
        ));
        }
        let site = report::Site {
            name: site.name().to_owned(),
            file: site.spec.file.to_owned(),
            line: site.spec.line,
            scope: site.spec.scope,
            launches_seen: site.spec.launches.len() as u32,
            options: site.spec.options.to_owned(),
            remarks: site.spec.remarks.to_vec(),
            calls: counts.calls(),
            warmup: counts.warmup,
            skipped: counts.all_skipped(),
            unsampled: counts.unsampled,
            timed: counts.timed,
            holds_released: holds.released,
            holds_expired: holds.expired,
            sample_rate: site.sampling().rate(),
            warnings,
            series: Vec::new(),
        };
        SiteState { site, rows }
    }
}
