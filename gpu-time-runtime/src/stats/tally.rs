//! The counts and sums of a series, from which its bias follows.

use crate::stats::bias::Bias;
use crate::stats::bracket_counts::BracketCounts;
use crate::stats::estimate::WeightedSums;
use crate::stats::rates::Rates;
use crate::stats::since::impl_since;
use crate::types::sample::Sample;
use gpu_time_report as report;

/// The counts and sums of a series. Unlike its times, they are cheap to copy. The sums may include
/// a few more samples than the counts, which are read first.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub counts: BracketCounts,
    pub sums: SampleSums,
    pub inner: InnerBrackets,
}

impl_since!(Tally { counts, sums, inner });

/// Sums over the samples of a series.
#[derive(Clone, Copy, Debug, Default)]
pub struct SampleSums {
    pub brackets: PerSample,
    pub weighted: WeightedSums,
    pub rates: Rates,
}

impl_since!(SampleSums { brackets, weighted, rates });

/// The number of other brackets inside the fed samples.
#[derive(Clone, Copy, Debug, Default)]
pub struct InnerBrackets {
    brackets: PerSample,
    /// The number of samples to which brackets inside, or a queue, added an unknown time.
    unknown: u64,
    /// The time that was subtracted from the samples.
    pub added_ns: f64,
}

impl_since!(InnerBrackets { brackets, unknown, added_ns });

/// Statistics of the number of brackets per fed or starved sample.
#[derive(Clone, Copy, Debug)]
pub struct PerSample {
    pub samples: u64,
    min: u32,
    max: u32,
    pub sum: u64,
}

impl_since!(PerSample { samples, sum; keep min, max });

impl Tally {
    /// Returns the brackets inside the samples, if the time that they add has been subtracted. Their number may be
    /// unknown for at most one sample in 100.
    pub fn removed_inner(&self) -> Option<PerSample> {
        let InnerBrackets { brackets, unknown, .. } = self.inner;
        let is_known =
            self.counts.fed > 0 && unknown.saturating_mul(100) <= brackets.samples + unknown;
        // Those of starved samples matter to no figure, because these are bounds.
        (is_known && self.counts.nested > 0).then_some(brackets)
    }

    /// Returns the bias of a sample, or `None` if it is unknown or if samples contain different numbers of brackets.
    pub fn removed_ns(&self, bias: Option<Bias>) -> Option<f64> {
        Some(bias?.ns * f64::from(self.sums.brackets.uniform()?))
    }
}

impl InnerBrackets {
    /// Creates the statistics of `samples` samples without brackets inside.
    pub fn of_nothing(samples: u64) -> InnerBrackets {
        InnerBrackets { brackets: PerSample::of_nothing(samples), unknown: 0, added_ns: 0.0 }
    }

    /// Records the number of brackets inside a sample, and what was added to it.
    pub fn record(&mut self, sample: Sample) {
        self.added_ns += sample.raw_ns() - sample.alone_ns();
        match sample.inner.filter(|_| sample.added_ns.is_some()) {
            Some(inner) => self.brackets.record(inner.into()),
            None => self.unknown += 1,
        }
    }
}

impl Default for PerSample {
    fn default() -> Self {
        PerSample::of_nothing(0)
    }
}

impl PerSample {
    /// Creates the statistics of `samples` samples that all have 0 brackets.
    fn of_nothing(samples: u64) -> PerSample {
        PerSample { samples, min: if samples > 0 { 0 } else { u32::MAX }, max: 0, sum: 0 }
    }

    /// Records the number of brackets in a sample.
    pub fn record(&mut self, brackets: u32) {
        self.samples += 1;
        self.min = self.min.min(brackets);
        self.max = self.max.max(brackets);
        self.sum += u64::from(brackets);
    }

    /// Returns the statistics for the report.
    pub fn report(self) -> report::Launches {
        report::value!(Launches { min: self.min, mean: self.mean(), max: self.max })
    }

    /// Returns the mean number of brackets per sample.
    pub fn mean(&self) -> f64 {
        self.sum as f64 / self.samples.max(1) as f64
    }

    /// Returns the number of brackets per sample, or `None` if it varies or there are no samples.
    fn uniform(&self) -> Option<u32> {
        (self.min == self.max).then_some(self.max)
    }
}
