//! Recording of a set of times in bounded memory.

use super::bucket_counts::BucketCounts;
use super::moments::Moments;
use super::summary::Summary;

/// Records times as exact moments and as counts by bucket.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    moments: Moments,
    counts: BucketCounts,
}

impl Distribution {
    /// Creates an empty distribution.
    pub fn new() -> Self {
        Self::default()
    }

    /// Records one time.
    #[inline]
    pub fn record(&mut self, ns: f64) {
        self.moments.record(ns);
        self.counts.record(ns);
    }

    /// Adds the times of `other`.
    pub fn merge(&mut self, other: &Distribution) {
        self.moments.merge(&other.moments);
        self.counts.merge(&other.counts);
    }

    /// Returns a summary of the times so far.
    pub fn summary(&self) -> Summary {
        Summary::new(self.moments, self.counts.histogram())
    }
}
