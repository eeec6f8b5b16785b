//! Warm-up on devices whose contexts go and come back at the same address.

use crate::harness::scenario;

/// It is the device that did so many calls, whichever context they came with.
#[test]
fn another_context_of_the_device() {
    for name in ["warmup/two_contexts", "warmup/reset"] {
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

    /// The calls timed on each device.
    fn timed(run: &Run) -> [u64; 2] {
        let rows = &run.site("warmup::warms_up").series;
        ["cuda:0", "cuda:1"].map(|id| {
            let of_it = rows.iter().filter(|row| row.device == id && row.launch.is_none());
            of_it.map(|row| row.timed).sum()
        })
    }

    /// What a thread may still do unasked on one device, it does not do on another.
    #[test]
    fn another_devices_context_has_the_address() {
        let run = on_two("warmup/one_thread");
        assert_eq!(run.site("warmup::warms_up").counts(), (2_020, 2_000, 0, 20));
        assert_eq!(timed(&run), [10, 10]);
    }

    /// Nor is it given back to another one.
    #[test]
    fn a_thread_ends_when_another_devices_context_has_the_address() {
        let run = on_two("warmup/two_threads");
        assert_eq!(run.site("warmup::warms_up").counts(), (1_012, 1_002, 0, 10));
        assert_eq!(timed(&run), [0, 10]);
    }
}
