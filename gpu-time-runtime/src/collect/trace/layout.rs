//! Arranges slices in rows. Slices in the same row either follow or contain each other, and never
//! overlap partially.

use std::cmp::Reverse;

/// A time interval in nanoseconds.
///
/// Invariant: `begin_ns <= end_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// Sorts items by their beginning, longer ones first, and assigns each to the first row in which it
/// fits beside or inside the existing items. Returns each item's row and the number of rows.
pub(super) fn lay_out<T>(items: &mut [(Interval, T)]) -> (Vec<usize>, usize) {
    items.sort_by_key(|(interval, _)| (interval.begin_ns, Reverse(interval.end_ns)));
    // For each row, the ends of the open intervals, innermost last.
    let mut rows: Vec<Vec<u64>> = Vec::new();
    let mut place = |interval: &Interval| {
        for (row, ends) in rows.iter_mut().enumerate() {
            while ends.last().is_some_and(|&end_ns| end_ns <= interval.begin_ns) {
                ends.pop();
            }
            if ends.last().is_none_or(|&end_ns| interval.end_ns <= end_ns) {
                ends.push(interval.end_ns);
                return row;
            }
        }
        rows.push(vec![interval.end_ns]);
        rows.len() - 1
    };
    let placed = items.iter().map(|(interval, _)| place(interval)).collect();
    (placed, rows.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rows(of: &[(u64, u64)]) -> Vec<usize> {
        let interval = |&(begin_ns, end_ns): &(u64, u64)| (Interval { begin_ns, end_ns }, ());
        lay_out(&mut of.iter().map(interval).collect::<Vec<_>>()).0
    }

    #[test]
    fn adjacent_and_nested_share_a_row() {
        assert_eq!(rows(&[(0, 10), (10, 20), (12, 20), (12, 13), (25, 25)]), [0; 5]);
    }

    #[test]
    fn overlapping_get_another_row() {
        assert_eq!(rows(&[(0, 10), (5, 15), (7, 9), (12, 20), (15, 17)]), [0, 1, 0, 0, 0]);
        assert_eq!(rows(&[(0, 10), (5, 15), (7, 20)]), [0, 1, 2]);
    }

    proptest! {
        #[test]
        fn no_overlap_on_a_row(times in prop::collection::vec((0..60u64, 0..20u64), 0..40)) {
            let interval = |(begin_ns, ns)| (Interval { begin_ns, end_ns: begin_ns + ns }, ());
            let mut items: Vec<_> = times.into_iter().map(interval).collect();
            let (rows, count) = lay_out(&mut items);
            prop_assert!(rows.iter().all(|row| *row < count));
            for (i, (a, ())) in items.iter().enumerate() {
                for (j, (b, ())) in items.iter().enumerate().skip(i + 1) {
                    let is_apart = a.end_ns <= b.begin_ns || b.end_ns <= a.begin_ns;
                    let is_inside = b.begin_ns >= a.begin_ns && b.end_ns <= a.end_ns;
                    prop_assert!(rows[i] != rows[j] || is_apart || is_inside, "{a:?} {b:?}");
                }
            }
        }
    }
}
