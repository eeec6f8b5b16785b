//! The changes between programs that run in turns.

use std::collections::BTreeMap;

use gpu_time_report::{Look, PairedRatios, Series, Snapshot, step_ns};

use crate::compare::change::{Change, Pair, Verdict, correct, judge};
use crate::compare::comparison::{matches, name, names};
use crate::compare::evidence::ALPHA;
use crate::compare::thresholds::{Share, Thresholds};

/// The series of two programs, by name, over all blocks so far.
#[derive(Default)]
pub struct Paired(BTreeMap<String, Pairs>);

/// The blocks of one series.
#[derive(Default)]
struct Pairs {
    function: String,
    ratios: PairedRatios,
    /// For each program, the sum of the logarithms of its medians.
    logs: [f64; 2],
    /// The coarsest half step of the clock so far, relative to the median.
    half_step: f64,
    /// The number of pairs of runs left out because one of the two has starved samples only.
    starved: u64,
}

/// The runs of a series in one block.
#[derive(Default)]
struct Block {
    function: String,
    /// Each run of the old program, with the run of the new one that it is compared with.
    runs: Vec<[Run; 2]>,
    /// The coarsest step of the clock.
    step_ns: f64,
}

/// A series in one run of a program.
#[derive(Clone, Copy)]
struct Run {
    raw_median_ns: f64,
    /// The bias that the run measured, if it may be subtracted.
    bias_ns: Option<f64>,
    /// `true` if most samples had a long queue behind them, which changes their bias.
    is_queued: bool,
}

impl Paired {
    /// Adds a block: the reports of each program.
    pub fn add(&mut self, old: &[Snapshot], new: &[Snapshot]) {
        let mut blocks: BTreeMap<String, Block> = BTreeMap::new();
        for (old, new) in old.iter().zip(new) {
            let labels = names(old);
            for pair in matches(old, new).pairs {
                let Pair { site, series: [series, other], .. } = pair;
                let label = name(&labels, site, series);
                if series.upper_bound || other.upper_bound {
                    self.0.entry(label).or_default().starved += 1;
                    continue;
                }
                let Some(runs) = Run::of(series).zip(Run::of(other)) else { continue };
                let mut runs = <[Run; 2]>::from(runs);
                if !pair.same_bias_source || runs.iter().any(|run| run.bias_ns.is_none()) {
                    runs.iter_mut().for_each(|run| run.bias_ns = None);
                }
                let block = blocks.entry(label).or_default();
                site.name.clone_into(&mut block.function);
                let step_ns = pair.clock_step_ns.max(step_ns(runs[0].raw_median_ns));
                block.step_ns = block.step_ns.max(step_ns);
                block.runs.push(runs);
            }
        }
        for (label, block) in blocks {
            // If only some runs have the series, the order of the programs is not balanced.
            if block.runs.len() == old.len()
                && let Some(logs) = block.logs()
            {
                let half_step = block.step_ns / 2.0 / logs[0].exp();
                self.record(&label, &block.function, logs, half_step);
            }
        }
    }

    /// Adds the medians of both programs in one block.
    pub fn record(&mut self, label: &str, function: &str, logs: [f64; 2], half_step: f64) {
        let pairs = self.0.entry(label.to_owned()).or_default();
        function.clone_into(&mut pairs.function);
        pairs.ratios.record(logs[1] - logs[0]);
        pairs.logs = [pairs.logs[0] + logs[0], pairs.logs[1] + logs[1]];
        pairs.half_step = pairs.half_step.max(half_step);
    }

    /// Returns the change of a series, without a correction for the number of series.
    pub fn change(&self, label: &str, threshold: Share, look: Look) -> Change {
        self.0.get(label).unwrap_or(&Pairs::default()).change(threshold, look)
    }

    /// Returns the verdicts of all series.
    pub fn verdicts(&self, thresholds: &Thresholds, look: Look) -> Vec<Verdict> {
        let change = |pairs: &Pairs| pairs.change(thresholds.of(&pairs.function), look);
        let mut changes: Vec<Change> = self.0.values().map(change).collect();
        correct(changes.iter_mut());
        changes.iter().map(|change| change.verdict).collect()
    }
}

impl Pairs {
    fn change(&self, threshold: Share, look: Look) -> Change {
        let count = self.ratios.count();
        let unknown = Change { runs: [count as usize; 2], ..Change::default() };
        if count == 0 {
            let why = if self.starved > 0 { "starved" } else { "no samples" };
            return Change { why, ..unknown };
        }
        let [base_median_ns, new_median_ns] = self.logs.map(|sum| (sum / count as f64).exp());
        let share = self.ratios.mean().exp_m1();
        let known = Change {
            base_median_ns,
            new_median_ns,
            share: Some(share),
            p_value: Some(self.ratios.p_value(self.half_step, look)),
            ..unknown
        };
        let Some(interval) = self.ratios.interval(ALPHA, self.half_step, look) else {
            return Change { why: "too few blocks", ..known };
        };
        let interval = interval.map(f64::exp_m1);
        let known = Change { interval: Some(interval), ..known };
        match judge(share, interval, 0.0, threshold) {
            Some(verdict) => Change { verdict, ..known },
            None => Change { why: "interval too wide", ..known },
        }
    }
}

impl Block {
    /// Returns the means of the logarithms of both programs' medians. `None` if a median is not
    /// positive.
    ///
    /// The bias is a constant of the machine, but each run measures it anew, with a larger error
    /// than its medians have. The runs of a block therefore share the mean of their biases, so that
    /// the errors cancel.
    fn logs(&self) -> Option<[f64; 2]> {
        let mut sums = [0.0; 2];
        for runs in &self.runs {
            for (sum, run) in sums.iter_mut().zip(runs) {
                let ns = run.raw_median_ns - self.bias_ns(run);
                *sum += Some(ns.ln()).filter(|_| ns > 0.0)?;
            }
        }
        Some(sums.map(|sum| sum / self.runs.len() as f64))
    }

    /// Returns the mean bias of the runs that are queued, or not queued, like this one; 0 if one is unknown.
    fn bias_ns(&self, of: &Run) -> f64 {
        let alike = self.runs.iter().flatten().filter(|run| run.is_queued == of.is_queued);
        let biases: Option<Vec<f64>> = alike.map(|run| run.bias_ns).collect();
        biases.map_or(0.0, |biases| biases.iter().sum::<f64>() / biases.len() as f64)
    }
}

impl Run {
    fn of(series: &Series) -> Option<Run> {
        let raw_median_ns = series.raw_ns?.median;
        Some(Run {
            raw_median_ns,
            bias_ns: series.net_ns.map(|net| raw_median_ns - net.median),
            is_queued: series.queued * 2 > series.fed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::calibration_tests::normal;
    use fastrand::Rng;

    /// The standard deviation between runs.
    const SPREAD: f64 = 0.02;
    /// The number of blocks in a minute, if a run takes a second and 0.4 s to start.
    const MINUTE: u32 = 10;
    /// Half a step of the clock, relative to a kernel of 10 µs.
    const HALF_STEP: f64 = 0.0016;

    /// A machine whose runs differ and whose clock drifts.
    struct Machine {
        random: Rng,
        spread: f64,
        runs: u32,
    }

    impl Machine {
        fn new(seed: u64, spread: f64) -> Machine {
            Machine { random: Rng::with_seed(seed), spread, runs: 0 }
        }

        /// Runs a program with some series, and returns the logarithm of the median of each.
        fn run(&mut self, series: usize) -> Vec<f64> {
            self.runs += 1;
            let drift = 0.025 * self.spread * f64::from(self.runs);
            let common = normal(&mut self.random);
            let each = (0..series).map(|_| {
                10.0 + drift + self.spread * (common + normal(&mut self.random)) / 2.0f64.sqrt()
            });
            each.collect()
        }

        /// Runs a block in which the new program's first series is slower.
        fn block(&mut self, paired: &mut Paired, series: usize, slower: f64) {
            let [first, second, third, fourth] = std::array::from_fn(|_| self.run(series));
            let (mut outer, mut inner) = (
                std::iter::zip(first, fourth).map(|(a, b)| (a + b) / 2.0).collect::<Vec<_>>(),
                std::iter::zip(second, third).map(|(a, b)| (a + b) / 2.0).collect::<Vec<_>>(),
            );
            if self.random.bool() {
                std::mem::swap(&mut outer, &mut inner);
            }
            inner[0] += slower;
            for (i, (old, new)) in outer.into_iter().zip(inner).enumerate() {
                paired.record(&format!("f{i}"), "f", [old, new], HALF_STEP);
            }
        }

        /// Runs an experiment of some blocks, and returns `true` if `is_found` accepted the
        /// verdicts at any look.
        fn finds(
            &mut self,
            blocks: u32,
            series: usize,
            slower: f64,
            thresholds: &Thresholds,
            is_found: impl Fn(&[Verdict]) -> bool,
        ) -> bool {
            let mut paired = Paired::default();
            (1..=blocks).any(|block| {
                self.block(&mut paired, series, slower);
                let look = if block == blocks { Look::Last } else { Look::Early };
                is_found(&paired.verdicts(thresholds, look))
            })
        }
    }

    /// The runs have equal medians, but measured their biases with an error.
    #[test]
    fn errors_of_measured_biases_cancel() {
        let run = |bias_ns| Run { raw_median_ns: 12_000.0, bias_ns, is_queued: false };
        let logs = |old: [Option<f64>; 2], new: [Option<f64>; 2]| {
            let runs = [0, 1].map(|at| [run(old[at]), run(new[at])]).to_vec();
            Block { runs, ..Block::default() }.logs().map(|logs| logs.map(|log| log.exp().round()))
        };
        let measured = |[one, other]: [f64; 2]| [Some(one), Some(other)];
        assert_eq!(
            logs(measured([1_900.0, 2_000.0]), measured([2_100.0, 2_000.0])),
            Some([10_000.0; 2])
        );
        assert_eq!(logs([None; 2], [None; 2]), Some([12_000.0; 2]));
        assert_eq!(logs(measured([12_000.0; 2]), measured([12_000.0; 2])), None);
    }

    /// A queued run has a different bias, which is not an error.
    #[test]
    fn queued_runs_have_a_bias_of_their_own() {
        let old = Run { raw_median_ns: 12_000.0, bias_ns: Some(2_000.0), is_queued: false };
        let new = Run { raw_median_ns: 12_600.0, bias_ns: Some(2_600.0), is_queued: true };
        let logs = Block { runs: vec![[old, new]; 2], ..Block::default() }.logs().unwrap();
        assert!((logs[0] - logs[1]).abs() < 1e-9, "{logs:?}");
    }

    fn thresholds(percent: f64) -> Thresholds {
        let mut thresholds = Thresholds::default();
        thresholds.default = Share(percent / 100.0);
        thresholds
    }

    fn share(experiments: u32, experiment: impl FnMut(&u32) -> bool) -> f64 {
        (0..experiments).filter(experiment).count() as f64 / f64::from(experiments)
    }

    /// Looks after every block. Prints the table that is in `docs/comparing.md`.
    #[test]
    fn same_program_rarely_gets_a_verdict_at_any_look() {
        println!("| series | threshold | blocks | verdict at any look |\n|---|---|---|---|");
        let machine = &mut Machine::new(5, SPREAD);
        let is_false = |verdicts: &[Verdict]| {
            verdicts.iter().any(|verdict| matches!(verdict, Verdict::Slower | Verdict::Faster))
        };
        for (series, blocks, experiments) in
            [(1, MINUTE, 3_000), (1, 300, 1_000), (30, MINUTE, 1_000), (30, 300, 400)]
        {
            for percent in [0.0, 1.0] {
                let under = thresholds(percent);
                let found =
                    share(experiments, |_| machine.finds(blocks, series, 0.0, &under, is_false));
                println!("| {series} | {percent} % | {blocks} | {:.1} % |", 100.0 * found);
                assert!(found <= 0.05, "{series}, {percent} %, {blocks} blocks: {found}");
            }
        }
    }

    /// Prints the table that is in `docs/comparing.md`.
    #[test]
    fn one_percent_is_found_within_a_minute() {
        println!("| between runs | found within a minute |\n|---|---|");
        for (percent, least) in [(0.1, 0.99), (0.5, 0.99), (0.7, 0.9), (1.0, 0.6), (2.0, 0.0)] {
            let machine = &mut Machine::new(9, percent / 100.0);
            let under = thresholds(0.0);
            let is_slower = |verdicts: &[Verdict]| verdicts == [Verdict::Slower];
            let slower = 0.01f64.ln_1p();
            let found = share(1_000, |_| machine.finds(MINUTE, 1, slower, &under, is_slower));
            println!("| {percent} % | {:.0} % |", 100.0 * found);
            assert!(found >= least, "{percent} %: {found}");
        }
    }

    #[test]
    fn slower_program_is_found() {
        let machine = &mut Machine::new(6, SPREAD);
        let under = thresholds(1.0);
        for series in [1, 30] {
            let is_slower = |verdicts: &[Verdict]| verdicts[0] == Verdict::Slower;
            let found = share(40, |_| machine.finds(60, series, 0.03, &under, is_slower));
            assert!(found >= 0.9, "{series} series: found in {found}");
        }
    }
}
