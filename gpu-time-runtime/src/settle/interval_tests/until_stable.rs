//! Runs of `until_stable` in simulated time.

use std::collections::BTreeMap;
use std::time::Duration;

use super::source::{Kind, RATE, Source};
use super::{Share, repetitions};
use crate::settle::options::Settle;
use crate::settle::pacer::Pacer;
use crate::settle::stopping::{Verdict, reason};
use crate::settle::unmet::Unmet;
use crate::settle::unmet::margin;
use crate::stats::series::tests::{info, record};
use crate::stats::series::{SeriesData, SeriesInfo};
use crate::stats::tally::Tally;
use crate::types::sample::Sample;

/// The number of calls between two evaluations, which are 20 ms apart.
const EVALUATION: u64 = RATE as u64 / 50;

/// The outcome of many runs.
#[derive(Default)]
struct Runs {
    settled: Share,
    held: Share,
    calls: u64,
    /// The number of runs that did not settle, by reason.
    reasons: BTreeMap<String, u64>,
}

fn run(kind: Kind, seed: u64, runs: &mut Runs) {
    let settle = Settle::default();
    let mut source = Source::new(kind, seed);
    let (mut series, mut tally) = (SeriesData::new(), Tally::default());
    let mut pacer = Pacer::start(&settle);
    let mut calls = 0;
    loop {
        for _ in 0..EVALUATION {
            calls += 1;
            let mut sample = Sample::new(source.next()).unwrap();
            sample.flags.fed = true;
            record(&mut series, &mut tally, sample);
        }
        pacer.stepped = pacer.started + Duration::from_secs_f64(calls as f64 / RATE);
        let is_late = pacer.is_late();
        if !is_late && !pacer.is_look_due() {
            continue;
        }
        let info = SeriesInfo { looks: Some(pacer.looks_with_this()), ..info(None) };
        let report = series.times().report(info, &tally);
        let found = reason(&settle, 1.0, &report).map(|reason| Unmet {
            site: String::new(),
            series: String::new(),
            samples: report.fed,
            margin: margin(&report),
            reason,
        });
        if is_late || found.is_none() {
            runs.calls += calls;
            runs.settled.count(found.is_none());
            match found {
                None => runs.held.count(source.is_in(report.ci95_ns.unwrap())),
                Some(unmet) => *runs.reasons.entry(unmet.reason().to_owned()).or_default() += 1,
            }
            return;
        }
        let verdict = Verdict { settled: 0, unmet: found.into_iter().collect() };
        pacer.look_again(&verdict);
    }
}

#[test]
fn settled_runs_contain_the_median() {
    println!(
        "| series | settled | of these, contain the median | mean time | reasons of the others |"
    );
    println!("|---|---|---|---|---|");
    let independent = [Kind::Normal, Kind::Bimodal, Kind::Quantised].map(|kind| (kind, 200));
    let skewed = [(Kind::Lognormal, 60)];
    let correlated = [(0.5, 200), (0.9, 200), (0.99, 100), (0.999, 60)];
    let correlated = correlated.map(|(with, count)| (Kind::Autoregressive(with), count));
    let changing =
        [Kind::Modes(1_000), Kind::Drift(0.001), Kind::Drift(0.01)].map(|kind| (kind, 40));
    for (kind, count) in independent.into_iter().chain(skewed).chain(correlated).chain(changing) {
        let mut runs = Runs::default();
        (0..repetitions(count)).for_each(|seed| run(kind, seed, &mut runs));
        let Runs { settled, held, calls, reasons } = runs;
        let seconds = calls as f64 / RATE / settled.of as f64;
        let named: Vec<_> =
            reasons.iter().map(|(name, count)| format!("{count} `{name}`")).collect();
        println!("| {kind} | {settled} | {held} | {seconds:.1} s | {} |", named.join(", "));
        let least = match kind {
            Kind::Autoregressive(with) if with > 0.9 => 85.0,
            Kind::Autoregressive(with) if with > 0.5 => 90.0,
            Kind::Autoregressive(_) => 92.0,
            Kind::Modes(_) | Kind::Drift(_) => 85.0,
            _ => 93.0,
        };
        assert!(held.of == 0 || held.percent() >= least, "{kind}: {held}");
        match kind {
            Kind::Modes(_) => assert_eq!(settled.held, 0, "{kind}: {settled}"),
            Kind::Drift(share) if share > 0.005 => assert_eq!(settled.held, 0, "{kind}: {settled}"),
            _ => {}
        }
    }
}
