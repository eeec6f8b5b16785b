//! Ranks of a confidence interval of the median.

/// The maximum count for which the binomial probabilities are added up. Above it, the normal
/// approximation is as good.
const EXACT: f64 = 1000.0;

/// Returns the rank, from 1, of the lower end of an interval that misses the median of `count`
/// sorted values with a probability of at most `error`. The upper end has the same rank from above.
/// Returns `None` if even the extremes miss it more often: at 5 %, with fewer than 6 values.
///
/// Assumes only that the values are independent, not how they are distributed: each lies below the
/// median with probability one half, so the number below it is binomial. The rank is interpolated
/// between whole ones (Hettmansperger and Sheather, "Confidence intervals based on interpolated
/// order statistics", 1986), because an interval of whole ranks contains the median too often.
pub fn median_rank(count: f64, error: f64) -> Option<f64> {
    if count > EXACT {
        return Some((count + 1.0 - normal_quantile(error) * count.sqrt()) / 2.0);
    }
    let count = count.floor();
    let mut term = 0.5f64.powf(count);
    // The probabilities of missing the median with this rank, and with the next one.
    let (mut rank, mut missed) = (1.0, 2.0 * term);
    if missed > error {
        return None;
    }
    loop {
        term *= (count - rank + 1.0) / rank;
        let next = missed + 2.0 * term;
        if next > error {
            let step = (error - missed) / (next - missed);
            return Some(rank + (count - rank) * step / (rank + (count - 2.0 * rank) * step));
        }
        (rank, missed) = (rank + 1.0, next);
    }
}

/// Returns the distance in standard deviations that a normal variable exceeds, on either side, with
/// a probability of `error`.
///
/// From M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions", 26.2.23: exact to 4.5e-4.
pub fn normal_quantile(error: f64) -> f64 {
    let t = (-2.0 * (error / 2.0).ln()).sqrt();
    let above = 2.515_517 + t * (0.802_853 + t * 0.010_328);
    let below = 1.0 + t * (1.432_788 + t * (0.189_269 + t * 0.001_308));
    t - above / below
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The published tables list whole ranks: the interpolated ones rounded down.
    #[test]
    fn ranks_agree_with_published_tables() {
        for few in 0..=5 {
            assert_eq!(median_rank(few.into(), 0.05), None);
        }
        for (count, whole) in [(6, 1.0), (10, 2.0), (20, 6.0), (100, 40.0)] {
            let rank = median_rank(count.into(), 0.05).unwrap();
            assert_eq!(rank.floor(), whole, "{count}: {rank}");
        }
    }

    #[test]
    fn approximation_agrees_at_the_switch() {
        for error in [0.05, 0.05 / 9.0] {
            let [exact, normal] = [EXACT, EXACT + 1.0].map(|n| median_rank(n, error).unwrap());
            assert!((exact - normal).abs() < 1.0, "{exact} {normal}");
        }
        let rank = median_rank(1e6, 0.05).unwrap();
        assert!((rank - 499_020.5).abs() < 0.5, "{rank}");
    }

    #[test]
    fn normal_quantile_agrees_with_published_tables() {
        for (error, quantile) in [(0.05, 1.9600), (0.01, 2.5758), (1e-4, 3.8906), (1e-6, 4.8916)] {
            let found = normal_quantile(error);
            assert!((found - quantile).abs() < 1e-3, "{error}: {found}");
        }
    }

    #[test]
    fn rank_of_the_maximum_count_is_finite() {
        let rank = median_rank(u64::MAX as f64, 0.05).unwrap();
        assert!(rank > 0.0 && rank <= u64::MAX as f64 / 2.0, "{rank}");
    }
}
