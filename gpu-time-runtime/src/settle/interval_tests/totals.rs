//! Estimated totals of sampled calls.

use std::collections::BTreeMap;
use std::fmt;

use fastrand::Rng;

use super::source::normal;
use super::{Share, repetitions};
use crate::stats::estimate::WeightedSums;
use crate::stats::sampling::Sampler;
use crate::types::sample::Sample;
use crate::types::sampling::Sampling;

/// A model of the times of a program's calls.
#[derive(Clone, Copy)]
enum Load {
    /// Normal, with a standard deviation of 10 %.
    Normal,
    /// Pareto with the exponent 1.5, whose variance is infinite.
    Pareto,
    /// One call in this many takes this many times as long.
    Rare(u64),
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Load::Normal => f.write_str("normal"),
            Load::Pareto => f.write_str("Pareto 1.5"),
            Load::Rare(period) => write!(f, "one call in {period} takes {period} times as long"),
        }
    }
}

impl Load {
    fn time(self, call: u64, random: &mut Rng) -> f64 {
        match self {
            Load::Normal => 10_000.0 + 1_000.0 * normal(random),
            Load::Pareto => 1_000.0 * (1.0 - random.f64()).powf(-1.0 / 1.5),
            Load::Rare(period) => {
                let base = 1_000.0 + random.f64();
                if call % period == period - 1 { base * period as f64 } else { base }
            }
        }
    }
}

/// The outcome of many programs.
#[derive(Default)]
struct Totals {
    /// The share of programs whose true total is within 1.96 times the error of the estimate, even if no
    /// error is stated.
    before: Share,
    /// The share of programs for which an error is stated.
    stated: Share,
    /// The same share among the programs for which an error is stated.
    held: Share,
    /// The number of programs without a stated error, by reason.
    reasons: BTreeMap<&'static str, u64>,
}

fn program(load: Load, calls: u64, share: f64, seed: u64, totals: &mut Totals) {
    let mut random = Rng::with_seed(seed);
    let (sampler, mut weighted) = (Sampler::seeded(seed + 1), WeightedSums::default());
    let (mut truth, mut seen_ns, mut skips, mut unsampled) = (0.0, 0.0, 0, 0);
    for call in 0..calls {
        let ns = load.time(call, &mut random);
        truth += ns;
        if skips > 0 {
            skips -= 1;
            unsampled += 1;
            continue;
        }
        let drawn = sampler.draw(Sampling::share(share), 1 << 20);
        skips = drawn.skips;
        match drawn.weight {
            None => unsampled += 1,
            Some(weight) => {
                seen_ns += ns;
                weighted.record(Sample::new(ns).unwrap().weighted(weight));
            }
        }
    }
    let found = weighted.total(seen_ns, 0.0, 1.0, sampler.population(unsampled));
    let is_within = |error_ns: f64| (found.total_ns - truth).abs() <= 1.96 * error_ns;
    totals.before.count(is_within(found.sampled_error_ns));
    totals.stated.count(found.error_ns().is_ok());
    match found.error_ns() {
        Ok(error_ns) => totals.held.count(is_within(error_ns)),
        Err(unknown) => *totals.reasons.entry(unknown.name()).or_default() += 1,
    }
}

#[test]
fn stated_errors_contain_the_total() {
    println!(
        "| calls | sampled | before | error stated | of these, contain the total | reasons of the others |"
    );
    println!("|---|---|---|---|---|---|");
    for load in [Load::Normal, Load::Pareto, Load::Rare(100), Load::Rare(1_000)] {
        for (calls, share) in [(50_000, 0.01), (50_000, 0.2), (200_000, 0.2)] {
            let mut totals = Totals::default();
            let count = repetitions(if calls > 100_000 { 50 } else { 200 });
            (0..count).for_each(|seed| program(load, calls, share, seed, &mut totals));
            let Totals { before, stated, held, reasons } = totals;
            let named: Vec<_> =
                reasons.iter().map(|(name, count)| format!("{count} `{name}`")).collect();
            let sampled = calls as f64 * share;
            println!(
                "| {load} | {sampled} of {calls} | {before} | {stated} | {held} | {} |",
                named.join(", ")
            );
            let missed = held.of - held.held;
            assert!(missed * 10 <= count, "{load} {calls} {share}: {held}");
            assert!(held.of < 20 || held.percent() >= 90.0, "{load} {calls} {share}: {held}");
        }
    }
}
