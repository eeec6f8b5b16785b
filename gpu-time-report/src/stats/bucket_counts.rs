//! Counts of times by bucket, while they are recorded.

use super::buckets::{BUCKETS, bucket};
use super::histogram::Histogram;

/// The number of times in each bucket, in 110 KiB regardless of the number of times. The count of a
/// bucket saturates at 2^32 - 1.
#[derive(Debug)]
pub struct BucketCounts(Box<[u32]>);

impl BucketCounts {
    /// Creates empty counts.
    pub fn new() -> Self {
        BucketCounts(vec![0; BUCKETS].into_boxed_slice())
    }

    /// Counts one time.
    #[inline]
    pub fn record(&mut self, ns: f64) {
        if let Some(count) = self.0.get_mut(bucket(ns)) {
            *count = count.saturating_add(1);
        }
    }

    /// Returns the buckets that are not empty.
    pub fn histogram(&self) -> Histogram {
        let counted = self.0.iter().enumerate().filter(|&(_, &count)| count > 0);
        Histogram::of_buckets(counted.map(|(bucket, &count)| (bucket as u16, count.into())))
    }

    /// Returns the heap memory of the counts, in bytes.
    pub fn heap_bytes(&self) -> usize {
        size_of_val(&*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_saturates() {
        let mut counts = BucketCounts::new();
        counts.0[bucket(500.0)] = u32::MAX;
        counts.record(500.0);
        assert_eq!(counts.histogram().count(), u64::from(u32::MAX));
    }
}
