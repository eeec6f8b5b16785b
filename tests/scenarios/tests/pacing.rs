//! Tests for sample timelines. The harness compares every timeline with the series' counts; these
//! tests compare its times with those of the calls.

use crate::harness::{Run, scenario};

/// Returns the start times of the first and the last slot, and the slot width.
fn ends(run: &Run, name: &str) -> [u64; 3] {
    let timeline =
        run.row(name).timeline.as_ref().unwrap_or_else(|| panic!("no timeline for `{name}`"));
    let begin = |index: u64| timeline.origin_ns + index * timeline.width_ns;
    [
        begin(timeline.slots[0].0),
        begin(timeline.slots[timeline.slots.len() - 1].0),
        timeline.width_ns,
    ]
}

#[test]
fn timeline_matches_call_times() {
    let run = scenario("pacing/fixed_pause", &[]).run();
    // With barriers, no sample is starved, so all samples are included.
    let [first, last, width] = ends(&run, "pacing::sync");
    // There are 19 pauses of 10 ms, each of which may last longer than requested.
    assert!(last + width - first >= 190_000_000, "{:?}", run.row("pacing::sync").timeline);
    for name in ["pacing::one", "pacing::two"] {
        let [one_first, one_last, one_width] = ends(&run, name);
        let row = run.row(name);
        assert!(one_first + one_width + width >= first && one_last <= last + width, "{row:?}");
    }
    let [first, last, width] = ends(&run, "pacing::host");
    assert!(last + width - first >= 19_000_000, "{:?}", run.row("pacing::host").timeline);
    assert!(last < run.report().process.wall_ns);
}

mod simulated {
    use super::*;

    #[test]
    fn timeline_accurate_to_one_slot() {
        let run = scenario("pacing/fixed_pause", &[]).simulated(|sim| sim).run();
        let [first, last, width] = ends(&run, "pacing::sync");
        let apart = (last - first).abs_diff(190_000_000);
        // Plus the duration of 19 rounds of calls.
        assert!(apart <= width + 19 * 200_000, "{apart}");
        assert_eq!(
            run.row("pacing::sync").timeline.as_ref().map(|timeline| timeline.slots.len()),
            Some(20)
        );
    }
}
