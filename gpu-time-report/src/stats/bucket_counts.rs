//! Counts of times by bucket, while they are recorded.

use super::buckets::{BUCKETS, bucket};
use super::histogram::Histogram;

/// Buckets whose counts are allocated together.
const PAGE: usize = 64;

const PAGES: usize = BUCKETS.div_ceil(PAGE);

/// The number of times in each bucket. Takes 256 bytes for every 64 buckets that have times, and at
/// most 111 KiB regardless of the number of times. The count of a bucket saturates at 2^32 - 1.
#[derive(Clone, Debug, Default)]
pub struct BucketCounts {
    /// For each page of buckets, 1 plus its index in `pages`, or 0 if the page has no times. Empty
    /// before the first time is recorded.
    index: Vec<u16>,
    pages: Vec<[u32; PAGE]>,
}

impl BucketCounts {
    /// Counts one time.
    #[inline]
    pub fn record(&mut self, ns: f64) {
        self.add(bucket(ns), 1);
    }

    /// Adds the counts of `other`.
    pub fn merge(&mut self, other: &BucketCounts) {
        other.iter().for_each(|(bucket, count)| self.add(bucket, count));
    }

    #[inline]
    fn add(&mut self, bucket: usize, times: u32) {
        let at = self.index.get(bucket / PAGE).map_or(0, |&at| usize::from(at));
        let at = if at > 0 { at } else { self.add_page(bucket / PAGE) };
        if let Some(count) = self.pages.get_mut(at - 1).and_then(|page| page.get_mut(bucket % PAGE))
        {
            *count = count.saturating_add(times);
        }
    }

    /// Adds a page, and returns 1 plus its index in `pages`.
    #[cold]
    fn add_page(&mut self, page: usize) -> usize {
        if self.index.is_empty() {
            self.index = vec![0; PAGES];
        }
        let pages = self.pages.len();
        if pages == self.pages.capacity() {
            self.pages.reserve_exact(pages.max(1).min(PAGES - pages));
        }
        self.pages.push([0; PAGE]);
        self.index[page] = pages as u16 + 1;
        pages + 1
    }

    /// Returns the buckets that are not empty.
    pub fn histogram(&self) -> Histogram {
        Histogram::of_ascending(self.iter().map(|(bucket, count)| (bucket as u16, count.into())))
    }

    /// Returns the buckets that are not empty, in order, with their counts.
    fn iter(&self) -> impl Iterator<Item = (usize, u32)> {
        let indexed = self.index.iter().enumerate().filter(|&(_, &at)| at > 0);
        let counts = indexed.flat_map(|(page, &at)| {
            (page * PAGE..).zip(self.pages.get(usize::from(at) - 1).into_iter().flatten())
        });
        counts.map(|(bucket, &count)| (bucket, count)).filter(|&(_, count)| count > 0)
    }

    #[cfg(test)]
    fn heap_bytes(&self) -> usize {
        self.index.capacity() * size_of::<u16>() + self.pages.capacity() * size_of::<[u32; PAGE]>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn record_saturates() {
        let mut counts = BucketCounts::default();
        counts.record(500.0);
        counts.pages.iter_mut().flatten().filter(|count| **count > 0).for_each(|c| *c = u32::MAX);
        counts.record(500.0);
        assert_eq!(counts.histogram().count(), u64::from(u32::MAX));
    }

    #[test]
    fn memory_grows_with_the_buckets_in_use() {
        let mut counts = BucketCounts::default();
        assert_eq!(counts.heap_bytes(), 0);
        let index = 2 * PAGES;
        // Below 2 µs each bucket is 1 ns wide, beginning with that of 1 ns.
        for (ns, pages) in [(1.0, 1), (64.0, 1), (65.0, 2), (1e6, 4), (1e9, 4), (2e9, 8)] {
            counts.record(ns);
            assert_eq!(counts.heap_bytes(), index + pages * 4 * PAGE, "{ns}");
        }
        for bucket in 0..BUCKETS {
            counts.record(super::super::buckets::middle(bucket));
        }
        assert_eq!(counts.heap_bytes(), index + PAGES * 4 * PAGE);
        assert!(counts.heap_bytes() <= 111 * 1024);
    }

    proptest! {
        #[test]
        fn histogram_is_that_of_the_times(
            times in prop::collection::vec((0.0f64..12.5, 1..5u64), 0..200),
            cut in 0.0..1.0,
        ) {
            let times = times.into_iter().map(|(exponent, count)| (10f64.powf(exponent), count));
            let times: Vec<(f64, u64)> = times.collect();
            let (some, others) = times.split_at((cut * times.len() as f64) as usize);
            let [mut counts, others] = [some, others].map(|times| {
                let mut counts = BucketCounts::default();
                for &(ns, count) in times {
                    (0..count).for_each(|_| counts.record(ns));
                }
                counts
            });
            counts.merge(&others);
            prop_assert_eq!(counts.histogram(), times.into_iter().collect());
        }
    }
}
