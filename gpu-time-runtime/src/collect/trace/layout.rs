//! Times to rows: on one row of a trace, slices follow or contain each other and never overlap.

use std::cmp::Reverse;

/// From when to when, in nanoseconds.
///
/// Invariant: the end is no less than the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub begin_ns: u64,
    pub end_ns: u64,
}

/// Orders things by when they began, the longer first, and gives each the first row on which it lies
/// beside or inside whatever is there. Answers with the number of rows too.
pub(super) fn lay_out<T>(things: &mut [(Interval, T)]) -> (Vec<usize>, usize) {
    things.sort_by_key(|(interval, _)| (interval.begin_ns, Reverse(interval.end_ns)));
    // By row, the ends of what contains the next, the innermost last.
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
    let placed = things.iter().map(|(interval, _)| place(interval)).collect();
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
    fn what_follows_or_is_contained_shares_a_row() {
        assert_eq!(rows(&[(0, 10), (10, 20), (12, 20), (12, 13), (25, 25)]), [0; 5]);
    }

    #[test]
    fn what_overlaps_has_another() {
        assert_eq!(rows(&[(0, 10), (5, 15), (7, 9), (12, 20), (15, 17)]), [0, 1, 0, 0, 0]);
        assert_eq!(rows(&[(0, 10), (5, 15), (7, 20)]), [0, 1, 2]);
    }

    proptest! {
        #[test]
        fn no_two_on_a_row_overlap(times in prop::collection::vec((0..60u64, 0..20u64), 0..40)) {
            let interval = |(begin_ns, ns)| (Interval { begin_ns, end_ns: begin_ns + ns }, ());
            let mut things: Vec<_> = times.into_iter().map(interval).collect();
            let (rows, count) = lay_out(&mut things);
            prop_assert!(rows.iter().all(|row| *row < count));
            for (i, (a, ())) in things.iter().enumerate() {
                for (j, (b, ())) in things.iter().enumerate().skip(i + 1) {
                    let is_apart = a.end_ns <= b.begin_ns || b.end_ns <= a.begin_ns;
                    let is_inside = b.begin_ns >= a.begin_ns && b.end_ns <= a.end_ns;
                    prop_assert!(rows[i] != rows[j] || is_apart || is_inside, "{a:?} {b:?}");
                }
            }
        }
    }
}
