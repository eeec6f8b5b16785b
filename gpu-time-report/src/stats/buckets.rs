//! Buckets of times: narrow enough for the report, and few enough to count into for the lifetime of
//! a process.
//!
//! Resolution: 1 ns up to 2 µs, an error of at most 32 ns up to 1 ms, at most 0.2 % above, for
//! times from 1 ns to 73 minutes. Shorter and longer times are counted as the shortest and the
//! longest.

/// The number of octaves. Longer times share the last bucket: 2^42 ns are an hour and 13 minutes.
const OCTAVES: usize = 42;

/// Returns the bucket width, as a power of two, for an octave of times.
///
/// The width is 1 ns below 2 µs. It then is a thousandth of the time, up to 64 ns, which is two
/// steps of an event clock. It stays 64 ns up to 1 ms, and is 0.4 % of the time above. A value is
/// at most half a width from the middle of its bucket.
const fn shift(octave: usize) -> usize {
    match octave {
        0..=10 => 0,
        11..=16 => octave - 10,
        17..=19 => 6,
        _ => octave - 8,
    }
}

/// The first bucket of each octave, followed by the number of buckets.
const FIRST: [usize; OCTAVES + 1] = {
    let mut first = [0; OCTAVES + 1];
    let mut octave = 0;
    while octave < OCTAVES {
        first[octave + 1] = first[octave] + (1 << (octave - shift(octave)));
        octave += 1;
    }
    first
};

/// The number of buckets.
pub const BUCKETS: usize = FIRST[OCTAVES];

/// Returns the bucket of a time.
#[inline]
pub fn bucket(ns: f64) -> usize {
    // Rounds to nearest, like `round` but without a call. The cast saturates negative and large
    // values.
    let ns = ((ns + 0.5) as u64).clamp(1, (1 << OCTAVES) - 1);
    let octave = ns.ilog2() as usize;
    FIRST[octave] + ((ns - (1 << octave)) >> shift(octave)) as usize
}

/// Returns the middle of the times, in whole nanoseconds, that share a bucket.
pub fn middle(bucket: usize) -> f64 {
    let octave = FIRST.partition_point(|&first| first <= bucket).saturating_sub(1);
    let shift = shift(octave);
    let first = (1u64 << octave) + (((bucket - FIRST[octave]) as u64) << shift);
    first as f64 + ((1u64 << shift) - 1) as f64 / 2.0
}

/// Returns the width of the bucket of a time: closer times may look the same.
pub fn step_ns(ns: f64) -> f64 {
    let octave = FIRST.partition_point(|&first| first <= bucket(ns)).saturating_sub(1);
    (1u64 << shift(octave)) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn buckets_are_contiguous() {
        let mut next = 1;
        for b in 0..BUCKETS {
            assert_eq!(bucket(next as f64), b, "{next} ns");
            let half = middle(b) - next as f64;
            let last = next + (2.0 * half) as u64;
            assert_eq!(bucket(last as f64), b, "{last} ns");
            next = last + 1;
        }
        assert_eq!(next, 1 << OCTAVES);
    }

    #[test]
    fn step_ns_is_the_bucket_width() {
        for (ns, step) in [(0.0, 1.0), (2_000.0, 1.0), (2_050.0, 2.0), (100e3, 64.0), (2e6, 4096.0)]
        {
            assert_eq!(step_ns(ns), step, "{ns}");
        }
        for b in 1..BUCKETS - 1 {
            let (here, next) = (middle(b), middle(b + 1));
            assert_eq!(next - here, (step_ns(here) + step_ns(next)) / 2.0, "{here}");
        }
    }

    #[test]
    fn bucket_saturates_out_of_range() {
        assert_eq!(bucket(-1.0), 0);
        assert_eq!(bucket(0.0), 0);
        assert_eq!(bucket(f64::NAN), 0);
        assert_eq!(bucket(1e18), BUCKETS - 1);
        assert_eq!(bucket(f64::INFINITY), BUCKETS - 1);
    }

    proptest! {
        #[test]
        fn middle_is_within_the_promised_error(ns in 1.0f64..4e12) {
            let error = (middle(bucket(ns)) - ns).abs();
            let bound = if ns < 2000.0 { 0.5 } else if ns < 1e6 { 32.5 } else { 0.002 * ns };
            prop_assert!(error <= bound, "{error} at {ns}");
        }
    }
}
