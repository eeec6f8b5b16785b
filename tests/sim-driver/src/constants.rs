//! The model's constants: device and host times, sizes and feature flags for one NVIDIA H200 with
//! driver 580. Each can be overridden through `GPU_TIME_TEST_SIM_MODEL`.
//!
//! The comment on a measured constant names the measurement that it reproduces. Other constants are
//! marked "assumed".

macro_rules! constants {
    ($($(#[doc = $doc:literal])+ $name:ident = $value:expr;)+) => {
        /// The constants of the model.
        #[derive(Clone, Debug)]
        pub(crate) struct Constants {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        impl Default for Constants {
            fn default() -> Self {
                Self { $($name: $value,)+ }
            }
        }

        impl Constants {
            /// Sets the constant `key`. Returns `false` if it does not exist.
            pub fn set(&mut self, key: &str, value: u64) -> bool {
                match key {
                    $(stringify!($name) => self.$name = value,)+
                    _ => return false,
                }
                true
            }
        }
    };
}

constants! {
    /// Resolution of device times: `%globaltimer` and event times advance in steps of 32 ns.
    step_ns = 32;
    /// Time for which an event record occupies its stream: an empty pair reads 1.28 us.
    event_ns = 1_280;
    /// Extra time for a record with more than `queued_commands` commands behind it: with ten or
    /// more pairs queued, all but roughly the last eight read 0.6 us more.
    queued_extra_ns = 608;
    /// Threshold for `queued_extra_ns`: the commands for eight pairs around one kernel each.
    queued_commands = 24;
    /// Extra time for every record from `event_drift_at_ns` on, for tests of a drifting pair
    /// constant.
    event_drift_ns = 0;
    /// Device time from which `event_drift_ns` applies.
    event_drift_at_ns = 0;
    /// Extra time for every second pair of records on a stream, for tests of a pair constant that
    /// alternates between two values.
    event_twin_ns = 0;
    /// Device time from which `event_twin_ns` applies.
    event_twin_at_ns = 0;
    /// Amount by which the host clock goes back at `host_back_at_ns`.
    host_back_ns = 0;
    /// Virtual time at which the host clock goes back.
    host_back_at_ns = 0;
    /// Time for which a kernel, copy or memset occupies its stream in addition to its own length: a
    /// held empty kernel reads 2.75 us, and each further kernel in a pair adds its length plus
    /// about 0.9 us.
    gap_ns = 925;
    /// Like `gap_ns`, for graph nodes: ten one-element adds in a graph read 11.17 us.
    graph_gap_ns = 120;
    /// Delay from the end of a driver call until the device can start the command that it enqueued.
    /// Assumed: with `visible_ns`, a record and `cuEventSynchronize` take 5.6 us.
    submit_ns = 1_500;
    /// Upper bound on the jitter added to `submit_ns` for each command.
    submit_jitter_ns = 0;
    /// Delay from a device time until the host can see that it has passed ("a microsecond or two").
    visible_ns = 2_000;
    /// Extra cost of a `cuEventQuery` that finds the event done: 128 ns instead of 104 ns.
    done_query_extra_ns = 24;

    /// Length of an empty kernel, as reported by CUPTI.
    empty_ns = 545;
    /// Length of a spinning kernel in addition to its in-kernel time: CUPTI reports 1.696 us for a
    /// spin of 1.024 us.
    spin_extra_ns = 672;
    /// Length of a kernel that the model does not implement. Arbitrary.
    unknown_ns = 5_000;
    /// Fixed part of the length of kernels that move data. Fitted to the copy table.
    body_ns = 1_400;
    /// Bytes per nanosecond of such a kernel for data in the L2. Fitted to the copy table.
    hit_bytes_per_ns = 7_360;
    /// Like `hit_bytes_per_ns`, for data from memory. Fitted to the copy table.
    miss_bytes_per_ns = 3_850;
    /// Like `hit_bytes_per_ns`, for dirty data that has to be written back first. Fitted to the
    /// copy table.
    writeback_bytes_per_ns = 8_560;
    /// Bytes per nanosecond of the flush kernel. Assumed, slightly below the memory bandwidth.
    flush_bytes_per_ns = 4_000;
    /// Bytes per nanosecond of the kernel that discards lines: 24.8 us as measured by events,
    /// including a preceding 60 MiB memset.
    discard_bytes_per_ns = 14_000;
    /// Fixed part of the length of a memset: memsets of 60 and 120 MiB take 17 and 31 us.
    memset_ns = 800;
    /// Bytes per nanosecond of a memset, from the same two measurements.
    memset_bytes_per_ns = 4_494;
    /// Fixed part of the length of a copy between host and device. Assumed.
    transfer_ns = 1_400;
    /// Bytes per nanosecond of such a copy. Assumed (PCIe 5).
    transfer_bytes_per_ns = 50;
    /// Bytes per nanosecond of a copy between two devices. Assumed (NVLink 4).
    peer_bytes_per_ns = 400;

    /// Host time for a command that CUPTI has been asked to record: `cuLaunchKernel` takes 4.55 us
    /// instead of 4.12 us.
    recording_ns = 450;
    /// Extra device time of a kernel that CUPTI records, outside the times in its record: up to 320 ns on the
    /// H200. The default is 0, so that most tests have the same times with and without CUPTI.
    recorded_kernel_ns = 0;
    /// If not 0, a new stream gets the handle of the most recently destroyed stream, even while
    /// that stream's work is still running.
    reuses_streams = 0;
    /// Number of commands that fit into a queue behind the running one.
    queue_depth = 1_021;
    /// Size of the L2.
    l2_bytes = 62_914_560;
    /// Part of the L2 available to one working set: 15/16, the fraction that makes a "hot" copy of
    /// 30 MiB (a footprint of the whole L2) as slow as measured.
    l2_usable_bytes = 58_982_400;
    /// Cycles to read a line that is in the L2: the measured median.
    l2_hit_cycles = 307;
    /// Cycles to read a line that is not in the L2.
    l2_miss_cycles = 695;
    /// 1 if discarding a line removes it from the L2.
    l2_discards = 1;
    /// 1 if a command that does not fit into a mostly free L2 keeps earlier commands' lines.
    l2_fills_free = 0;
    /// Default limit on persisting lines, in sixteenths of the L2.
    persisting_sixteenths = 3;
    /// SM clock, used to convert between cycles and time.
    sm_khz = 1_980_000;
    /// Number of SMs.
    sm_count = 132;
    /// Compute capability times ten.
    compute_capability = 90;
    /// Device memory: about 139 GiB.
    memory_bytes = 149_250_113_536;
    /// Result returned by `cuDriverGetVersion`.
    driver_version = 13_000;
    /// 1 if the device has memory pools, which decides how `cudarc` allocates.
    memory_pools = 1;
    /// Real time in milliseconds for which a wait on a hung stream blocks before it fails with 719.
    hang_limit_ms = 5_000;
}

impl Constants {
    /// Returns the device time at which a command enqueued at `enqueued` can start. The jitter is
    /// pseudo-random but identical in every run: the last step of SplitMix64.
    pub fn visible_to_device(&self, enqueued: u64) -> u64 {
        let mixed = (enqueued ^ enqueued >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let jitter = (mixed ^ mixed >> 31) % (self.submit_jitter_ns + 1);
        self.round_up(enqueued + self.submit_ns + jitter)
    }

    /// Rounds `ns` up to the device time resolution.
    pub fn round_up(&self, ns: u64) -> u64 {
        ns.next_multiple_of(self.step_ns.max(1))
    }

    /// Returns the time for `bytes` at `bytes_per_ns`, in nanoseconds, rounded down.
    pub fn at_rate(bytes: u64, bytes_per_ns: u64) -> u64 {
        bytes / bytes_per_ns.max(1)
    }
}

/// Overrides for the built-in host costs, `cost.<function>=<ns>`, and for the lengths of kernels, `kernel.<name>=<ns>`.
#[derive(Default)]
pub(crate) struct Costs {
    calls: Vec<(String, u64)>,
    kernels: Vec<(String, u64)>,
}

impl Costs {
    /// Returns the host cost for a call of `function`.
    pub fn of(&self, function: &str, built_in: u64) -> u64 {
        // Empty unless a test overrides a cost, so a linear scan is cheapest.
        self.calls.iter().find(|(name, _)| name == function).map_or(built_in, |(_, ns)| *ns)
    }

    /// Returns the length of a kernel, if it is given. A name also stands for the C++ functions of that name.
    pub fn of_kernel(&self, kernel: &str) -> Option<u64> {
        let is_it = |name: &str| {
            kernel == name
                || kernel.starts_with("_Z") && kernel.contains(&format!("{}{name}", name.len()))
        };
        self.kernels.iter().find(|(name, _)| is_it(name)).map(|(_, ns)| *ns)
    }
}

/// Parses `key=value,…`, where a key is a constant's name, `cost.<function>` or `kernel.<name>`.
pub(crate) fn parse(text: &str) -> Result<(Constants, Costs), String> {
    let mut constants = Constants::default();
    let mut costs = Costs::default();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let (key, value) = item
            .split_once('=')
            .ok_or_else(|| format!("invalid model entry `{item}`: expected `key=value`"))?;
        let value: u64 = value
            .replace('_', "")
            .parse()
            .map_err(|_| format!("invalid value `{value}` for `{key}`: expected a whole number"))?;
        match key.split_once('.') {
            Some(("cost", function)) => costs.calls.push((function.to_owned(), value)),
            Some(("kernel", name)) => costs.kernels.push((name.to_owned(), value)),
            None if constants.set(key, value) => {}
            _ => return Err(format!("unknown constant `{key}`")),
        }
    }
    Ok((constants, costs))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn kernel_has_the_given_length_under_its_own_and_its_mangled_name() {
        let (_, costs) = parse("kernel.saxpy=40_000").unwrap();
        for (name, length) in [
            ("saxpy", Some(40_000)),
            ("_Z5saxpyifPKfPf", Some(40_000)),
            ("_ZN3net5saxpyIfEEvPT_", Some(40_000)),
            ("daxpy", None),
            ("_Z6saxpy2v", None),
        ] {
            assert_eq!(costs.of_kernel(name), length, "{name}");
        }
        assert!(parse("kernels=1").is_err() && parse("kern.saxpy=1").is_err());
    }
}
