//! How a set of times is distributed, in bounded memory.

use super::bucket_counts::BucketCounts;
use super::moments::Moments;
use super::summary::Summary;

/// What takes in times: their exact moments, and how many there are in each bucket.
#[derive(Debug)]
pub struct Distribution {
    moments: Moments,
    counts: BucketCounts,
}

impl Distribution {
    /// A distribution of nothing.
    #[expect(clippy::new_without_default, reason = "it allocates")]
    pub fn new() -> Self {
        Distribution { moments: Moments::default(), counts: BucketCounts::new() }
    }

    /// Takes in one more time.
    #[inline]
    pub fn record(&mut self, ns: f64) {
        self.moments.record(ns);
        self.counts.record(ns);
    }

    /// What is known of the times so far.
    pub fn summary(&self) -> Summary {
        Summary::new(self.moments, self.counts.histogram())
    }

    /// The memory that it takes, in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.counts.heap_bytes()
    }
}
