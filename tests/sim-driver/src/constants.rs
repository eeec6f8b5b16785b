//! The numbers of the model, each overridable through `GPU_TIME_TEST_SIM_MODEL`.
//!
//! Where a number was measured, the doc comment says what it reproduces; "assumed" marks the rest.
//! All of them describe one NVIDIA H200 with driver 580.

macro_rules! constants {
    ($($(#[doc = $doc:literal])+ $name:ident = $value:expr;)+) => {
        /// The numbers of the model.
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
            /// Sets the constant `key`, and answers whether there is one of that name.
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
    /// Device times are multiples of this: `%globaltimer` and event times step by 32 ns.
    step_ns = 32;
    /// What an event record occupies its stream for: an empty pair reads 1.28 us.
    event_ns = 1_280;
    /// What a record takes longer while much is behind it: with ten pairs and more queued, all but
    /// the last eight or so read 0.6 us more.
    queued_extra_ns = 608;
    /// How many commands are much: eight pairs around a kernel.
    queued_commands = 24;
    /// What a record takes longer from `event_drift_at_ns` on: a constant that moves. Nothing.
    event_drift_ns = 0;
    /// The device time from which on it does.
    event_drift_at_ns = 0;
    /// What every second pair of records on a stream reads more: a constant of two values that take turns.
    /// Nothing.
    event_twin_ns = 0;
    /// The device time from which on it does.
    event_twin_at_ns = 0;
    /// By how much the host's clock steps back at `host_back_at_ns`. Not at all.
    host_back_ns = 0;
    /// The virtual time at which it does.
    host_back_at_ns = 0;
    /// What a kernel, copy or memset occupies its stream for beyond its own length: a held empty
    /// kernel reads 2.75 us, and each further kernel in a pair adds about 0.9 us to its length.
    gap_ns = 925;
    /// The same between the nodes of a graph: ten one-element adds in a graph read 11.17 us.
    graph_gap_ns = 120;
    /// From the end of a driver call until the device can start what it enqueued. Assumed: with
    /// `visible_ns` it makes a record and `cuEventSynchronize` 5.6 us.
    submit_ns = 1_500;
    /// What that may take longer, each time anew. Nothing.
    submit_jitter_ns = 0;
    /// From a device time until the host can see that it has passed ("a microsecond or two").
    visible_ns = 2_000;
    /// What `cuEventQuery` costs more if it answers that the event is done: 128 ns, not 104.
    done_query_extra_ns = 24;

    /// Length of an empty kernel as CUPTI dates it.
    empty_ns = 545;
    /// What CUPTI says of a spinning kernel beyond its in-kernel time: 1.024 us spin, 1.696 us.
    spin_extra_ns = 672;
    /// Length of a kernel that the model does not know. Arbitrary.
    unknown_ns = 5_000;
    /// Length of a kernel that moves data, before the bytes. Fitted to the copy table.
    body_ns = 1_400;
    /// Bytes a nanosecond that such a kernel finds in the L2. Fitted to the copy table.
    hit_bytes_per_ns = 7_360;
    /// The same for bytes that come from memory.
    miss_bytes_per_ns = 3_850;
    /// The same for dirty bytes that have to be written back first.
    writeback_bytes_per_ns = 8_560;
    /// Bytes a nanosecond of the flush kernel. Assumed, a little under the memory's rate.
    flush_bytes_per_ns = 4_000;
    /// Bytes a nanosecond of the kernel that discards lines: with a memset of 60 MiB before it 24.8 us by
    /// events.
    discard_bytes_per_ns = 14_000;
    /// A memset before the bytes: memsets of 60 and 120 MiB take 17 and 31 us.
    memset_ns = 800;
    /// Bytes a nanosecond of a memset, from the same two.
    memset_bytes_per_ns = 4_494;
    /// A copy between host and device before the bytes. Assumed.
    transfer_ns = 1_400;
    /// Bytes a nanosecond over the bus. Assumed (PCIe 5).
    transfer_bytes_per_ns = 50;
    /// Bytes a nanosecond from device to device. Assumed (NVLink 4).
    peer_bytes_per_ns = 400;

    /// Commands that enqueue freely behind the one that runs.
    queue_depth = 1_021;
    /// Size of the L2.
    l2_bytes = 62_914_560;
    /// How much of it one working set can use: 15/16, the share that makes a "hot" copy of 30 MiB
    /// (a footprint of the whole L2) as slow as it was measured.
    l2_usable_bytes = 58_982_400;
    /// What reading a line that the L2 holds takes, in cycles: the median of such reads.
    l2_hit_cycles = 307;
    /// The same of a line that it does not hold.
    l2_miss_cycles = 695;
    /// Whether a line that is discarded leaves it.
    l2_discards = 1;
    /// Whether what does not fit an L2 that is mostly free leaves what was there.
    l2_fills_free = 0;
    /// How many sixteenths of the L2 persisting lines may take where the program has not said.
    persisting_sixteenths = 3;
    /// Clock of the SMs, for bounds in cycles.
    sm_khz = 1_980_000;
    /// Number of SMs.
    sm_count = 132;
    /// Compute capability, times ten.
    compute_capability = 90;
    /// Memory of a device. About 139 GiB.
    memory_bytes = 149_250_113_536;
    /// What `cuDriverGetVersion` answers.
    driver_version = 13_000;
    /// Whether the device has memory pools, which decides how `cudarc` allocates.
    memory_pools = 1;
    /// How long a wait for a hung stream blocks, in real milliseconds, before it answers 719.
    hang_limit_ms = 5_000;
}

impl Constants {
    /// The device time at which it can start what was enqueued by then. The jitter is the same in every
    /// run, and otherwise as good as random: the last step of SplitMix64.
    pub fn heard_at(&self, enqueued: u64) -> u64 {
        let mixed = (enqueued ^ enqueued >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        let jitter = (mixed ^ mixed >> 31) % (self.submit_jitter_ns + 1);
        self.round_up(enqueued + self.submit_ns + jitter)
    }

    /// The next multiple of the step at or after `ns`.
    pub fn round_up(&self, ns: u64) -> u64 {
        ns.next_multiple_of(self.step_ns.max(1))
    }

    /// `bytes` at `bytes_per_ns`, in whole nanoseconds, rounded down.
    pub fn at_rate(bytes: u64, bytes_per_ns: u64) -> u64 {
        bytes / bytes_per_ns.max(1)
    }
}

/// Host costs that differ from the built-in ones: `cost.<function>=<ns>`.
#[derive(Default)]
pub(crate) struct Costs(Vec<(String, u64)>);

impl Costs {
    /// What a call of `function` costs the host.
    pub fn of(&self, function: &str, built_in: u64) -> u64 {
        // Empty unless a test asked for something, so a scan is the cheapest.
        self.0.iter().find(|(name, _)| name == function).map_or(built_in, |(_, ns)| *ns)
    }
}

/// Reads `key=value,…`: a constant, or `cost.<function>`.
pub(crate) fn parse(text: &str) -> Result<(Constants, Costs), String> {
    let mut constants = Constants::default();
    let mut costs = Costs::default();
    for item in text.split(',').map(str::trim).filter(|item| !item.is_empty()) {
        let (key, value) =
            item.split_once('=').ok_or_else(|| format!("`{item}` is not `key=value`"))?;
        let value: u64 = value
            .replace('_', "")
            .parse()
            .map_err(|_| format!("`{value}` in `{item}` is not a whole number"))?;
        match key.strip_prefix("cost.") {
            Some(function) => costs.0.push((function.to_owned(), value)),
            None if constants.set(key, value) => {}
            None => return Err(format!("there is no constant `{key}`")),
        }
    }
    Ok((constants, costs))
}
