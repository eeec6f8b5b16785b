//! Repeated looks at a growing series.

/// The probability with which the interval of a single look may miss the median.
const ERROR: f64 = 0.05;

/// Returns the probability with which the interval of the k-th look may miss the median.
///
/// It falls with the square of k, so that all looks together stay within a bound, wherever the run
/// stops (alpha spending: K. K. G. Lan and D. L. DeMets, "Discrete sequential boundaries for
/// clinical trials", 1983).
pub fn error_of_look(look: u32) -> f64 {
    ERROR / f64::from(look.max(1)).powi(2)
}
