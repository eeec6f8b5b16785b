//! Histograms of times.

use std::cmp::Ordering;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::buckets::{BUCKETS, bucket, middle};

/// The number of times in each bucket.
///
/// Times in the same bucket are indistinguishable. Buckets are 1 ns wide up to 2 µs, at most 64 ns
/// up to 1 ms, and 0.4 % of the time above. In JSON, a list of `[ns, count]` with the middle of
/// each bucket, rounded up to a nanosecond.
// Invariant: the buckets ascend, and none is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram(Vec<(u16, u64)>);

const _: () = assert!(BUCKETS <= 1 << u16::BITS);

impl Histogram {
    /// Returns the number of times.
    pub fn count(&self) -> u64 {
        self.0.iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// Returns `true` if there are no times.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the middle of each non-empty bucket in nanoseconds and its count, in ascending
    /// order.
    pub fn iter(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        self.0.iter().map(|&(bucket, count)| (middle(bucket.into()), count))
    }

    /// Adds the times of another histogram.
    pub(super) fn merge(&mut self, other: &Histogram) {
        let mut merged = Vec::with_capacity(self.0.len().max(other.0.len()));
        let (mut ours, mut theirs) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(&&(our, count)), Some(&&(their, more))) = (ours.peek(), theirs.peek()) {
            merged.push((
                our.min(their),
                match our.cmp(&their) {
                    Ordering::Less => count,
                    Ordering::Equal => count.saturating_add(more),
                    Ordering::Greater => more,
                },
            ));
            _ = ours.next_if(|_| our <= their);
            _ = theirs.next_if(|_| their <= our);
        }
        merged.extend(ours.chain(theirs));
        self.0 = merged;
    }

    /// Returns the times that `earlier`, a histogram of the same series, did not contain.
    pub(super) fn since(&self, earlier: &Histogram) -> Histogram {
        let had = |bucket: u16| {
            let at = earlier.0.binary_search_by_key(&bucket, |&(bucket, _)| bucket).ok();
            at.and_then(|at| earlier.0.get(at)).map_or(0, |&(_, count)| count)
        };
        let left =
            self.0.iter().map(|&(bucket, count)| (bucket, count.saturating_sub(had(bucket))));
        Histogram::of_ascending(left.filter(|(_, count)| *count > 0))
    }

    /// Returns the times minus `ns`. They fall into other buckets, so their errors may double.
    #[doc(hidden)]
    pub fn less(&self, ns: f64) -> Histogram {
        Histogram::of_ascending(self.iter().map(|(time, count)| (bucket(time - ns) as u16, count)))
    }

    /// Returns the time with this rank, counted from 1 for the shortest. Returns the longest if the
    /// rank is too high.
    #[doc(hidden)]
    pub fn at_rank(&self, rank: u64) -> f64 {
        let mut below = 0u64;
        let found = self.0.iter().find(|(_, count)| {
            below = below.saturating_add(*count);
            below >= rank
        });
        found.or(self.0.last()).map_or(0.0, |&(bucket, _)| middle(bucket.into()))
    }

    /// Returns the times of the buckets below and above a fractional rank, and the share of the way
    /// from the lower to the upper one, as if the times of each bucket lay symmetrically around its
    /// middle.
    pub(super) fn around_rank(&self, rank: f64) -> ([f64; 2], f64) {
        let (mut below, mut before) = (0.0, None);
        for &(bucket, count) in &self.0 {
            let (ns, count) = (middle(bucket.into()), count as f64);
            let here = below + (count + 1.0) / 2.0;
            if here >= rank {
                return match before {
                    Some((last_ns, last)) => ([last_ns, ns], (rank - last) / (here - last)),
                    None => ([ns; 2], 0.0),
                };
            }
            before = Some((ns, here));
            below += count;
        }
        ([before.map_or(0.0, |(ns, _)| ns); 2], 0.0)
    }

    /// Creates a histogram from non-empty buckets in ascending order, of which several may be the same.
    pub(super) fn of_ascending(buckets: impl Iterator<Item = (u16, u64)>) -> Histogram {
        let mut all: Vec<(u16, u64)> = Vec::new();
        for (bucket, count) in buckets {
            match all.last_mut() {
                Some((last, sum)) if *last == bucket => *sum = sum.saturating_add(count),
                _ => all.push((bucket, count)),
            }
        }
        Histogram(all)
    }
}

/// Collects times and their counts, in any order.
impl FromIterator<(f64, u64)> for Histogram {
    fn from_iter<I: IntoIterator<Item = (f64, u64)>>(times: I) -> Histogram {
        let counted = times.into_iter().filter(|(_, count)| *count > 0);
        let mut buckets: Vec<(u16, u64)> =
            counted.map(|(ns, count)| (bucket(ns) as u16, count)).collect();
        buckets.sort_by_key(|(bucket, _)| *bucket);
        Histogram::of_ascending(buckets.into_iter())
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Whole numbers keep the JSON short and quick to read, and identify the bucket.
        serializer.collect_seq(self.iter().map(|(ns, count)| (ns.ceil() as u64, count)))
    }
}

impl<'de> Deserialize<'de> for Histogram {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Histogram, D::Error> {
        Vec::<(f64, u64)>::deserialize(deserializer).map(Histogram::from_iter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn since_subtracts_earlier_counts() {
        let of = |times: &[(f64, u64)]| times.iter().copied().collect::<Histogram>();
        let earlier = of(&[(100.0, 2), (300.0, 7)]);
        let now = of(&[(50.0, 1), (100.0, 5), (300.0, 7), (900.0, 4)]);
        assert_eq!(now.since(&earlier), of(&[(50.0, 1), (100.0, 3), (900.0, 4)]));
        assert_eq!(now.since(&Histogram::default()), now);
        assert!(now.since(&now).is_empty());
    }

    #[test]
    fn at_rank_saturates() {
        let histogram: Histogram = [(300.0, 2), (100.0, 1)].into_iter().collect();
        assert_eq!(
            [0, 1, 2, 3, 9].map(|rank| histogram.at_rank(rank)),
            [100.0, 100.0, 300.0, 300.0, 300.0]
        );
        assert_eq!(Histogram::default().at_rank(1), 0.0);
    }

    #[test]
    fn json_in_any_order_is_read() {
        let read = |json| serde_json::from_str::<Histogram>(json).unwrap();
        assert_eq!(
            read("[[300,2],[100,1],[300.2,1],[7,0]]"),
            [(100.0, 1), (300.0, 3)].into_iter().collect()
        );
        assert_eq!(read("[[5,18446744073709551615],[6,1]]").count(), u64::MAX);
        assert_eq!(read("[[-5,1],[1e300,1]]").iter().count(), 2);
    }

    proptest! {
        #[test]
        fn merge_agrees_with_collect(
            one in prop::collection::vec((1.0f64..5e3, 1..9u64), 0..50),
            other in prop::collection::vec((1.0f64..5e3, 1..9u64), 0..50),
        ) {
            let mut merged: Histogram = one.iter().copied().collect();
            merged.merge(&other.iter().copied().collect());
            prop_assert_eq!(merged, one.into_iter().chain(other).collect());
        }

        #[test]
        fn json_round_trips(times in prop::collection::vec((1.0f64..1e13, 1..u64::MAX), 0..50)) {
            let histogram: Histogram = times.into_iter().collect();
            let json = serde_json::to_string(&histogram).unwrap();
            prop_assert!(!json.contains('.'), "{json}");
            prop_assert_eq!(serde_json::from_str::<Histogram>(&json).unwrap(), histogram);
        }
    }
}
