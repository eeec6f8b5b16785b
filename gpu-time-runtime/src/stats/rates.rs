//! What is kept of the work of a series' samples, and the rates that come of it.

use crate::types::sample::Sample;
use crate::types::workload::{Amount, Workload};
use gpu_time_report::{Bytes, Flops};

/// The work of a series' samples.
#[derive(Clone, Copy, Debug, Default)]
pub struct Rates {
    bytes: Done,
    flops: Done,
}

/// Work of one kind. What a rate divides must be of the same samples, so each part has its own time.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    fed: Part,
    starved: Part,
}

/// The samples of which the work is known.
#[derive(Clone, Copy, Debug)]
struct Part {
    samples: u64,
    brackets: u64,
    raw_ns: f64,
    amount: f64,
    least: f64,
    most: f64,
}

/// The statistics that rates go by.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    /// They are over fed samples, else over starved ones.
    pub fed: bool,
    /// Over so many.
    pub samples: u64,
    /// Their median with the bias removed, where one bias fits all of them.
    pub median_ns: Option<f64>,
    /// What to remove for each bracket.
    pub bias_ns: Option<f64>,
}

/// Work of one kind, as a report has it.
struct Outcome {
    samples: u64,
    per_call: Option<f64>,
    total: f64,
    per_ns: Option<f64>,
}

impl Rates {
    /// Takes in the work of a sample that is in the statistics.
    pub fn record(&mut self, sample: Sample, workload: Workload) {
        let record = |done: &mut Done, amount: Amount| {
            if let Some(amount) = amount.get() {
                let part = if sample.flags.fed { &mut done.fed } else { &mut done.starved };
                part.record(sample, amount);
            }
        };
        record(&mut self.bytes, workload.bytes);
        record(&mut self.flops, workload.flops);
    }

    /// The work since an earlier one of the same series.
    pub fn since(self, earlier: Rates) -> Rates {
        Rates { bytes: self.bytes.since(earlier.bytes), flops: self.flops.since(earlier.flops) }
    }

    /// Bytes and their rate, or `None` where no sample's are known.
    pub fn bytes(&self, shown: Shown) -> Option<Bytes> {
        let Outcome { samples, per_call, total, per_ns } = self.bytes.outcome(shown)?;
        // A byte in a nanosecond is a gigabyte in a second.
        Some(Bytes { samples, per_call, total, gb_per_s: per_ns, peak_share: None })
    }

    /// Operations and their rate, or `None` where no sample's are known.
    pub fn flops(&self, shown: Shown) -> Option<Flops> {
        let Outcome { samples, per_call, total, per_ns } = self.flops.outcome(shown)?;
        Some(Flops { samples, per_call, total, tflop_per_s: per_ns.map(|rate| rate / 1e3) })
    }
}

impl Done {
    fn since(self, earlier: Done) -> Done {
        Done { fed: self.fed.since(earlier.fed), starved: self.starved.since(earlier.starved) }
    }

    /// The rate at the median where all samples did the same work, else that of all work in all time.
    fn outcome(&self, shown: Shown) -> Option<Outcome> {
        let Done { fed, starved } = self;
        let samples = fed.samples + starved.samples;
        let (least, most) = (fed.least.min(starved.least), fed.most.max(starved.most));
        let per_call = (samples > 0 && least == most).then_some(most);
        let part = if shown.fed { fed } else { starved };
        let (amount, ns) = match (per_call, shown.median_ns) {
            (Some(same), Some(ns)) if part.samples == shown.samples => (same, Some(ns)),
            _ => (part.amount, part.net_ns(shown.bias_ns)),
        };
        (samples > 0).then(|| Outcome {
            samples,
            per_call,
            total: fed.amount + starved.amount,
            per_ns: ns.filter(|ns| *ns > 0.0).map(|ns| amount / ns),
        })
    }
}

impl Default for Part {
    fn default() -> Self {
        Part {
            samples: 0,
            brackets: 0,
            raw_ns: 0.0,
            amount: 0.0,
            least: f64::INFINITY,
            most: f64::NEG_INFINITY,
        }
    }
}

impl Part {
    fn record(&mut self, sample: Sample, amount: f64) {
        self.samples += 1;
        self.brackets += u64::from(sample.brackets);
        self.raw_ns += sample.raw_ns();
        self.amount += amount;
        self.least = self.least.min(amount);
        self.most = self.most.max(amount);
    }

    /// What all calls did, the later ones did.
    fn since(self, earlier: Part) -> Part {
        Part {
            samples: self.samples.saturating_sub(earlier.samples),
            brackets: self.brackets.saturating_sub(earlier.brackets),
            raw_ns: self.raw_ns - earlier.raw_ns,
            amount: self.amount - earlier.amount,
            ..self
        }
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

    fn fed(samples: u64, median_ns: f64) -> Shown {
        Shown { fed: true, samples, median_ns: Some(median_ns), bias_ns: Some(1_000.0) }
    }

    #[test]
    fn work_that_is_the_same_in_all_samples_goes_by_the_median() {
        let known = (3_000.0, true, Some(8_000.0));
        let all = rates(&[known, known, (9_000.0, true, Some(8_000.0))]);
        let bytes = all.bytes(fed(3, 2_000.0)).unwrap();
        assert_eq!((bytes.samples, bytes.per_call, bytes.total), (3, Some(8_000.0), 24_000.0));
        assert_eq!(bytes.gb_per_s, Some(4.0));
        assert_eq!(all.flops(fed(3, 2_000.0)).unwrap().tflop_per_s, Some(0.004));
    }

    #[test]
    fn work_that_varies_goes_by_the_time_of_the_same_samples() {
        let varied = [(3_000.0, true, Some(8_000.0)), (5_000.0, true, Some(4_000.0))];
        let bytes = rates(&varied).bytes(fed(2, 2_000.0)).unwrap();
        assert_eq!((bytes.per_call, bytes.gb_per_s), (None, Some(12_000.0 / 6_000.0)));

        // One whose work is not known adds neither work nor time.
        let some = [varied[0], (90_000.0, true, None)];
        let bytes = rates(&some).bytes(fed(2, 45_000.0)).unwrap();
        assert_eq!((bytes.samples, bytes.gb_per_s), (1, Some(4.0)));

        // Starved ones add work, and nothing to the rate.
        let mixed = [varied[0], varied[1], (99_000.0, false, Some(1_000.0))];
        let bytes = rates(&mixed).bytes(fed(2, 2_000.0)).unwrap();
        assert_eq!((bytes.total, bytes.gb_per_s), (13_000.0, Some(2.0)));
    }

    #[test]
    fn without_a_net_time_there_is_no_rate() {
        let one = rates(&[(3_000.0, true, Some(8_000.0))]);
        let unknown = Shown { median_ns: None, bias_ns: None, ..fed(1, 0.0) };
        for shown in [unknown, fed(1, 0.0)] {
            let bytes = one.bytes(shown).unwrap();
            assert_eq!((bytes.total, bytes.gb_per_s), (8_000.0, None), "{shown:?}");
        }
        // Calls of different numbers of launches have no median with the bias removed.
        let bytes = one.bytes(Shown { median_ns: None, ..fed(1, 0.0) }).unwrap();
        assert_eq!(bytes.gb_per_s, Some(4.0));
        assert_eq!(rates(&[(3_000.0, true, None)]).bytes(fed(1, 2_000.0)), None);
    }

    #[test]
    fn starved_samples_alone_have_a_rate() {
        let one = rates(&[(3_000.0, false, Some(8_000.0))]);
        let bytes = one.bytes(Shown { fed: false, ..fed(1, 2_000.0) }).unwrap();
        assert_eq!(bytes.gb_per_s, Some(4.0));
    }
}
