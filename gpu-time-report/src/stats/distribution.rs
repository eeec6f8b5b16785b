//! Recording of a set of times in bounded memory.

use super::bucket_counts::BucketCounts;
use super::moments::Moments;
use super::summary::Summary;

/// Records times: exact moments, and counts by bucket.
#[derive(Debug)]
pub struct Distribution {
    moments: Moments,
    counts: BucketCounts,
}

impl Distribution {
    /// Creates an empty distribution.
    #[expect(clippy::new_without_default, reason = "it allocates")]
    pub fn new() -> Self {
        Distribution { moments: Moments::default(), counts: BucketCounts::new() }
    }

    /// Records one time.
    #[inline]
    pub fn record(&mut self, ns: f64) {
        self.moments.record(ns);
        self.counts.record(ns);
    }

    /// Returns a summary of the times so far.
    pub fn summary(&self) -> Summary {
        Summary::new(self.moments, self.counts.histogram())
    }

    /// Returns the memory that it takes, in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.counts.heap_bytes()
    }
}
