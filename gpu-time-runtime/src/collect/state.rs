//! What is known of the sites at one moment, and what that is more than at an earlier one: pure.

use crate::stats::series::{Recorded, SeriesInfo, Tally};
use gpu_time_report::Site;

/// A site at one moment.
#[derive(Clone, Debug)]
pub(crate) struct SiteState {
    /// Without its series.
    pub site: Site,
    pub rows: Vec<SeriesState>,
}

/// A series of a site before its statistics are made.
#[derive(Clone, Debug)]
pub(crate) struct SeriesState {
    pub info: SeriesInfo,
    pub tally: Tally,
    pub recorded: Recorded,
}

/// The functions that were called since the sites were in the earlier states, with what was counted and
/// measured since. Of their series there are those of which a bracket has begun since.
pub(crate) fn since(earlier: &[SiteState], now: &[SiteState]) -> Vec<Site> {
    // Sites keep their places, and new ones join at the end.
    let known = earlier.iter().map(Some).chain(std::iter::repeat(None));
    let gained = now.iter().zip(known).map(|(site, before)| match before {
        Some(before) => site.since(before),
        None => site.clone(),
    });
    gained
        .filter(|gained| gained.site.calls > 0 || !gained.rows.is_empty())
        .map(SiteState::report)
        .collect()
}

impl SiteState {
    /// The site of the report.
    pub fn report(self) -> Site {
        let series = |SeriesState { info, tally, recorded }| recorded.report(info, tally);
        Site { series: self.rows.into_iter().map(series).collect(), ..self.site }
    }

    fn since(&self, before: &SiteState) -> SiteState {
        let count = |count: fn(&Site) -> u64| count(&self.site).saturating_sub(count(&before.site));
        // That of the function is each row's, also of one that is new.
        let population = before.rows.iter().find_map(|row| row.info.population).unwrap_or_default();
        let rows = self.rows.iter().filter_map(|row| {
            match before.rows.iter().find(|earlier| earlier.info.is_same(&row.info)) {
                Some(earlier) => (row.info.timed > earlier.info.timed).then(|| row.since(earlier)),
                None => Some(row.clone()),
            }
        });
        let rows = rows.map(|mut row| {
            row.info.population = row.info.population.map(|all| all.since(population));
            row
        });
        SiteState {
            site: Site {
                calls: count(|site| site.calls),
                warmup: count(|site| site.warmup),
                skipped: count(|site| site.skipped),
                unsampled: count(|site| site.unsampled),
                timed: count(|site| site.timed),
                holds_released: count(|site| site.holds_released),
                holds_expired: count(|site| site.holds_expired),
                ..self.site.clone()
            },
            rows: rows.collect(),
        }
    }
}

impl SeriesState {
    fn since(&self, before: &SeriesState) -> SeriesState {
        let (info, tally) = (&self.info, self.tally.since(before.tally));
        SeriesState {
            info: SeriesInfo {
                // With brackets that had begun before, and ended since.
                timed: tally.ended() + info.in_flight,
                ..info.clone()
            },
            tally,
            recorded: self.recorded.since(&before.recorded),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::bias::Bias;
    use crate::stats::sampling::Population;
    use crate::stats::series;
    use crate::types::attribute::Clock;
    use crate::types::sample::{CacheState, Measure, Sample};
    use crate::types::workload::{Amount, Workload};
    use gpu_time_report::{ScopeKind, Series};

    const BIAS: Bias = Bias { ns: 200.0, queued_ns: 260.0, ..Bias::NONE };

    #[derive(Clone, Copy)]
    enum Kind {
        Starved,
        Fed,
        Queued,
    }

    /// So many samples of one length, of each kind, that moved 10,000 bytes each.
    fn state(samples: &[(u64, Kind, f64)]) -> SiteState {
        let mut series = series::Series::new();
        for &(count, kind, raw_ns) in samples {
            for _ in 0..count {
                let mut sample = Sample::new(raw_ns).unwrap();
                sample.flags.fed = !matches!(kind, Kind::Starved);
                sample.flags.queued = matches!(kind, Kind::Queued);
                series.record(sample);
                let bytes = Amount::of(&10_000.0);
                series.record_work(sample, Workload { bytes, ..Workload::UNKNOWN });
            }
        }
        let calls = samples.iter().map(|(count, ..)| count).sum();
        let info = SeriesInfo {
            device: "cuda:0".to_owned(),
            launch: None,
            measure: Measure::Span,
            key: None,
            cache: CacheState::AsFound,
            clock: Clock::Events,
            graph: false,
            timed: calls,
            in_flight: 0,
            start_ns: 0,
            population: None,
            repeats: false,
            bias: Some(BIAS),
        };
        let site = Site {
            name: "f".to_owned(),
            file: "f.rs".to_owned(),
            line: 1,
            scope: ScopeKind::Body,
            launches_seen: 0,
            options: String::new(),
            remarks: Vec::new(),
            calls,
            warmup: 0,
            skipped: 0,
            unsampled: 0,
            timed: calls,
            holds_released: 0,
            holds_expired: 0,
            sample_rate: 1.0,
            warnings: Vec::new(),
            series: Vec::new(),
        };
        let row = SeriesState { info, tally: series.tally(), recorded: series.recorded() };
        SiteState { site, rows: vec![row] }
    }

    #[test]
    fn a_row_that_is_new_stands_for_the_calls_of_the_run() {
        let of = |calls: f64| Some(Population { calls, weights: calls, variance: 0.0 });
        let mut before = state(&[(10, Kind::Fed, 1_200.0)]);
        let mut now = before.clone();
        before.rows[0].info.population = of(10_000.0);
        now.rows[0].info.population = of(11_000.0);
        now.rows.push(now.rows[0].clone());
        now.rows[1].info.cache = CacheState::Cold;
        let run = now.since(&before);
        let [new] = &run.rows[..] else { panic!("{:?}", run.rows) };
        assert_eq!((new.info.cache, new.info.population), (CacheState::Cold, of(1_000.0)));
    }

    /// What the later samples come to after the earlier ones, and without any before.
    fn after_and_alone(earlier: &[(u64, Kind, f64)], later: &[(u64, Kind, f64)]) -> [Series; 2] {
        let all = [earlier, later].concat();
        let [site] = &since(&[state(earlier)], &[state(&all)])[..] else { panic!("one site") };
        [site.series[0].clone(), state(later).report().series[0].clone()]
    }

    /// Whatever there was before. Times of less than 2 µs are kept to the nanosecond.
    #[test]
    fn a_run_is_reported_as_if_there_had_been_nothing_before() {
        use Kind::{Fed, Queued, Starved};
        let runs: [&[_]; 4] = [
            &[(60, Starved, 900.0)],
            &[(60, Fed, 1_200.0)],
            &[(60, Queued, 1_260.0)],
            &[(6, Starved, 1_800.0), (40, Queued, 1_260.0), (20, Fed, 1_200.0)],
        ];
        for earlier in runs.map(|run| [run, &[(900, run[0].1, 1_500.0)]].concat()) {
            for later in runs {
                let [run, alone] = after_and_alone(&earlier, later);
                let figures = |series: &Series| {
                    (
                        [series.fed, series.starved, series.queued, series.measured, series.timed],
                        (series.upper_bound, series.bias_ns, series.ci95_ns),
                        [series.raw_ns, series.net_ns].map(|stats| stats.unwrap().median),
                        [series.raw_ns, series.net_ns].map(|stats| stats.unwrap().sum.round()),
                        series.histogram.clone(),
                        series.bytes.map(|bytes| (bytes.samples, bytes.total, bytes.gb_per_s)),
                    )
                };
                assert_eq!(figures(&run), figures(&alone));
            }
        }
    }
}
