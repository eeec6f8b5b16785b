//! Tests for opened calls with captures that never end, and with graphs that run nothing.

use gpu_time_sim_cupti::SimCupti;

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

/// Nothing later runs on their streams.
#[test]
fn graphs_on_new_streams_are_recorded_at_once() {
    let run = scenario("opened_graphs/new_streams", &[]).with_cupti().run();
    assert_eq!(run.fact("opened"), 100);
    assert_opened(&run, "serves_request", 100, 3.0);
}

mod simulated {
    use super::*;

    #[test]
    fn graph_whose_records_get_lost_is_lost() {
        let run = scenario("opened_graphs/alike", &[])
            .on_cupti(SimCupti::default().script("lose=5"))
            .run();
        let row = run.row("opened_graphs::launches_graph");
        let lost = row.lost("records");
        // Twelve of sixty records are lost, one of each call.
        assert_eq!((row.opened, row.all_lost(), lost), (8, 12, 12));
        assert_eq!(row.kernels.kernels_per_call, Some(3.0));
    }

    #[test]
    fn stream_at_reused_address_is_not_captured() {
        let run = scenario("opened_graphs/abandoned", &[]).with_cupti();
        assert_abandoned(&run.simulated(|sim| sim.model("reuses_streams=1")).run());
    }
}
