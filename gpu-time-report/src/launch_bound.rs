//! Launch-bound calls: the GPU waited during them, because the host was still enqueueing work.

use crate::units;

/// The minimum share of a call's span that the GPU waits for the host in a launch-bound call.
const MIN_WAITED: f64 = 0.05;

/// Returns `true` if calls in which the GPU waited this long within their span are launch-bound.
pub(crate) fn is_launch_bound(waited_ns: f64, span_ns: f64) -> bool {
    waited_ns > 0.0 && waited_ns >= MIN_WAITED * span_ns
}

/// Describes how long the GPU was busy with a launch-bound call, and how long the host took to
/// enqueue it.
pub(crate) fn both_sides([busy_ns, span_ns, host_ns]: [f64; 3], kernels: f64) -> String {
    let count = if (kernels - kernels.round()).abs() < 0.05 {
        format!("{kernels:.0}")
    } else {
        format!("{kernels:.1}")
    };
    let noun = if count == "1" { "kernel" } else { "kernels" };
    format!(
        "GPU busy {} of {}; host spent {} enqueueing {count} {noun}",
        units::Unit::of(span_ns).number(busy_ns),
        units::time(span_ns),
        units::time(host_ns),
    )
}

#[cfg(test)]
mod tests {
    use super::both_sides;

    #[test]
    fn both_sides_count_kernels() {
        let sides = |kernels| both_sides([4_290.0, 24_040.0, 40_020.0], kernels);
        assert_eq!(
            sides(1.0),
            "GPU busy 4.290 of 24.04 µs; host spent 40.02 µs enqueueing 1 kernel"
        );
        assert!(sides(87.02).ends_with(" 87 kernels") && sides(2.5).ends_with(" 2.5 kernels"));
    }
}
