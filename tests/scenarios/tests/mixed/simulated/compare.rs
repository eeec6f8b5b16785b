//! Compares the figures of a report with the truth.

mod by_events;
mod by_records;

use super::figures::Figure;
use super::truth::Truth;
use crate::harness::Run;
use crate::harness::report::Stats;

/// The resolution of single-precision times and of sums.
const ROUNDING: f64 = 1.0;

pub fn compare(run: &Run, truth: &Truth, record: Option<&str>) -> Vec<Figure> {
    match record {
        Some("off") => by_events::compare(run, truth),
        Some("on") => by_records::compare(run, truth),
        _ => Vec::new(),
    }
}

/// Compares the statistics of a row whose calls were all timed. `within` is how far each sample may be off.
fn stats(of: &str, found: &Stats, mut samples: Vec<f64>, within: f64) -> Vec<Figure> {
    samples.sort_by(f64::total_cmp);
    let last = samples.len() - 1;
    // Quantiles have several definitions, which differ by less than a rank.
    let figure = |kind, found, share: f64| {
        let rank = share * last as f64;
        let (least, most) = (samples[(rank - 1.0).max(0.0) as usize], samples[(rank.ceil() as usize + 1).min(last)]);
        // Times are kept to within 1 %.
        Figure { kind, of: of.to_owned(), found, least, most, within: within + ROUNDING }
    };
    let sum: f64 = samples.iter().sum();
    let mut figures = vec![
        figure("p5", found.p5, 0.05),
        figure("median", found.median, 0.5),
        figure("p95", found.p95, 0.95),
        figure("p99", found.p99, 0.99),
    ];
    for (kind, found, truth, within) in [
        ("min", found.min, samples[0], within),
        ("max", found.max, samples[last], within),
        ("mean", found.mean, sum / samples.len() as f64, within),
        ("sum", found.sum, sum, within * samples.len() as f64),
    ] {
        figures.push(exact(kind, of, found, truth, within));
    }
    figures
}

fn exact(kind: &'static str, of: &str, found: f64, truth: f64, within: f64) -> Figure {
    let within = within + ROUNDING + 1e-6 * truth.abs();
    Figure { kind, of: of.to_owned(), found, least: truth, most: truth, within }
}
