//! Calibration of the verdicts, with simulated runs of one program, and of two that differ.

use fastrand::Rng;
use gpu_time_report::judge::Verdict;
use gpu_time_report::{Series, Snapshot, Stats, value};

use super::change::Pair;
use super::comparison::Comparison;
use super::options::Judging;
use super::thresholds::Share;
use crate::fixtures::{gpu, report, series, site};
use crate::merge::Merge;

const RUNS: u32 = 5;
/// The standard deviations between runs.
const SPREADS: [f64; 3] = [0.01, 0.02, 0.03];

/// A program with some series, whose medians differ between runs.
struct Program {
    series: usize,
    spread: f64,
    /// The logarithm of the factor by which the first series is slower.
    slower: f64,
}

/// Returns a normal variable (Box and Muller).
pub fn normal(random: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

/// Returns a series of 61 times within 2 % of 20 µs.
fn times() -> Series {
    let times: Vec<f64> = (-30..=30).map(|i| 20e3 * (1.0 + f64::from(i) * 0.02 / 30.0)).collect();
    series("cuda:0", &times, &[], 0.0)
}

/// Returns the series with its times multiplied by a factor.
fn scaled(series: &Series, factor: f64) -> Series {
    let scale = |stats: Stats| stats.map(|ns| ns * factor);
    value!(Series {
        raw_ns: series.raw_ns.map(scale),
        net_ns: series.net_ns.map(scale),
        ci95_ns: series.ci95_ns.map(|bounds| bounds.map(|ns| ns * factor)),
        histogram: series.histogram.iter().map(|(ns, count)| (ns * factor, count)).collect(),
        ..series.clone()
    })
}

impl Program {
    /// Runs the program and merges its reports. Half of the variance between runs is common to all
    /// series, like the variance of a clock.
    fn runs(&self, random: &mut Rng) -> Snapshot {
        let times = times();
        let mut merge = Merge::default();
        for pid in 0..RUNS {
            let common = normal(random);
            let sites = (0..self.series).map(|i| {
                let spread = self.spread * (common + normal(random)) / 2.0f64.sqrt();
                let slower = if i == 0 { self.slower } else { 0.0 };
                let series = scaled(&times, (spread + slower).exp());
                site(&format!("f{i}"), 1, vec![series])
            });
            let report = report(pid, vec![gpu("cuda:0", "H200")], sites.collect());
            merge.add(&report).expect("merge the report");
        }
        merge.finish()
    }
}

/// A way of comparing two merged reports.
#[derive(Clone, Copy)]
struct Way {
    threshold: f64,
    /// Ignores the runs and compares all samples, as earlier versions did.
    pooled: bool,
}

fn compared<'a>(base: &'a Snapshot, new: &'a Snapshot, way: Way) -> Comparison<'a> {
    let threshold = format!("{}%", 100.0 * way.threshold).parse().unwrap();
    let judging = Judging { thresholds: vec![threshold], fail_on: Vec::new() };
    let between_runs = if way.pooled { Share(0.0) } else { Share(0.02) };
    Comparison::of(base, new, &judging, |_, pair, threshold| {
        if !way.pooled {
            return pair.change(threshold, between_runs);
        }
        let [base, new] =
            pair.series.map(|series| value!(Series { runs: Vec::new(), ..series.clone() }));
        Pair { series: [&base, &new], ..*pair }.change(threshold, between_runs)
    })
}

/// Prints the table in `docs/comparing.md`.
#[test]
fn same_program_rarely_gets_a_verdict() {
    const WAYS: [Way; 4] = [
        Way { threshold: 0.0, pooled: false },
        Way { threshold: 0.02, pooled: false },
        Way { threshold: 0.0, pooled: true },
        Way { threshold: 0.02, pooled: true },
    ];
    println!("| between runs | series | by runs, threshold 0 % | 2 % | by samples, 0 % | 2 % |");
    println!("|---|---|---|---|---|---|");
    for (series, pairs) in [(1, 600), (30, 60)] {
        for spread in SPREADS {
            let mut random = Rng::with_seed(11);
            let program = Program { series, spread, slower: 0.0 };
            let mut counts = [0u32; 4];
            for _ in 0..pairs {
                let [base, new] = [(); 2].map(|()| program.runs(&mut random));
                for (way, count) in WAYS.into_iter().zip(&mut counts) {
                    let comparison = compared(&base, &new, way);
                    *count += u32::from(comparison.has_changes());
                }
            }
            let shares = counts.map(|count| f64::from(count) / f64::from(pairs));
            let [found, above, pooled, _] = shares;
            let cells = shares.map(|share| format!("{:.1} %", 100.0 * share)).join(" | ");
            println!("| {} % | {series} | {cells} |", 100.0 * spread);
            assert!(found <= 0.05 && above <= 0.05, "{spread}, {series}: {shares:?}");
            // The simulation is not vacuous: pooled samples give false verdicts.
            assert!(pooled > 0.5, "{spread}, {series}: {shares:?}");
        }
    }
}

#[test]
fn slower_program_is_found() {
    for (series, pairs) in [(1, 200), (30, 40)] {
        let mut random = Rng::with_seed(12);
        let base = Program { series, spread: 0.01, slower: 0.0 };
        let new = Program { slower: 0.05, ..base };
        let found = (0..pairs).filter(|_| {
            let [base, new] = [&base, &new].map(|program| program.runs(&mut random));
            let comparison = compared(&base, &new, Way { threshold: 0.02, pooled: false });
            let mut rows = comparison.rows.iter().filter(|row| row.name.starts_with("f0 "));
            rows.all(|row| row.change.verdict == Verdict::Slower)
        });
        let share = found.count() as f64 / f64::from(pairs);
        let percent = 100.0 * share;
        println!("5 % slower, 1 % between runs, {series} series: found in {percent:.0} %");
        assert!(share >= 0.9, "{series}: {share}");
    }
}
