//! Whether what a run touched has settled: pure, from what the run counted and measured.

use crate::settle::options::Settle;
use crate::settle::unmet::{Obstacle, Unmet};
use gpu_time_report::{self as report, Series, Site};

/// Where the step of a device's events is not known, times count as told apart to the nanosecond.
pub(super) const NO_STEP_NS: f64 = 1.0;

/// How far a run has come.
#[derive(Debug, PartialEq)]
pub(super) struct Verdict {
    /// How many of the series touched have settled.
    pub settled: usize,
    /// Those that have not.
    pub unmet: Vec<Unmet>,
}

impl Verdict {
    /// Of what the run touched, with what it counted and measured itself. A site without series is touched
    /// too, when calls of it served to warm up or were not sampled.
    ///
    /// `step_ns` is the step in which the clock of a device advances.
    pub fn of(settle: &Settle, run: &[Site], step_ns: impl Fn(&str) -> Option<f64>) -> Verdict {
        let mut verdict = Verdict { settled: 0, unmet: Vec::new() };
        for site in run {
            for series in site.series() {
                let step_ns = step_ns(series.device()).unwrap_or(NO_STEP_NS);
                match obstacle(settle, step_ns, series) {
                    None => verdict.settled += 1,
                    Some(obstacle) => verdict.unmet.push(Unmet {
                        site: site.name().to_owned(),
                        series: series.place(),
                        samples: samples(series),
                        margin: margin(series),
                        obstacle,
                    }),
                }
            }
            let is_passed_over = site.sample_rate() > 0.0 && site.unsampled() > 0;
            let obstacle = match (site.warmup() > 0, is_passed_over) {
                (true, _) => Some(Obstacle::Warmup),
                (false, true) => Some(Obstacle::Unsampled),
                (false, false) => None,
            };
            if let Some(obstacle) = obstacle.filter(|_| site.series().is_empty()) {
                verdict.unmet.push(Unmet {
                    site: site.name().to_owned(),
                    series: String::new(),
                    samples: 0,
                    margin: None,
                    obstacle,
                });
            }
        }
        verdict
    }

    /// How many series are to settle.
    pub fn len(&self) -> usize {
        self.settled + self.unmet.len()
    }

    /// Whether nothing is to settle.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether everything has settled, but for what never will.
    pub fn is_over(&self) -> bool {
        !self.unmet.iter().any(Unmet::is_open)
    }
}

/// The samples that the figures are over.
fn samples(series: &Series) -> u64 {
    if series.fed() > 0 { series.fed() } else { series.starved() }
}

/// What keeps a series from having settled.
pub(super) fn obstacle(settle: &Settle, step_ns: f64, series: &Series) -> Option<Obstacle> {
    let is_enough = |count: u64| count >= settle.min_samples;
    let lost = series.lost().map(|(_, count)| count).sum();
    if series.measured() == 0 && is_enough(lost) && series.in_flight() == 0 {
        return Some(Obstacle::Lost(lost));
    }
    if series.fed() + series.starved() == 0 && is_enough(series.at_floor()) {
        // Nothing ever ran: there is no time to be known better.
        return None;
    }
    let Some([low, high]) = series.ci95_ns().filter(|_| is_enough(samples(series))) else {
        return Some(Obstacle::Few(settle.min_samples));
    };
    // Half a step for what rounding does to either end.
    let is_one_step = high - low <= 1.5 * report::step_ns(high).max(step_ns);
    let is_narrow = is_one_step || margin(series).is_some_and(|margin| margin <= settle.margin);
    (!is_narrow).then_some(Obstacle::Wide(settle.margin))
}

/// Half the width of the median's interval as a share of the median that the report shows.
pub(super) fn margin(series: &Series) -> Option<f64> {
    let [low, high] = series.ci95_ns()?;
    let median = series.net_ns().or(series.raw_ns())?.median();
    Some((high - low) / 2.0 / median).filter(|share| share.is_finite())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::collect::state::{self, SeriesState, SiteState};
    use crate::stats::series::{self, SeriesInfo};
    use crate::types::attribute::{Clock, ScopeKind};
    use crate::types::sample::{CacheState, Lost, Measure, Sample};

    /// What was recorded of a made-up series.
    #[derive(Clone, Default)]
    struct Made {
        fed: Vec<f64>,
        starved: Vec<f64>,
        at_floor: u64,
        lost: u64,
        in_flight: u64,
        cache: Option<CacheState>,
    }

    fn fed(times: impl IntoIterator<Item = u32>) -> Made {
        Made { fed: times.into_iter().map(f64::from).collect(), ..Made::default() }
    }

    fn starved(times: impl IntoIterator<Item = u32>) -> Made {
        Made { starved: fed(times).fed, ..Made::default() }
    }

    impl Made {
        fn series(&self) -> Series {
            let SeriesState { info, tally, recorded } = self.row();
            recorded.report(info, tally)
        }

        fn row(&self) -> SeriesState {
            let mut series = series::Series::new();
            let sample = |ns: f64, fed: bool, at_floor: bool| {
                let mut sample = Sample::new(ns).unwrap();
                (sample.flags.fed, sample.flags.at_floor) = (fed, at_floor);
                sample
            };
            self.fed.iter().for_each(|&ns| series.record(sample(ns, true, false)));
            self.starved.iter().for_each(|&ns| series.record(sample(ns, false, false)));
            (0..self.at_floor).for_each(|_| series.record(sample(1_280.0, true, true)));
            (0..self.lost).for_each(|_| series.lose(Lost::Failed));
            let measured = (self.fed.len() + self.starved.len()) as u64 + self.at_floor;
            let info = SeriesInfo {
                device: "cuda:0".to_owned(),
                launch: None,
                measure: Measure::Span,
                key: None,
                cache: self.cache.unwrap_or(CacheState::AsFound),
                clock: Clock::Events,
                graph: false,
                timed: measured + self.lost + self.in_flight,
                in_flight: self.in_flight,
                start_ns: 0,
                population: None,
                repeats: false,
                bias: None,
            };
            SeriesState { info, tally: series.tally(), recorded: series.recorded() }
        }
    }

    fn site(name: &str, warmup: u64, series: &[Made]) -> SiteState {
        let site = Site {
            name: name.to_owned(),
            file: "f.rs".to_owned(),
            line: 1,
            scope: ScopeKind::Body,
            launches_seen: 0,
            options: String::new(),
            remarks: Vec::new(),
            calls: warmup,
            warmup,
            skipped: 0,
            unsampled: 0,
            timed: 0,
            holds_released: 0,
            holds_expired: 0,
            sample_rate: 1.0,
            warnings: Vec::new(),
            series: Vec::new(),
        };
        SiteState { site, rows: series.iter().map(Made::row).collect() }
    }

    /// As on an H200.
    fn step_ns(device: &str) -> Option<f64> {
        (device == "cuda:0").then_some(32.0)
    }

    fn verdict(before: Vec<SiteState>, now: Vec<SiteState>) -> Verdict {
        Verdict::of(&Settle::default(), &state::since(&before, &now), step_ns)
    }

    /// What keeps one series that was made in this run from having settled.
    fn alone(settle: Settle, made: Made) -> Option<Obstacle> {
        let verdict = Verdict::of(&settle, &[site("f", 0, &[made]).report()], step_ns);
        assert_eq!(verdict.len(), 1);
        verdict.unmet.first().map(|unmet| unmet.obstacle)
    }

    /// So many times, evenly from `low` to `high`.
    fn spread(count: u32, low: u32, high: u32) -> impl Iterator<Item = u32> {
        (0..count).map(move |i| low + (high - low) * i / (count - 1))
    }

    const DEFAULT: Settle = Settle {
        margin: 0.005,
        min_samples: 50,
        min_time: Duration::ZERO,
        timeout: Duration::ZERO,
        cold: None,
        graph: None,
    };

    #[test]
    fn one_time_settles_with_enough_samples() {
        assert_eq!(alone(DEFAULT, fed([10_000; 49])), Some(Obstacle::Few(50)));
        assert_eq!(alone(DEFAULT, fed([10_000; 50])), None);
        // Five have no interval, however few were wished for.
        let few = DEFAULT.min_samples(0);
        assert_eq!(alone(few, fed([10_000; 5])), Some(Obstacle::Few(6)));
        assert_eq!(alone(few, fed([10_000; 6])), None);
    }

    #[test]
    fn the_interval_must_be_narrow() {
        // The ranks 40 and 61 of 100 are 20.4 and 21.4 % of the range apart.
        let times = || fed(spread(100, 90_000, 110_000));
        assert_eq!(alone(DEFAULT, times()), Some(Obstacle::Wide(0.005)));
        assert_eq!(alone(DEFAULT.margin(0.05), times()), None);
        // A hundred times as many: a tenth of it.
        assert_eq!(alone(DEFAULT, fed(spread(10_000, 90_000, 110_000))), None);
        // The figure of the share itself: 21 steps of 202 ns in 100 us, halved.
        let found = margin(&times().series()).unwrap();
        assert!((found - 0.0212).abs() < 0.001, "{found}");
    }

    #[test]
    fn an_interval_of_one_step_is_as_narrow_as_can_be() {
        let two =
            |apart: u32| fed((0..100).map(move |i| if i < 50 { 2_720 } else { 2_720 + apart }));
        assert_eq!(alone(DEFAULT, two(32)), None);
        assert_eq!(alone(DEFAULT, two(64)), Some(Obstacle::Wide(0.005)));
        // Above 1 ms, what is kept of a time is coarser than the clock: 8,192 ns at 2.5 ms.
        let long = |apart: u32| fed((0..100).map(move |i| 2_500_000 + apart * (i / 50)));
        let strict = DEFAULT.margin(1e-4);
        assert_eq!(alone(strict, long(8_192)), None);
        assert_eq!(alone(strict, long(16_384)), Some(Obstacle::Wide(1e-4)));
    }

    #[test]
    fn starved_samples_count_where_no_others_are() {
        assert_eq!(alone(DEFAULT, starved([10_000; 50])), None);
        let mixed = Made { fed: vec![10_000.0; 9], ..starved([10_000; 500]) };
        assert_eq!(alone(DEFAULT, mixed), Some(Obstacle::Few(50)));
    }

    #[test]
    fn where_nothing_runs_there_is_nothing_to_know_better() {
        let idle = |at_floor| Made { at_floor, ..Made::default() };
        assert_eq!(alone(DEFAULT, idle(49)), Some(Obstacle::Few(50)));
        assert_eq!(alone(DEFAULT, idle(50)), None);
    }

    #[test]
    fn what_is_only_lost_is_not_waited_for() {
        let lost = |lost, in_flight| Made { lost, in_flight, ..Made::default() };
        assert_eq!(alone(DEFAULT, lost(49, 0)), Some(Obstacle::Few(50)));
        assert_eq!(alone(DEFAULT, lost(50, 1)), Some(Obstacle::Few(50)));
        assert_eq!(alone(DEFAULT, lost(50, 0)), Some(Obstacle::Lost(50)));
        let given_up = verdict(vec![], vec![site("f", 0, &[lost(50, 0)])]);
        assert!(given_up.is_over() && !given_up.is_empty());
        let both = vec![site("f", 0, &[lost(50, 0)]), site("g", 0, &[fed([10_000; 9])])];
        assert!(!verdict(vec![], both).is_over());
    }

    #[test]
    fn only_what_the_run_touched_is_to_settle_and_by_its_own_samples() {
        let old = || vec![site("f", 3, &[fed([10_000; 60])]), site("g", 0, &[fed([10_000; 9])])];
        assert!(verdict(old(), old()).is_empty());

        // What was there before makes no run shorter.
        let mut now = old();
        now[0] = site("f", 3, &[fed([10_000; 109])]);
        let touched = verdict(old(), now.clone());
        assert_eq!((touched.settled, touched.unmet.len()), (0, 1));
        assert_eq!((touched.unmet[0].site(), touched.unmet[0].samples()), ("f", 49));
        assert_eq!(touched.unmet[0].series(), "cuda:0");
        now[0] = site("f", 3, &[fed([10_000; 110])]);
        assert_eq!((verdict(old(), now.clone()).settled, verdict(old(), now).len()), (1, 1));
    }

    #[test]
    fn what_kind_of_samples_there_were_before_is_no_matter() {
        let made = |fed_count, starved_count| {
            let starved = starved(vec![30_000; starved_count]);
            vec![site("f", 0, &[Made { fed: vec![10_000.0; fed_count], ..starved }])]
        };
        for (before, short, enough) in
            [((60, 0), (60, 49), (60, 50)), ((0, 60), (49, 60), (50, 60))]
        {
            let run = |(fed, starved)| verdict(made(before.0, before.1), made(fed, starved));
            let [unmet] = &run(short).unmet[..] else { panic!("{before:?}") };
            assert_eq!((unmet.samples(), unmet.margin()), (49, Some(0.0)));
            assert_eq!(run(enough), Verdict { settled: 1, unmet: vec![] });
        }
    }

    #[test]
    fn series_are_told_apart_by_what_the_l2_held() {
        let cold = |count| Made { cache: Some(CacheState::Cold), ..fed(vec![20_000; count]) };
        let before = vec![site("f", 0, &[fed([10_000; 60]), cold(1)])];
        let now = vec![site("f", 0, &[fed([10_000; 60]), cold(41)])];
        let touched = verdict(before, now);
        let [unmet] = &touched.unmet[..] else { panic!("{touched:?}") };
        assert_eq!((unmet.series(), unmet.samples()), ("cuda:0, cold", 40));
        assert_eq!(unmet.margin(), Some(0.0));
    }

    #[test]
    fn warming_up_is_no_result() {
        let before = vec![site("f", 1, &[])];
        let warming = verdict(before.clone(), vec![site("f", 2, &[])]);
        assert!(!warming.is_over());
        assert_eq!(warming.unmet[0].obstacle, Obstacle::Warmup);

        let sampled = |unsampled, sample_rate| {
            let before = vec![site("f", 0, &[])];
            let mut now = site("f", 0, &[]);
            now.site = Site { calls: unsampled, unsampled, sample_rate, ..now.site };
            verdict(before, vec![now])
        };
        assert_eq!(sampled(99, 0.01).unmet[0].obstacle, Obstacle::Unsampled);
        assert!(sampled(0, 0.01).is_empty() && sampled(99, 0.0).is_empty());
        // Later warm-up, of another device, is no matter of its own.
        let now = vec![site("f", 9, &[fed([10_000; 50])])];
        assert_eq!(verdict(before, now), Verdict { settled: 1, unmet: vec![] });
    }

    #[test]
    fn a_site_that_joined_since_is_touched_too() {
        let now = vec![site("f", 0, &[]), site("new", 0, &[fed([10_000; 50])])];
        assert_eq!(verdict(vec![site("f", 0, &[])], now).settled, 1);
    }
}
