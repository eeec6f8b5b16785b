//! The work of a series, or of several, and its rate.

use crate::{Bytes, Flops};

/// Work of one kind. Rates are in units per nanosecond.
#[derive(Clone, Copy, Default)]
pub struct Work {
    /// The number of samples with known work.
    pub samples: u64,
    /// The work per call. `None` if calls or reports differ.
    pub per_call: Option<f64>,
    /// The work of all samples.
    pub total: f64,
    /// The part of the work that a rate is of.
    pub rated: f64,
    /// The time that this part took, in nanoseconds; 0 if it is unknown.
    pub rated_ns: f64,
}

impl Work {
    /// Returns the bytes moved in a series.
    pub fn of_bytes(bytes: &Bytes) -> Work {
        Work::new(bytes.samples, bytes.per_call, bytes.total, bytes.gb_per_s)
    }

    /// Returns the operations done in a series.
    pub fn of_flops(flops: &Flops) -> Work {
        let per_ns = flops.tflop_per_s.map(|rate| rate * 1e3);
        Work::new(flops.samples, flops.per_call, flops.total, per_ns)
    }

    fn new(samples: u64, per_call: Option<f64>, total: f64, per_ns: Option<f64>) -> Work {
        let per_ns = per_ns.filter(|rate| *rate > 0.0);
        let rated = if per_ns.is_some() { total } else { 0.0 };
        let rated_ns = per_ns.map_or(0.0, |rate| total / rate);
        Work { samples, per_call, total, rated, rated_ns }
    }

    /// Adds the work from another report.
    pub fn add(&mut self, other: Work) {
        self.samples = self.samples.saturating_add(other.samples);
        self.per_call = self.per_call.filter(|_| self.per_call == other.per_call);
        self.total += other.total;
        self.rated += other.rated;
        self.rated_ns += other.rated_ns;
    }

    /// Converts to bytes, for a series with the given number of samples and net median.
    pub fn bytes(self, samples: u64, median_ns: Option<f64>) -> Bytes {
        let gb_per_s = self.per_ns(samples, median_ns);
        let Work { samples, per_call, total, .. } = self;
        Bytes { samples, per_call, total, gb_per_s, peak_share: None }
    }

    /// Converts to operations, in the same way.
    pub fn flops(self, samples: u64, median_ns: Option<f64>) -> Flops {
        let tflop_per_s = self.per_ns(samples, median_ns).map(|rate| rate / 1e3);
        let Work { samples, per_call, total, .. } = self;
        Flops { samples, per_call, total, tflop_per_s }
    }

    /// Computes the rate: from the median if every sample did the same work, otherwise from the
    /// total time.
    fn per_ns(&self, samples: u64, median_ns: Option<f64>) -> Option<f64> {
        let (amount, ns) = match (self.per_call, median_ns) {
            (Some(same), Some(ns)) if self.samples == samples => (same, ns),
            _ => (self.rated, self.rated_ns),
        };
        (ns > 0.0).then(|| amount / ns)
    }
}
