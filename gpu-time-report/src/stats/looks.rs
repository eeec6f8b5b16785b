//! The error of repeated looks at a growing series.

/// The probability with which the interval of a single look may miss the median.
const FIRST: f64 = 0.05;

/// The probability for the k-th look, times k². The probability that any later look misses the
/// median is at most 1.3 %.
const LATER: f64 = 0.02;

/// Returns the probability with which the interval of the k-th look may miss the median.
///
/// It falls with the square of k, so that the sum over all looks is bounded, no matter when the run
/// stops (alpha spending: K. K. G. Lan and D. L. DeMets, "Discrete sequential boundaries for
/// clinical trials", 1983).
pub fn error_of_look(look: u32) -> f64 {
    if look <= 1 { FIRST } else { LATER / f64::from(look).powi(2) }
}
