//! Tests for warm-up on devices whose contexts are destroyed and created again at the same address.

use crate::harness::scenario;

/// Warm-up counts calls per device, regardless of the context.
#[test]
fn warmup_continues_in_another_context() {
    for name in ["warmup/two_contexts", "warmup/device_reset"] {
        let run = scenario(name, &[]).run();
        assert_eq!(run.site("warmup::warms_up").counts(), (1_010, 1_000, 0, 10), "{name}");
    }
}

mod simulated {
    use super::*;
    use crate::harness::Run;

    fn on_two(name: &str) -> Run {
        let run = scenario(name, &[]).simulated(|sim| sim.devices(2)).run();
        assert_eq!(run.fact("addresses"), 1);
        run
    }

    /// Returns the number of timed calls on each device.
    fn timed(run: &Run) -> [u64; 2] {
        let rows = &run.site("warmup::warms_up").series;
        ["cuda:0", "cuda:1"].map(|id| {
            let of_it = rows.iter().filter(|row| row.device == id && row.launch.is_none());
            of_it.map(|row| row.timed).sum()
        })
    }

    /// The warm-up calls reserved by a thread on one device do not apply to another.
    #[test]
    fn reused_address_on_another_device() {
        let run = on_two("warmup/one_thread");
        assert_eq!(run.site("warmup::warms_up").counts(), (2_020, 2_000, 0, 20));
        assert_eq!(timed(&run), [10, 10]);
    }

    /// Unused reserved calls are not given back to another device either.
    #[test]
    fn thread_ends_after_address_is_reused() {
        let run = on_two("warmup/two_threads");
        assert_eq!(run.site("warmup::warms_up").counts(), (1_012, 1_002, 0, 10));
        assert_eq!(timed(&run), [0, 10]);
    }
}
