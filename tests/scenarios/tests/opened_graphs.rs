//! Tests for opened calls with captures that never end, and with graphs that run nothing.

use crate::harness::{Run, scenario};

/// Asserts that all calls of a function were opened, with this many kernels each.
#[track_caller]
fn assert_opened(run: &Run, name: &str, calls: u64, kernels: f64) {
    let row = run.row(&format!("opened_graphs::{name}"));
    assert_eq!((row.opened, row.all_lost()), (calls, 0), "{name}: {:?}", row.lost);
    assert_eq!(row.kernels.kernels_per_call, Some(kernels), "{name}");
}

/// Work that a call captures is not part of the call, whether the capture ends or not.
#[track_caller]
fn assert_abandoned(run: &Run) {
    assert_opened(run, "abandons", 20, 2.0);
    assert_opened(run, "on_new_stream", 20, 1.0);
    assert_opened(run, "captures", 1, 1.0);
}

#[test]
fn captures_of_destroyed_streams_are_forgotten() {
    assert_abandoned(&scenario("opened_graphs/abandoned", &[]).with_cupti().run());
}

#[test]
fn empty_graph_is_not_lost() {
    let run = scenario("opened_graphs/empty", &[]).with_cupti().run();
    assert_opened(&run, "launches_graph", 11, 0.0);
    assert_opened(&run, "launches_kernel_too", 10, 1.0);
}

mod simulated {
    use super::*;

    #[test]
    fn stream_at_reused_address_is_not_captured() {
        let run = scenario("opened_graphs/abandoned", &[]).with_cupti();
        assert_abandoned(&run.simulated(|sim| sim.model("reuses_streams=1")).run());
    }
}
