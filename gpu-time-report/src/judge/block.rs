//! A block, in which two programs or closures take turns: in the order base, new, new, base, or its
//! reverse.

use crate::{PairedRatios, Series, step_ns};

/// The number of runs, or batches of calls, that each side has in a block.
const RUNS: usize = 2;

/// The median of a series in one run of a program, or in one batch of a closure.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunMedian {
    pub raw_ns: f64,
    /// The bias that the run measured, if it may be subtracted.
    pub bias_ns: Option<f64>,
    /// Most samples had a long queue behind them, which changes their bias.
    pub is_queued: bool,
    /// The GPU may have waited for the host in all samples.
    pub is_starved: bool,
    /// The smallest difference that the clock and the histogram can show.
    pub step_ns: f64,
}

/// The medians of a series in a block: those of the base, each with the one that it is compared with.
#[derive(Clone, Debug, Default)]
pub struct Block(Vec<[RunMedian; 2]>);

impl RunMedian {
    /// Returns the median of a series. `None` without samples.
    pub fn of(series: &Series, clock_step_ns: f64) -> Option<RunMedian> {
        let raw_ns = series.raw_ns?.median;
        Some(RunMedian {
            raw_ns,
            bias_ns: series.net_ns.map(|net| raw_ns - net.median),
            is_queued: series.queued * 2 > series.fed,
            is_starved: series.upper_bound,
            step_ns: clock_step_ns.max(step_ns(raw_ns)),
        })
    }

    /// Returns the net median, or the raw one if the bias is unknown.
    pub fn ns(&self) -> f64 {
        self.raw_ns - self.bias_ns.unwrap_or(0.0)
    }
}

impl Block {
    /// Adds a run of each side.
    pub fn add(&mut self, runs: [RunMedian; 2]) {
        self.0.push(runs);
    }

    /// Returns `true` if the times of any run are upper bounds.
    pub fn is_starved(&self) -> bool {
        self.0.iter().flatten().any(|run| run.is_starved)
    }

    /// Adds the ratio of both sides. Adds none if only some runs have the series, because a drift
    /// would then not cancel, or if a median is not positive.
    pub fn record(&self, ratios: &mut PairedRatios) {
        if self.0.len() != RUNS {
            return;
        }
        let mut logs = [0.0; 2];
        let mut resolution: f64 = 0.0;
        for runs in &self.0 {
            for (log, run) in logs.iter_mut().zip(runs) {
                let ns = run.raw_ns - self.bias_ns(run);
                // The logarithm of a time that is not positive is not finite, and neither is the ratio.
                *log += ns.ln() / RUNS as f64;
                resolution = resolution.max(run.step_ns / 2.0 / ns);
            }
        }
        ratios.record(logs, resolution);
    }

    /// Returns the bias of a run, or 0 if that of any run is unknown.
    ///
    /// The bias is a constant of the machine, but each run measures it anew, with a larger error
    /// than its medians have. The runs of a block that are queued, or not queued, therefore share the
    /// mean of their biases, so that the errors cancel.
    fn bias_ns(&self, of: &RunMedian) -> f64 {
        let all = self.0.iter().flatten();
        let are_known = all.clone().all(|run| run.bias_ns.is_some());
        let alike = all.filter(|run| are_known && run.is_queued == of.is_queued);
        let biases: Vec<f64> = alike.filter_map(|run| run.bias_ns).collect();
        biases.iter().sum::<f64>() / biases.len().max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(raw_ns: f64, bias_ns: Option<f64>) -> RunMedian {
        RunMedian { raw_ns, bias_ns, ..RunMedian::default() }
    }

    fn times(runs: [[RunMedian; 2]; RUNS]) -> Option<[f64; 2]> {
        let mut ratios = PairedRatios::default();
        Block(runs.to_vec()).record(&mut ratios);
        (ratios.count() > 0).then(|| ratios.times().map(f64::round))
    }

    /// The runs have equal medians, but measured their biases with an error.
    #[test]
    fn errors_of_measured_biases_cancel() {
        let times = |old: [Option<f64>; 2], new: [Option<f64>; 2]| {
            times([0, 1].map(|at| [run(12_000.0, old[at]), run(12_000.0, new[at])]))
        };
        let measured = |[one, other]: [f64; 2]| [Some(one), Some(other)];
        assert_eq!(
            times(measured([1_900.0, 2_000.0]), measured([2_100.0, 2_000.0])),
            Some([10_000.0; 2])
        );
        assert_eq!(times([None; 2], [None; 2]), Some([12_000.0; 2]));
        assert_eq!(times([None; 2], measured([2_000.0; 2])), Some([12_000.0; 2]));
        assert_eq!(times(measured([12_000.0; 2]), measured([12_000.0; 2])), None);
    }

    /// A queued run has a different bias, which is not an error.
    #[test]
    fn queued_runs_have_a_bias_of_their_own() {
        let old = run(12_000.0, Some(2_000.0));
        let new = RunMedian { is_queued: true, ..run(12_600.0, Some(2_600.0)) };
        assert_eq!(times([[old, new]; 2]), Some([10_000.0; 2]));
    }

    #[test]
    fn block_in_which_a_run_lacks_the_series_does_not_count() {
        let mut ratios = PairedRatios::default();
        let mut block = Block::default();
        block.add([run(12_000.0, None); 2]);
        block.record(&mut ratios);
        assert_eq!(ratios.count(), 0);
        block.add([run(12_000.0, None); 2]);
        block.record(&mut ratios);
        assert_eq!(ratios.count(), 1);
    }
}
