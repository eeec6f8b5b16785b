//! Devices in the report.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Coverage, FlushProof};

/// A device on which something was timed. A value is `None` if it does not apply or was not
/// measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Device {
    #[doc(hidden)]
    pub id: String,
    #[doc(hidden)]
    pub name: String,
    #[doc(hidden)]
    pub driver: Option<String>,
    #[serde(default)]
    #[doc(hidden)]
    pub driver_release: Option<String>,
    #[serde(default)]
    #[doc(hidden)]
    pub uuid: Option<String>,
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
    #[serde(default)]
    pub event_inner_ns: Option<f64>,
    #[doc(hidden)]
    #[serde(default)]
    pub event_queued_inner_ns: Option<f64>,
    #[doc(hidden)]
    #[serde(default)]
    pub event_inner_error_ns: Option<f64>,
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
    /// The merged processes that used the device: indices in `process.merged`.
    #[doc(hidden)]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_by: Vec<u32>,
    /// Several of the merged processes used the device at the same time.
    #[doc(hidden)]
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    #[doc(hidden)]
    #[serde(default)]
    pub overlap: Option<Overlap>,
    #[doc(hidden)]
    pub coverage: Option<Coverage>,
    #[doc(hidden)]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows_from: Option<WindowsFrom>,
    #[doc(hidden)]
    pub warnings: Vec<String>,
}

/// The time during which work of different opened calls ran on a device at the same time, on different streams.
///
/// Each of the calls counts the time as its own. The time for which the device was busy with the work
/// of opened calls is therefore the sum of the paths' [self times on
/// it](crate::Node::self_ns_by_device) minus this overlap.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Overlap {
    #[doc(hidden)]
    pub ns: f64,
    #[doc(hidden)]
    pub partial: bool,
}

impl Overlap {
    /// Returns the time that is counted more than once, in nanoseconds. Time that `n` calls share
    /// counts `n - 1` times.
    pub fn ns(&self) -> f64 {
        self.ns
    }

    /// Returns `true` if there may have been more overlap. Work ran on several streams, and either
    /// calls were sampled, so that the work beside theirs is unknown, or some work ended too late
    /// to be compared with earlier work.
    pub fn partial(&self) -> bool {
        self.partial
    }
}

/// The number of merged reports whose windows the figures come from, if others have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowsFrom {
    /// The number of reports with windows on the device.
    pub with: u64,
    /// The number of reports with the device.
    pub of: u64,
}

impl Device {
    /// Creates a device that has only an id and a name.
    #[doc(hidden)]
    pub fn new(id: String, name: String) -> Device {
        Device {
            id,
            name,
            driver: None,
            driver_release: None,
            uuid: None,
            l2_bytes: None,
            peak_gb_per_s: None,
            event_step_ns: None,
            event_floor_ns: None,
            event_held_empty_ns: None,
            event_queued_empty_ns: None,
            event_inner_ns: None,
            event_queued_inner_ns: None,
            event_inner_error_ns: None,
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
            used_by: Vec::new(),
            shared: false,
            overlap: None,
            coverage: None,
            windows_from: None,
            warnings: Vec::new(),
        }
    }

    /// Returns, in words, how busy the device was, if it had windows. `of` says what the shares are of.
    pub(crate) fn coverage_sentence(&self, of: &str) -> Option<String> {
        let sentence = self.coverage.as_ref()?.sentence(of);
        Some(match self.windows_from {
            Some(WindowsFrom { with, of }) => format!("{sentence}, in {with} of {of} reports"),
            None => sentence,
        })
    }

    /// Creates the host device, for calls without a GPU stream.
    #[doc(hidden)]
    pub fn host() -> Device {
        Device::new("host".to_owned(), "host clock".to_owned())
    }

    /// Returns `cuda:N` or `host`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the name reported by the driver.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the newest CUDA version that the driver supports, such as `13.0`. This is not the
    /// driver's own version.
    pub fn driver(&self) -> Option<&str> {
        self.driver.as_deref()
    }

    /// Returns the release of the driver's kernel module, such as `580.159.04`.
    pub fn driver_release(&self) -> Option<&str> {
        self.driver_release.as_deref()
    }

    /// Returns the UUID of the GPU or of its MIG instance, as `nvidia-smi -L` prints it.
    pub fn uuid(&self) -> Option<&str> {
        self.uuid.as_deref()
    }

    /// Returns the version of the driver in words.
    pub(crate) fn driver_words(&self) -> Option<String> {
        match (&self.driver_release, &self.driver) {
            (Some(release), Some(cuda)) => Some(format!("driver {release} (CUDA {cuda})")),
            (Some(release), None) => Some(format!("driver {release}")),
            (None, Some(cuda)) => Some(format!("driver for CUDA {cuda}")),
            (None, None) => None,
        }
    }

    /// Returns the size of the L2 cache reported by the driver, in bytes.
    pub fn l2_bytes(&self) -> Option<u64> {
        self.l2_bytes
    }

    /// Returns the peak memory bandwidth in gigabytes (10⁹ bytes) per second: two transfers per
    /// cycle of the memory clock over the full bus width, both as reported by the driver.
    pub fn peak_gb_per_s(&self) -> Option<f64> {
        self.peak_gb_per_s
    }

    /// Returns the resolution of event times in nanoseconds.
    pub fn event_step_ns(&self) -> Option<f64> {
        self.event_step_ns
    }

    /// Returns the time between two events with nothing between them, in nanoseconds. It is
    /// measured behind a hold if possible, so that it contains no host time.
    pub fn event_floor_ns(&self) -> Option<f64> {
        self.event_floor_ns
    }

    /// Returns the event time of an empty kernel, alone behind a hold, in nanoseconds.
    pub fn event_held_empty_ns(&self) -> Option<f64> {
        self.event_held_empty_ns
    }

    /// Returns the event time of an empty kernel with a long queue behind it, in nanoseconds.
    pub fn event_queued_empty_ns(&self) -> Option<f64> {
        self.event_queued_empty_ns
    }

    /// Returns the event time that a bracket adds to another one around it, in nanoseconds.
    pub fn event_inner_ns(&self) -> Option<f64> {
        self.event_inner_ns
    }

    /// Returns the time that an inner bracket adds if a long queue is behind it, in nanoseconds.
    pub fn event_queued_inner_ns(&self) -> Option<f64> {
        self.event_queued_inner_ns
    }

    /// Returns the largest possible error of the time that each bracket inside adds, in nanoseconds. It includes
    /// the spread of the measurement, a step of the device clock, and the difference that a long queue makes,
    /// because there is no sharp border between a long queue and a short one.
    pub fn event_inner_error_ns(&self) -> Option<f64> {
        self.event_inner_error_ns
    }

    /// Returns the bias subtracted from a raw time once per bracket, in nanoseconds.
    pub fn event_bias_ns(&self) -> Option<f64> {
        self.event_bias_ns
    }

    /// Returns the source of the bias. `table` and `cupti`:
    /// [`event_held_empty_ns`](Self::event_held_empty_ns) minus CUPTI's time for an empty kernel,
    /// from a table of GPUs, or measured in the process, stored by `gpu-time calibrate` or set by
    /// `GPU_TIME_BIAS=cupti:…`. `floor`: the time of an empty pair of events alone. `user`: the
    /// value of `GPU_TIME_BIAS`.
    pub fn event_bias_source(&self) -> Option<&str> {
        self.event_bias_source.as_deref()
    }

    /// Returns the error of the bias, in nanoseconds. It includes the spread of the measurement,
    /// one step of the device clock, and the time added by a long queue behind a bracket, because a
    /// sample does not show whether there was one. With the source `floor`, it also includes
    /// everything that a held empty kernel adds to an empty pair. Terms that could not be measured
    /// are taken from an H200. `None` for the source `user`.
    pub fn event_bias_error_ns(&self) -> Option<f64> {
        self.event_bias_error_ns
    }

    /// Returns the margin that a sample without a hold needs to count as fed: the GPU must have
    /// reached the sample's start at least this many nanoseconds later than an idle GPU would have
    /// reached its stop. `None` while the host and device clocks are not aligned; a sample is then
    /// only proved fed by a hold.
    pub fn fed_margin_ns(&self) -> Option<f64> {
        self.fed_margin_ns
    }

    /// Returns the number of bytes read or written to evict the L2. If both kinds of flush are
    /// used, this is the larger number.
    pub fn flush_bytes(&self) -> Option<u64> {
        self.flush_bytes
    }

    /// Returns the measured effect of the flush. `None` if there is no flush, or if its effect
    /// could not be measured.
    pub fn flush_proof(&self) -> Option<&FlushProof> {
        self.flush_proof.as_ref()
    }

    /// Returns the device's clocks. This and the following values are `None` without the `nvml`
    /// feature, or if NVML does not report them.
    pub fn clocks(&self) -> Option<&Clocks> {
        self.clocks.as_ref()
    }

    /// Returns the reasons why the device's clocks were lowered between its first use and the
    /// report, named as in `nvidia-smi`, with the time in nanoseconds. The time is `None` for a
    /// reason that the driver does not count but that was active at one of these two moments.
    /// Reasons that the driver does count are listed even if the time is 0.
    pub fn throttle(&self) -> impl Iterator<Item = (&str, Option<u64>)> + '_ {
        self.throttle.iter().flatten().map(|(reason, held)| (reason.as_str(), *held))
    }

    /// Returns the device's temperature at the time of the report, in degrees Celsius.
    pub fn temperature_c(&self) -> Option<u32> {
        self.temperature_c
    }

    /// Returns the device's power draw at the time of the report, in watts.
    pub fn power_w(&self) -> Option<f64> {
        self.power_w
    }

    /// Returns `true` if persistence mode is on.
    pub fn persistence(&self) -> Option<bool> {
        self.persistence
    }

    /// Returns `true` if the device is partitioned by MIG.
    pub fn mig(&self) -> Option<bool> {
        self.mig
    }

    /// Returns `true` if processes share the device through MPS.
    pub fn mps(&self) -> Option<bool> {
        self.mps
    }

    /// Returns the number of other processes with a compute context on the device, at its first use
    /// or at the time of the report. If this process's id is not listed, as in a container, one of
    /// the processes is assumed to be this one.
    pub fn other_processes(&self) -> Option<u32> {
        self.other_processes
    }

    /// Returns `true` if other processes used the device at the same time. How idle it was is then
    /// not known from the work of this one.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared || self.other_processes.is_some_and(|others| others > 0)
    }

    /// Returns how long work of different opened calls ran at the same time. `None` if it never did, as
    /// on a single stream.
    pub fn overlap(&self) -> Option<&Overlap> {
        self.overlap.as_ref()
    }

    /// Returns how busy the device was, from windows in which all work of the process was recorded.
    /// `None` without windows.
    pub fn coverage(&self) -> Option<&Coverage> {
        self.coverage.as_ref()
    }

    /// Returns how busy the device was, if any window is complete.
    pub(crate) fn known_coverage(&self) -> Option<&Coverage> {
        self.coverage().filter(|coverage| coverage.windows > 0)
    }

    /// Returns reasons to doubt the device's figures.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }
}

/// A device's clocks in MHz, at its first use and at the time of the report. A value is `None` if
/// NVML does not report it. These are momentary values: an idle GPU lowers its clocks.
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
    /// Returns the SM clock at the first use. It was read under load, unless the device still
    /// reported that it was idle.
    pub fn sm_start_mhz(&self) -> Option<u32> {
        self.sm_start_mhz
    }

    /// Returns the SM clock at the time of the report.
    pub fn sm_end_mhz(&self) -> Option<u32> {
        self.sm_end_mhz
    }

    /// Returns the maximum SM clock.
    pub fn sm_max_mhz(&self) -> Option<u32> {
        self.sm_max_mhz
    }

    /// Returns the memory clock at the first use. It was read under load, unless the device still
    /// reported that it was idle.
    pub fn mem_start_mhz(&self) -> Option<u32> {
        self.mem_start_mhz
    }

    /// Returns the memory clock at the time of the report.
    pub fn mem_end_mhz(&self) -> Option<u32> {
        self.mem_end_mhz
    }

    /// Returns the maximum memory clock.
    pub fn mem_max_mhz(&self) -> Option<u32> {
        self.mem_max_mhz
    }
}
