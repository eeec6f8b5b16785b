//! Between which order statistics the median lies.

/// Up to here the binomial probabilities are added up; beyond, the normal curve is as good.
const EXACT: u64 = 1000;

/// The ranks, from 1, of two of `count` ordered values that hold the median between them with a
/// probability of at least 95 %, or `None` where all of them together do not: fewer than 6.
///
/// Nothing is assumed of how the values are distributed, only that they are independent: each lies
/// below the median as a coin falls, so the number that do is binomial.
pub fn median_ranks(count: u64) -> Option<(u64, u64)> {
    let low = if count <= EXACT { exact(count) } else { normal(count) };
    (low > 0).then(|| (low, count - low + 1))
}

/// The highest rank that is above the median with a probability of at most 2.5 %.
fn exact(count: u64) -> u64 {
    let n = count as f64;
    let mut term = 0.5f64.powf(n);
    let mut at_most = 0.0;
    let mut rank = 0;
    loop {
        at_most += term;
        if at_most > 0.025 || rank == count {
            return rank;
        }
        term *= (n - rank as f64) / (rank as f64 + 1.0);
        rank += 1;
    }
}

/// The same from the normal approximation of the binomial.
fn normal(count: u64) -> u64 {
    let n = count as f64;
    ((n - 1.96 * n.sqrt()) / 2.0).floor() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ranks_are_those_of_the_tables() {
        for few in 0..=5 {
            assert_eq!(median_ranks(few), None);
        }
        assert_eq!(median_ranks(6), Some((1, 6)));
        assert_eq!(median_ranks(10), Some((2, 9)));
        assert_eq!(median_ranks(20), Some((6, 15)));
        assert_eq!(median_ranks(100), Some((40, 61)));
    }

    #[test]
    fn the_curve_takes_over_where_it_agrees() {
        for count in EXACT - 200..=EXACT {
            assert!(exact(count).abs_diff(normal(count)) <= 1, "{count}");
        }
        let (low, high) = median_ranks(1_000_000).unwrap();
        assert_eq!((low, high), (499_020, 500_981));
    }

    #[test]
    fn there_may_be_as_many_as_can_be_counted() {
        let (low, high) = median_ranks(u64::MAX).unwrap();
        assert!(low <= high, "{low} {high}");
    }

    #[test]
    fn they_hold_the_median_as_often_as_promised() {
        // Of a fixed seed: the share is the same in every run.
        let mut random = fastrand::Rng::with_seed(1);
        let (low, high) = median_ranks(50).unwrap();
        let held = (0..4000)
            .filter(|_| {
                let mut values: Vec<f64> = (0..50).map(|_| random.f64()).collect();
                values.sort_by(f64::total_cmp);
                values[low as usize - 1] <= 0.5 && 0.5 <= values[high as usize - 1]
            })
            .count();
        assert!((3800..=3960).contains(&held), "{held} of 4000");
    }
}
