//! How times changed while a program ran: every series has a time line, which the harness compares with
//! its counts. Here its moments are those of the calls.

use crate::harness::{Run, scenario};

/// When the first and the last slot begin, and how wide a slot is.
fn ends(run: &Run, name: &str) -> [u64; 3] {
    let line = run.row(name).timeline.as_ref().unwrap_or_else(|| panic!("`{name}` has none"));
    let begin = |index: u64| line.origin_ns + index * line.width_ns;
    [begin(line.slots[0].0), begin(line.slots[line.slots.len() - 1].0), line.width_ns]
}

#[test]
fn samples_are_where_their_calls_were() {
    let run = scenario("course/paced", &[]).run();
    // Between barriers no sample is starved, so all of them are there.
    let [first, last, width] = ends(&run, "course::sync");
    // 19 pauses of 10 ms, each of which ends later than asked for rather than sooner.
    assert!(last + width - first >= 190_000_000, "{:?}", run.row("course::sync").timeline);
    for name in ["course::one", "course::two"] {
        let [one_first, one_last, one_width] = ends(&run, name);
        let row = run.row(name);
        assert!(one_first + one_width + width >= first && one_last <= last + width, "{row:?}");
    }
    let [first, last, width] = ends(&run, "course::host");
    assert!(last + width - first >= 19_000_000, "{:?}", run.row("course::host").timeline);
    assert!(last < run.report().process.wall_ns);
}

mod simulated {
    use super::*;

    #[test]
    fn they_are_so_to_the_width_of_a_slot() {
        let run = scenario("course/paced", &[]).simulated(|sim| sim).run();
        let [first, last, width] = ends(&run, "course::sync");
        let apart = (last - first).abs_diff(190_000_000);
        // And 19 times what the calls themselves take.
        assert!(apart <= width + 19 * 200_000, "{apart}");
        assert_eq!(
            run.row("course::sync").timeline.as_ref().map(|line| line.slots.len()),
            Some(20)
        );
    }
}
