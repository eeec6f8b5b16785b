//! Counts of times by bucket, as they are recorded.

use super::buckets::{BUCKETS, bucket};
use super::histogram::Histogram;

/// How many times fell into each bucket, in 110 KiB, whatever is recorded. A bucket that has counted
/// 2^32 - 1 times counts no further.
#[derive(Debug)]
pub struct BucketCounts(Box<[u32]>);

impl BucketCounts {
    /// Counts of nothing.
    pub fn new() -> Self {
        BucketCounts(vec![0; BUCKETS].into_boxed_slice())
    }

    /// Counts a time.
    #[inline]
    pub fn record(&mut self, ns: f64) {
        if let Some(count) = self.0.get_mut(bucket(ns)) {
            *count = count.saturating_add(1);
        }
    }

    /// The buckets that are not empty.
    pub fn histogram(&self) -> Histogram {
        let counted = self.0.iter().enumerate().filter(|&(_, &count)| count > 0);
        Histogram::of_buckets(counted.map(|(bucket, &count)| (bucket as u16, count.into())))
    }

    /// The memory that the counts take, in bytes.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_bucket_stays_full() {
        let mut counts = BucketCounts::new();
        counts.0[bucket(500.0)] = u32::MAX;
        counts.record(500.0);
        assert_eq!(counts.histogram().count(), u64::from(u32::MAX));
    }
}
