//! A device of the report.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::FlushProof;

/// What is known of a device that something was timed on. What does not apply or was not measured is
/// `None`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Device {
    #[doc(hidden)]
    pub id: String,
    #[doc(hidden)]
    pub name: String,
    #[doc(hidden)]
    pub driver: Option<String>,
    #[doc(hidden)]
    pub l2_bytes: Option<u64>,
    #[doc(hidden)]
    pub peak_gb_per_s: Option<f64>,
    #[doc(hidden)]
    pub event_step_ns: Option<f64>,
    #[doc(hidden)]
    pub event_floor_ns: Option<f64>,
    #[doc(hidden)]
    pub event_held_empty_ns: Option<f64>,
    #[doc(hidden)]
    pub event_queued_empty_ns: Option<f64>,
    #[doc(hidden)]
    pub event_bias_ns: Option<f64>,
    #[doc(hidden)]
    pub event_bias_source: Option<String>,
    #[doc(hidden)]
    pub event_bias_error_ns: Option<f64>,
    #[doc(hidden)]
    pub fed_margin_ns: Option<f64>,
    #[doc(hidden)]
    pub flush_bytes: Option<u64>,
    #[doc(hidden)]
    pub flush_proof: Option<FlushProof>,
    #[doc(hidden)]
    pub clocks: Option<Clocks>,
    #[doc(hidden)]
    pub throttle: Option<BTreeMap<String, Option<u64>>>,
    #[doc(hidden)]
    pub temperature_c: Option<u32>,
    #[doc(hidden)]
    pub power_w: Option<f64>,
    #[doc(hidden)]
    pub persistence: Option<bool>,
    #[doc(hidden)]
    pub mig: Option<bool>,
    #[doc(hidden)]
    pub mps: Option<bool>,
    #[doc(hidden)]
    pub other_processes: Option<u32>,
    #[doc(hidden)]
    pub warnings: Vec<String>,
}

impl Device {
    /// A device of which only the name is known.
    #[doc(hidden)]
    pub fn new(id: String, name: String) -> Device {
        Device {
            id,
            name,
            driver: None,
            l2_bytes: None,
            peak_gb_per_s: None,
            event_step_ns: None,
            event_floor_ns: None,
            event_held_empty_ns: None,
            event_queued_empty_ns: None,
            event_bias_ns: None,
            event_bias_source: None,
            event_bias_error_ns: None,
            fed_margin_ns: None,
            flush_bytes: None,
            flush_proof: None,
            clocks: None,
            throttle: None,
            temperature_c: None,
            power_w: None,
            persistence: None,
            mig: None,
            mps: None,
            other_processes: None,
            warnings: Vec::new(),
        }
    }

    /// The host, whose clock told the time where there was no stream.
    #[doc(hidden)]
    pub fn host() -> Device {
        Device::new("host".to_owned(), "host clock".to_owned())
    }

    /// `cuda:N`, or `host`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The name that the driver gives it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The newest version of CUDA that the driver supports, such as `13.0`; not the driver's own version.
    pub fn driver(&self) -> Option<&str> {
        self.driver.as_deref()
    }

    /// The size of the L2 cache that the driver reports, in bytes.
    pub fn l2_bytes(&self) -> Option<u64> {
        self.l2_bytes
    }

    /// The peak bandwidth of its memory in gigabytes (10⁹ bytes) a second: two transfers in each cycle
    /// of the memory clock over the whole bus, both as the driver reports them.
    pub fn peak_gb_per_s(&self) -> Option<f64> {
        self.peak_gb_per_s
    }

    /// The step in which event times advance, in nanoseconds.
    pub fn event_step_ns(&self) -> Option<f64> {
        self.event_step_ns
    }

    /// What two events with nothing between them read, in nanoseconds: behind a hold, where that could be
    /// measured, so that no time of the host's is in it.
    pub fn event_floor_ns(&self) -> Option<f64> {
        self.event_floor_ns
    }

    /// What two events read around a kernel that does nothing, alone behind a hold, in nanoseconds.
    pub fn event_held_empty_ns(&self) -> Option<f64> {
        self.event_held_empty_ns
    }

    /// The same with a long queue behind, in nanoseconds.
    pub fn event_queued_empty_ns(&self) -> Option<f64> {
        self.event_queued_empty_ns
    }

    /// What is subtracted from a raw time for each bracket, in nanoseconds.
    pub fn event_bias_ns(&self) -> Option<f64> {
        self.event_bias_ns
    }

    /// Where the bias comes from. `table` and `cupti`: [`event_held_empty_ns`](Self::event_held_empty_ns)
    /// less what CUPTI says of an empty kernel, by a table of GPUs or as `GPU_TIME_BIAS=cupti:…` says;
    /// `floor`: the empty pair alone; `user`: `GPU_TIME_BIAS`.
    pub fn event_bias_source(&self) -> Option<&str> {
        self.event_bias_source.as_deref()
    }

    /// How far the bias may be off, in nanoseconds: the spread of what was measured, a step of the device's
    /// clock, and what a long queue behind a bracket adds, since a sample does not tell whether there was one. With the source
    /// `floor` also all that a held empty kernel adds to an empty pair. For what could not be measured
    /// stands what is known of an H200. `None` while the source is `user`.
    pub fn event_bias_error_ns(&self) -> Option<f64> {
        self.event_bias_error_ns
    }

    /// A sample without a hold counts as fed if the GPU reached its start later, by this many
    /// nanoseconds at least, than it would have reached the stop had it been idle. `None` while the
    /// clocks of host and device are not aligned: then nothing but a hold proves a sample fed.
    pub fn fed_margin_ns(&self) -> Option<f64> {
        self.fed_margin_ns
    }

    /// How much is read or written to evict the L2, in bytes; the larger figure where both are done.
    pub fn flush_bytes(&self) -> Option<u64> {
        self.flush_bytes
    }

    /// What the flush was seen to evict. `None` if there was no flush, or nothing could be seen.
    pub fn flush_proof(&self) -> Option<&FlushProof> {
        self.flush_proof.as_ref()
    }

    /// Its clocks. `None`, as what follows, without the feature `nvml`, and where NVML would not say.
    pub fn clocks(&self) -> Option<&Clocks> {
        self.clocks.as_ref()
    }

    /// Why its clocks were lowered between its first use and the report, by the names of `nvidia-smi`,
    /// and for how long, in nanoseconds. `None` where the driver does not count the time, and it was
    /// seen at one of these two moments; a reason that it does count is there with 0 as well.
    pub fn throttle(&self) -> impl Iterator<Item = (&str, Option<u64>)> + '_ {
        self.throttle.iter().flatten().map(|(reason, held)| (reason.as_str(), *held))
    }

    /// Its temperature at the report, in degrees Celsius.
    pub fn temperature_c(&self) -> Option<u32> {
        self.temperature_c
    }

    /// What it drew at the report, in watts.
    pub fn power_w(&self) -> Option<f64> {
        self.power_w
    }

    /// Whether persistence mode is on.
    pub fn persistence(&self) -> Option<bool> {
        self.persistence
    }

    /// Whether it is divided by MIG.
    pub fn mig(&self) -> Option<bool> {
        self.mig
    }

    /// Whether processes share it through MPS.
    pub fn mps(&self) -> Option<bool> {
        self.mps
    }

    /// How many other processes had a compute context on it, at its first use or at the report. Where
    /// the id of this one is not among them, as in a container, one of them is taken to be it.
    pub fn other_processes(&self) -> Option<u32> {
        self.other_processes
    }

    /// What makes its figures doubtful.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// The clocks of a device in MHz, when it was first used and when the report was made. What NVML would
/// not say is `None`. They are those of the moment: a GPU that does nothing lowers its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    #[doc(hidden)]
    pub sm_start_mhz: Option<u32>,
    #[doc(hidden)]
    pub sm_end_mhz: Option<u32>,
    #[doc(hidden)]
    pub sm_max_mhz: Option<u32>,
    #[doc(hidden)]
    pub mem_start_mhz: Option<u32>,
    #[doc(hidden)]
    pub mem_end_mhz: Option<u32>,
    #[doc(hidden)]
    pub mem_max_mhz: Option<u32>,
}

impl Clocks {
    /// The SM clock at the first use: at work, unless the device still said that it was idle.
    pub fn sm_start_mhz(&self) -> Option<u32> {
        self.sm_start_mhz
    }

    /// The SM clock at the report.
    pub fn sm_end_mhz(&self) -> Option<u32> {
        self.sm_end_mhz
    }

    /// The highest SM clock that there is.
    pub fn sm_max_mhz(&self) -> Option<u32> {
        self.sm_max_mhz
    }

    /// The memory clock at the first use: at work, unless the device still said that it was idle.
    pub fn mem_start_mhz(&self) -> Option<u32> {
        self.mem_start_mhz
    }

    /// The memory clock at the report.
    pub fn mem_end_mhz(&self) -> Option<u32> {
        self.mem_end_mhz
    }

    /// The highest memory clock that there is.
    pub fn mem_max_mhz(&self) -> Option<u32> {
        self.mem_max_mhz
    }
}
