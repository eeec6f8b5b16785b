//! Bytes and floating-point operations of a series, and the corresponding rates.

use crate::stats::since::impl_since;
use crate::types::sample::Sample;
use crate::types::workload::{Amount, Workload};
use gpu_time_report::{Bytes, Flops, Work};

/// The work done in the samples of a series.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    bytes: WorkKind,
    flops: WorkKind,
}

impl_since!(Rates { bytes, flops });

/// Bytes or operations. A rate must divide work and time from the same samples, so fed and starved
/// samples have separate sums.
#[derive(Clone, Copy, Debug, Default)]
struct WorkKind {
    fed: WorkSums,
    starved: WorkSums,
}

impl_since!(WorkKind { fed, starved });

/// Sums over the samples whose work is known.
#[derive(Clone, Copy, Debug)]
struct WorkSums {
    samples: u64,
    brackets: u64,
    raw_ns: f64,
    amount: f64,
    /// The least and the most work in one sample.
    min: f64,
    max: f64,
}

// If every call did the same work, later calls did too, so the extremes also apply to a difference.
impl_since!(WorkSums { samples, brackets, raw_ns, amount; keep min, max });

/// The samples used to compute the rates.
#[derive(Clone, Copy, Debug)]
pub struct RateBasis {
    /// `true` to use fed samples, `false` to use starved ones.
    pub fed: bool,
    /// The number of samples.
    pub samples: u64,
    /// The net median, if the same bias applies to all samples.
    pub median_ns: Option<f64>,
    /// The bias of each bracket.
    pub bias_ns: Option<f64>,
}

impl Rates {
    /// Records the work of a sample.
    pub fn record(&mut self, sample: Sample, workload: Workload) {
        let record = |kind: &mut WorkKind, amount: Amount| {
            if let Some(amount) = amount.get() {
                let sums = if sample.flags.fed { &mut kind.fed } else { &mut kind.starved };
                sums.record(sample, amount);
            }
        };
        record(&mut self.bytes, workload.bytes);
        record(&mut self.flops, workload.flops);
    }

    /// Returns the bytes and their rate, or `None` if no sample has known bytes.
    pub fn bytes(&self, basis: RateBasis) -> Option<Bytes> {
        self.bytes.rated(basis, Work::bytes)
    }

    /// Returns the operations and their rate, or `None` if no sample has known operations.
    pub fn flops(&self, basis: RateBasis) -> Option<Flops> {
        self.flops.rated(basis, Work::flops)
    }
}

impl WorkKind {
    /// Returns what `rate` makes of the work, the number of its samples, and the median time unless some of the samples that
    /// it is of have unknown work.
    fn rated<T>(
        &self,
        basis: RateBasis,
        rate: impl FnOnce(Work, u64, Option<f64>) -> T,
    ) -> Option<T> {
        let WorkKind { fed, starved } = self;
        let samples = fed.samples + starved.samples;
        let (min, max) = (fed.min.min(starved.min), fed.max.max(starved.max));
        let sums = if basis.fed { fed } else { starved };
        let median_ns = basis.median_ns.filter(|_| sums.samples == basis.samples);
        let work = Work {
            samples,
            per_call: (min == max).then_some(max),
            total: fed.amount + starved.amount,
            rated: sums.amount,
            rated_ns: sums.net_ns(basis.bias_ns).unwrap_or_default(),
        };
        (samples > 0).then(|| rate(work, samples, median_ns))
    }
}

impl Default for WorkSums {
    fn default() -> Self {
        WorkSums {
            samples: 0,
            brackets: 0,
            raw_ns: 0.0,
            amount: 0.0,
            min: f64::INFINITY,
            max: f64::NEG_INFINITY,
        }
    }
}

impl WorkSums {
    fn record(&mut self, sample: Sample, amount: f64) {
        self.samples += 1;
        self.brackets += u64::from(sample.brackets);
        self.raw_ns += sample.alone_ns();
        self.amount += amount;
        self.min = self.min.min(amount);
        self.max = self.max.max(amount);
    }

    fn net_ns(&self, bias_ns: Option<f64>) -> Option<f64> {
        bias_ns.map(|bias| self.raw_ns - bias * self.brackets as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(raw_ns: f64, fed: bool) -> Sample {
        let mut sample = Sample::new(raw_ns).unwrap();
        sample.flags.fed = fed;
        sample
    }

    fn rates(samples: &[(f64, bool, Option<f64>)]) -> Rates {
        let mut rates = Rates::default();
        for (raw_ns, fed, bytes) in samples {
            let workload = Workload { bytes: Amount::of(bytes), flops: Amount::of(bytes) };
            rates.record(sample(*raw_ns, *fed), workload);
        }
        rates
    }

    fn fed(samples: u64, median_ns: f64) -> RateBasis {
        RateBasis { fed: true, samples, median_ns: Some(median_ns), bias_ns: Some(1_000.0) }
    }

    #[test]
    fn uniform_work_uses_median_time() {
        let known = (3_000.0, true, Some(8_000.0));
        let all = rates(&[known, known, (9_000.0, true, Some(8_000.0))]);
        let bytes = all.bytes(fed(3, 2_000.0)).unwrap();
        assert_eq!((bytes.samples, bytes.per_call, bytes.total), (3, Some(8_000.0), 24_000.0));
        assert_eq!(bytes.gb_per_s, Some(4.0));
        assert_eq!(all.flops(fed(3, 2_000.0)).unwrap().tflop_per_s, Some(0.004));
    }

    #[test]
    fn varying_work_uses_time_of_same_samples() {
        let varied = [(3_000.0, true, Some(8_000.0)), (5_000.0, true, Some(4_000.0))];
        let bytes = rates(&varied).bytes(fed(2, 2_000.0)).unwrap();
        assert_eq!((bytes.per_call, bytes.gb_per_s), (None, Some(12_000.0 / 6_000.0)));

        // A sample with unknown work adds neither work nor time.
        let some = [varied[0], (90_000.0, true, None)];
        let bytes = rates(&some).bytes(fed(2, 45_000.0)).unwrap();
        assert_eq!((bytes.samples, bytes.gb_per_s), (1, Some(4.0)));

        // Starved samples add to the total but not to the rate.
        let mixed = [varied[0], varied[1], (99_000.0, false, Some(1_000.0))];
        let bytes = rates(&mixed).bytes(fed(2, 2_000.0)).unwrap();
        assert_eq!((bytes.total, bytes.gb_per_s), (13_000.0, Some(2.0)));
    }

    #[test]
    fn no_rate_without_net_time() {
        let one = rates(&[(3_000.0, true, Some(8_000.0))]);
        let unknown = RateBasis { median_ns: None, bias_ns: None, ..fed(1, 0.0) };
        for basis in [unknown, fed(1, 0.0)] {
            let bytes = one.bytes(basis).unwrap();
            assert_eq!((bytes.total, bytes.gb_per_s), (8_000.0, None), "{basis:?}");
        }
        // Calls that make different numbers of launches have no net median.
        let bytes = one.bytes(RateBasis { median_ns: None, ..fed(1, 0.0) }).unwrap();
        assert_eq!(bytes.gb_per_s, Some(4.0));
        assert_eq!(rates(&[(3_000.0, true, None)]).bytes(fed(1, 2_000.0)), None);
    }

    #[test]
    fn starved_samples_alone_have_rate() {
        let one = rates(&[(3_000.0, false, Some(8_000.0))]);
        let bytes = one.bytes(RateBasis { fed: false, ..fed(1, 2_000.0) }).unwrap();
        assert_eq!(bytes.gb_per_s, Some(4.0));
    }
}
