//! Quantiles of sorted samples.

/// Returns the sample at the quantile `share`, from 0 to 1, or `None` if there are no samples.
pub(crate) fn quantile<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let at = (sorted.len().checked_sub(1)? as f64 * share.clamp(0.0, 1.0)).round();
    sorted.get(at as usize).copied()
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles_of_eleven_samples() {
        let sorted: Vec<u32> = (0..11).collect();
        let of = |share| quantile(&sorted, share);
        assert_eq!([0.0, 0.25, 0.5, 0.9, 1.0, 2.0].map(of), [0, 3, 5, 9, 10, 10].map(Some));
        assert_eq!(quantile::<f64>(&[], 0.5), None);
    }
}
