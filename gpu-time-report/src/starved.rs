//! The part of a total time that starved samples make up.

/// The maximum part of a total that may be waits of the GPU without a mark.
const FEW: f64 = 0.05;

/// Returns `true` if starved samples make up at most 5 % of a total. A total of which they make up
/// more is only an upper bound.
pub fn are_few(starved_ns: f64, total_ns: f64) -> bool {
    starved_ns <= FEW * total_ns
}
