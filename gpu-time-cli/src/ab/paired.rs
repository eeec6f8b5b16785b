//! The changes between programs that run in turns.

use std::collections::BTreeMap;

use gpu_time_report::judge::{Block, Change, RunMedian, Verdict, correct};
use gpu_time_report::{Look, PairedRatios, Snapshot};

use crate::compare::change::Pair;
use crate::compare::comparison::{matches, name, names};
use crate::compare::options::Judging;
use crate::compare::thresholds::Share;

/// The series of two programs, by name, over all blocks so far.
#[derive(Default)]
pub struct Paired(BTreeMap<String, Pairs>);

/// The blocks of one series.
#[derive(Default)]
struct Pairs {
    function: String,
    ratios: PairedRatios,
    /// Pairs of runs were left out because one of the two has starved samples only.
    is_starved: bool,
}

impl Paired {
    /// Adds a block: the reports of each program.
    pub fn add(&mut self, old: &[Snapshot], new: &[Snapshot]) {
        let mut blocks: BTreeMap<String, Block> = BTreeMap::new();
        for (old, new) in old.iter().zip(new) {
            let labels = names(old);
            for pair in matches(old, new).pairs {
                let Pair { site, series, .. } = pair;
                let median = |side: usize| {
                    let median = RunMedian::of(series[side], pair.clock_step_ns)?;
                    let bias_ns = median.bias_ns.filter(|_| pair.same_bias_source);
                    Some(RunMedian { bias_ns, ..median })
                };
                let Some(runs) = median(0).zip(median(1)) else { continue };
                let label = name(&labels, site, series[0]);
                let pairs = self.0.entry(label.clone()).or_default();
                site.name.clone_into(&mut pairs.function);
                if series.iter().any(|series| series.upper_bound) {
                    pairs.is_starved = true;
                } else {
                    blocks.entry(label).or_default().add(runs.into());
                }
            }
        }
        for (label, block) in blocks {
            block.record(&mut self.0.entry(label).or_default().ratios);
        }
    }

    /// Returns the change of a series, without a correction for the number of series.
    pub fn change(&self, label: &str, threshold: Share, look: Look) -> Change {
        self.0.get(label).unwrap_or(&Pairs::default()).change(threshold, look)
    }

    /// Returns the verdicts of all series.
    pub fn verdicts(&self, judging: &Judging, look: Look) -> Vec<Verdict> {
        let change = |pairs: &Pairs| pairs.change(judging.threshold(&pairs.function), look);
        let mut changes: Vec<Change> = self.0.values().map(change).collect();
        correct(changes.iter_mut());
        changes.iter().map(|change| change.verdict).collect()
    }
}

impl Pairs {
    fn change(&self, Share(threshold): Share, look: Look) -> Change {
        let change = Change::of_pairs(&self.ratios.at(look), 0.0, threshold);
        if self.ratios.count() == 0 && self.is_starved {
            return Change { why: "starved", ..change };
        }
        change
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
                let pairs = paired.0.entry(format!("f{i}")).or_default();
                pairs.ratios.record([old, new], HALF_STEP);
            }
        }

        /// Runs an experiment of some blocks, and returns `true` if `is_found` accepted the
        /// verdicts at any look.
        fn finds(
            &mut self,
            blocks: u32,
            series: usize,
            slower: f64,
            judging: &Judging,
            is_found: impl Fn(&[Verdict]) -> bool,
        ) -> bool {
            let mut paired = Paired::default();
            (1..=blocks).any(|block| {
                self.block(&mut paired, series, slower);
                let look = if block == blocks { Look::Last } else { Look::Early };
                is_found(&paired.verdicts(judging, look))
            })
        }
    }

    fn judging(percent: f64) -> Judging {
        let threshold = format!("{percent}%").parse().unwrap();
        Judging { thresholds: vec![threshold], fail_on: Vec::new() }
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
                let under = judging(percent);
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
            let under = judging(0.0);
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
        let under = judging(1.0);
        for series in [1, 30] {
            let is_slower = |verdicts: &[Verdict]| verdicts[0] == Verdict::Slower;
            let found = share(40, |_| machine.finds(60, series, 0.03, &under, is_slower));
            assert!(found >= 0.9, "{series} series: found in {found}");
        }
    }
}
