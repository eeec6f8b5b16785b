//! The intervals of series of a given length, at one look and at every one of many looks.

use super::source::{Kind, Source};
use super::{Share, repetitions};
use crate::stats::looks::Looks;
use gpu_time_report::{Batches, Dependence, Distribution};

const INDEPENDENT: [Kind; 4] = [Kind::Normal, Kind::Lognormal, Kind::Bimodal, Kind::Quantised];

/// A series as it is recorded.
struct Series {
    source: Source,
    distribution: Distribution,
    batches: Batches,
}

impl Series {
    fn new(kind: Kind, seed: u64) -> Series {
        let (distribution, batches) = (Distribution::new(), Batches::default());
        Series { source: Source::new(kind, seed), distribution, batches }
    }

    fn record(&mut self, calls: u64) {
        for _ in 0..calls {
            let ns = self.source.next();
            self.distribution.record(ns);
            self.batches.record(ns);
        }
    }

    fn interval(&self, looks: u32) -> Option<[f64; 2]> {
        self.distribution.summary().median_interval(&self.batches.dependence(), looks)
    }
}

/// The results at one look.
#[derive(Default)]
struct OneLook {
    /// The share of the intervals that contain the median if the samples are taken as independent.
    before: Share,
    /// The share of the stated intervals that contain the median.
    held: Share,
    /// The share of the series that state an interval.
    stated: Share,
}

fn one_look(kind: Kind, calls: u64, repetitions: u64) -> OneLook {
    let mut found = OneLook::default();
    for seed in 0..repetitions {
        let mut series = Series::new(kind, seed);
        series.record(calls);
        let summary = series.distribution.summary();
        let before = summary.median_interval(&Dependence::none(calls), 1).expect("enough samples");
        found.before.count(series.source.is_in(before));
        let interval = series.interval(1);
        found.stated.count(interval.is_some());
        if let Some(interval) = interval {
            found.held.count(series.source.is_in(interval));
        }
    }
    found
}

/// Returns how often the intervals of all looks contain the median: the worst case for a run that
/// may stop at any of them.
fn every_look(kind: Kind, looks: u32, growth: f64, repetitions: u64) -> Share {
    let mut held = Share::default();
    for seed in 0..repetitions {
        let mut series = Series::new(kind, seed);
        let (mut counted, mut calls, mut all_held) = (Looks::default(), 50.0, true);
        for _ in 0..looks {
            series.record(calls as u64 - series.batches.count());
            counted.look(series.batches.count());
            let interval = series.interval(counted.count());
            all_held &= interval.is_none_or(|interval| series.source.is_in(interval));
            calls *= growth;
        }
        held.count(all_held);
    }
    held
}

#[test]
fn single_look_contains_the_median() {
    println!(
        "| series | samples | as if independent | contains the median | stated | stated and wrong |"
    );
    println!("|---|---|---|---|---|---|");
    let correlated = [0.5, 0.9].map(Kind::Autoregressive);
    for kind in INDEPENDENT.into_iter().chain(correlated) {
        for (calls, count) in [(20, 1_000), (50, 1_000), (200, 1_000), (500, 1_000), (5_000, 300)] {
            let OneLook { before, held, stated } = one_look(kind, calls, repetitions(count));
            let wrong = stated.percent() * (1.0 - held.percent() / 100.0);
            println!("| {kind} | {calls} | {before} | {held} | {stated} | {wrong:.1} % |");
            let bounds = match kind {
                Kind::Autoregressive(with) if with < 0.9 => 92.0..=100.0,
                Kind::Autoregressive(_) => 90.0..=100.0,
                _ => 93.0..=98.0,
            };
            // Few series state a wrong interval. If most series state one, few of these are wrong.
            assert!(wrong < 6.0, "{kind} {calls}: {wrong} %");
            if stated.percent() >= 50.0 {
                assert!(bounds.contains(&held.percent()), "{kind} {calls}: {held}");
            }
        }
    }
}

#[test]
fn every_look_contains_the_median() {
    println!("| series | looks | samples | all contain the median |");
    println!("|---|---|---|---|");
    for kind in INDEPENDENT {
        for (looks, growth, samples) in
            [(2, 2.0, "50 to 100"), (10, 1.6, "50 to 3,400"), (45, 1.1, "50 to 3,300")]
        {
            let held = every_look(kind, looks, growth, repetitions(300));
            println!("| {kind} | {looks} | {samples} | {held} |");
            assert!((93.0..=98.0).contains(&held.percent()), "{kind} {looks}: {held}");
        }
    }
}
