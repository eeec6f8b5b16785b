//! Ranks of a confidence interval of the median.

/// The maximum count for which the binomial probabilities are added up; the normal approximation is
/// as good above.
const EXACT: u64 = 1000;

/// Returns the ranks, from 1, of two of `count` sorted values that enclose the median with a
/// probability of at least 95 %, or `None` if even the extremes do not: with fewer than 6 values.
///
/// Assumes only that the values are independent, whatever their distribution: each lies below the
/// median with probability one half, so the number below is binomial.
pub fn median_ranks(count: u64) -> Option<(u64, u64)> {
    let low = if count <= EXACT { exact(count) } else { normal(count) };
    (low > 0).then(|| (low, count - low + 1))
}

/// Returns the highest rank whose value exceeds the median with a probability of at most 2.5 %.
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

/// Computes the same by the normal approximation of the binomial.
fn normal(count: u64) -> u64 {
    let n = count as f64;
    ((n - 1.96 * n.sqrt()) / 2.0).floor() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_agree_with_published_tables() {
        for few in 0..=5 {
            assert_eq!(median_ranks(few), None);
        }
        assert_eq!(median_ranks(6), Some((1, 6)));
        assert_eq!(median_ranks(10), Some((2, 9)));
        assert_eq!(median_ranks(20), Some((6, 15)));
        assert_eq!(median_ranks(100), Some((40, 61)));
    }

    #[test]
    fn approximation_agrees_at_the_switch() {
        for count in EXACT - 200..=EXACT {
            assert!(exact(count).abs_diff(normal(count)) <= 1, "{count}");
        }
        let (low, high) = median_ranks(1_000_000).unwrap();
        assert_eq!((low, high), (499_020, 500_981));
    }

    #[test]
    fn ranks_of_the_maximum_count() {
        let (low, high) = median_ranks(u64::MAX).unwrap();
        assert!(low <= high, "{low} {high}");
    }

    #[test]
    fn interval_covers_the_median_as_promised() {
        // A fixed seed, so that the share is the same in every run.
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
