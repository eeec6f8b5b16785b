//! The logarithm of the ratio of two times, as far as measurements tell it.

/// The probability with which an interval may miss the truth, and with which any of the verdicts on
/// several ratios may be false.
pub const ALPHA: f64 = 0.05;

/// The logarithm of a ratio, and how well it is known.
pub trait LogRatio {
    /// Returns the most likely value.
    fn estimate(&self) -> f64;

    /// Returns the interval that misses the truth with probability [`ALPHA`], or `None` with too few
    /// measurements.
    fn interval(&self) -> Option<[f64; 2]>;

    /// Returns a p-value of the hypothesis that the logarithm is `truth`.
    fn p_value(&self, truth: f64) -> f64;
}
