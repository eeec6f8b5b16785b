//! Devices in the report.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::merge::{agree, join};
use crate::{Coverage, FlushProof, Utilization, units};

/// A device on which something was timed. A value is `None` if it does not apply or was not
/// measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Device {
    /// `cuda:N` or `host`.
    pub id: String,
    /// The name reported by the driver.
    pub name: String,
    /// The newest CUDA version that the driver supports, such as `13.0`. This is not the driver's
    /// own version.
    pub driver: Option<String>,
    /// The release of the driver's kernel module, such as `580.159.04`.
    pub driver_release: Option<String>,
    /// The UUID of the GPU or of its MIG instance, as `nvidia-smi -L` prints it.
    pub uuid: Option<String>,
    /// The size of the L2 cache reported by the driver, in bytes.
    pub l2_bytes: Option<u64>,
    /// The peak memory bandwidth in gigabytes (10⁹ bytes) per second: two transfers per cycle of
    /// the memory clock over the full bus width, both as reported by the driver.
    pub peak_gb_per_s: Option<f64>,
    /// The resolution of event times in nanoseconds.
    pub event_step_ns: Option<f64>,
    /// The time between two events with nothing between them, in nanoseconds. It is measured behind
    /// a hold if possible, so that it contains no host time.
    pub event_floor_ns: Option<f64>,
    /// The event time of an empty kernel, alone behind a hold, in nanoseconds.
    pub event_held_empty_ns: Option<f64>,
    /// The event time of an empty kernel with a long queue behind it, in nanoseconds.
    pub event_queued_empty_ns: Option<f64>,
    /// The event time that a bracket adds to another one around it, in nanoseconds.
    pub event_inner_ns: Option<f64>,
    /// The time that an inner bracket adds if a long queue is behind it, in nanoseconds.
    pub event_queued_inner_ns: Option<f64>,
    /// The largest possible error of the time that each bracket inside adds, in nanoseconds. It
    /// includes the spread of the measurement, a step of the device clock, and the difference that
    /// a long queue makes, because there is no sharp border between a long queue and a short one.
    pub event_inner_error_ns: Option<f64>,
    /// The bias subtracted from a raw time once per bracket, in nanoseconds.
    pub event_bias_ns: Option<f64>,
    /// The source of the bias. `table` and `cupti`:
    /// [`event_held_empty_ns`](Self::event_held_empty_ns) minus CUPTI's time for an empty kernel,
    /// from a table of GPUs, or measured in this process, stored by an earlier run or `gpu-time calibrate`, or set by
    /// `GPU_TIME_BIAS=cupti:…`. `floor`: the time of an empty pair of events alone. `user`: the
    /// value of `GPU_TIME_BIAS`.
    pub event_bias_source: Option<String>,
    /// The error of the bias, in nanoseconds. It includes the spread of the measurement, one step
    /// of the device clock, and the time added by a long queue behind a bracket, because a sample
    /// does not show whether there was one. With the source `floor`, it also includes everything
    /// that a held empty kernel adds to an empty pair. Terms that could not be measured are taken
    /// from an H200. `None` for the source `user`.
    pub event_bias_error_ns: Option<f64>,
    /// The margin that a sample without a hold needs to count as fed: the GPU must have reached the
    /// sample's start at least this many nanoseconds later than an idle GPU would have reached its
    /// stop. `None` while the host and device clocks are not aligned; a sample is then only proved
    /// fed by a hold.
    pub fed_margin_ns: Option<f64>,
    /// The number of bytes read or written to evict the L2. If both kinds of flush are used, this
    /// is the larger number.
    pub flush_bytes: Option<u64>,
    /// The measured effect of the flush. `None` if there is no flush, or if its effect could not be
    /// measured.
    pub flush_proof: Option<FlushProof>,
    /// The device's clocks. This and the following values are `None` without the `nvml` feature, or
    /// if NVML does not report them.
    pub clocks: Option<Clocks>,
    /// The reasons why the device's clocks were lowered between its first use and the report, named
    /// as in `nvidia-smi`, with the time in nanoseconds. The time is `None` for a reason that the
    /// driver does not count but that was active at one of these two moments. Reasons that the
    /// driver does count are listed even if the time is 0.
    pub throttle: Option<BTreeMap<String, Option<u64>>>,
    /// The device's temperature at the time of the report, in degrees Celsius.
    pub temperature_c: Option<u32>,
    /// The device's power draw at the time of the report, in watts.
    pub power_w: Option<f64>,
    /// `true` if persistence mode is on.
    pub persistence: Option<bool>,
    /// `true` if the device is partitioned by MIG.
    pub mig: Option<bool>,
    /// `true` if processes share the device through MPS.
    pub mps: Option<bool>,
    /// The number of other processes with a compute context on the device, at its first use or at
    /// the time of the report. If this process's id is not listed, as in a container, one of the
    /// processes is assumed to be this one.
    pub other_processes: Option<u32>,
    /// The merged processes that used the device: indices in `process.merged`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_by: Vec<u32>,
    /// Several of the merged processes used the device at the same time.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// How far all processes used the device, on Hopper and later. `None` elsewhere, and without the `nvml` feature.
    #[serde(default)]
    pub utilization: Option<Utilization>,
    /// How busy the device was, from phases in which all work of the process was recorded. `None`
    /// without phases.
    pub coverage: Option<Coverage>,
    /// The reports that the coverage comes from, in a merged report of which only some have phases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows_from: Option<WindowsFrom>,
    /// Reasons to doubt the device's figures.
    pub warnings: Vec<String>,
}

/// The number of merged reports whose phases the figures come from, if others have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct WindowsFrom {
    /// The number of reports with phases on the device.
    pub with: u64,
    /// The number of reports with the device.
    pub of: u64,
}

impl Device {
    /// The id of the host.
    pub(crate) const HOST: &str = "host";

    /// Creates a device that has only an id and a name.
    #[doc(hidden)]
    pub fn new(id: String, name: String) -> Device {
        Device { id, name, ..Device::default() }
    }

    /// Returns, in words, how busy the device was, if it had phases. `of` says what the shares are of.
    pub(crate) fn coverage_sentence(&self, of: &str) -> Option<String> {
        let sentence = self.coverage.as_ref()?.sentence(of);
        Some(match self.windows_from {
            Some(WindowsFrom { with, of }) => format!("{sentence}, in {with} of {of} reports"),
            None => sentence,
        })
    }

    /// Merges another report of the same device. Throttled times are summed, and phases
    /// are pooled, weighted by the times that they stand for. Other values become unknown if they differ. Leaves the
    /// warnings, and what is about the merged processes.
    #[doc(hidden)]
    #[inline] // compiled only in crates that merge reports
    pub fn merge(&mut self, theirs: &Device, covered_ns: [f64; 2]) {
        macro_rules! agree_on {
            ($($field:ident)*) => {
                // Names every field, so that the compiler finds a forgotten one.
                let Device {
                    id: _,
                    name: _,
                    throttle: _,
                    used_by: _,
                    shared: _,
                    coverage: _,
                    windows_from: _,
                    warnings: _,
                    $($field,)*
                } = theirs;
                $(agree(&mut self.$field, $field);)*
            };
        }
        agree_on!(
            driver driver_release uuid l2_bytes peak_gb_per_s event_step_ns event_floor_ns event_held_empty_ns
            event_queued_empty_ns event_inner_ns event_queued_inner_ns event_inner_error_ns event_bias_ns
            event_bias_source event_bias_error_ns fed_margin_ns flush_bytes flush_proof clocks temperature_c power_w
            persistence mig mps other_processes utilization
        );
        self.shared |= theirs.shared;
        join(&mut self.coverage, theirs.coverage.clone(), |ours, theirs| {
            *ours = ours.pooled(&theirs, covered_ns);
        });
        for (reason, held) in theirs.throttle.iter().flatten() {
            let ours =
                self.throttle.get_or_insert_default().entry(reason.clone()).or_insert(Some(0));
            *ours = ours.zip(*held).map(|(ours, theirs)| ours.saturating_add(theirs));
        }
    }

    /// Creates the host device, for calls without a GPU stream.
    #[doc(hidden)]
    pub fn host() -> Device {
        Device::new(Device::HOST.to_owned(), "host clock".to_owned())
    }

    /// Returns `true` unless this is the host.
    pub(crate) fn is_gpu(&self) -> bool {
        self.id != Device::HOST
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

    /// Returns `true` if other processes used the device at the same time. How idle it was is then
    /// not known from the work of this one.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared || self.other_processes.is_some_and(|others| others > 0)
    }

    /// Returns the reasons why the clocks were lowered, with their times in words.
    pub(crate) fn throttled(&self) -> Vec<String> {
        let reasons = self.throttle.iter().flatten().filter(|(_, held)| **held != Some(0));
        let words = reasons.map(|(reason, held)| match held {
            Some(ns) => format!("{reason} {}", units::time(*ns as f64)),
            None => reason.to_owned(),
        });
        words.collect()
    }

    /// Returns the clocks at first use and at the time of the report, and other values of NVML, in words.
    pub(crate) fn health(&self) -> Vec<String> {
        let Clocks { sm_start_mhz, sm_end_mhz, sm_max_mhz, mem_start_mhz, mem_end_mhz, .. } =
            self.clocks.unwrap_or_default();
        let clock = |what: &str, start: Option<u32>, end: Option<u32>| {
            let (start, end) = start.zip(end)?;
            let start = if start == end { String::new() } else { format!("{start} to ") };
            Some(format!("{what} {start}{end} MHz"))
        };
        let most = sm_max_mhz.map(|most| format!(" of {most}")).unwrap_or_default();
        let throttled = self.throttled();
        let lowered = || format!("clocks lowered by {}", throttled.join(" and "));
        let parts = [
            clock("SM", sm_start_mhz, sm_end_mhz).map(|sm| sm + &most),
            clock("memory", mem_start_mhz, mem_end_mhz),
            self.temperature_c.map(|degrees| format!("{degrees} °C")),
            self.power_w.map(|watts| format!("{watts:.0} W")),
            (!throttled.is_empty()).then(lowered),
            self.utilization.as_ref().and_then(Utilization::words),
        ];
        parts.into_iter().flatten().collect()
    }

    /// Returns the bias with its source and its error, in words.
    pub(crate) fn bias_words(&self) -> Option<String> {
        let bias = units::time(self.event_bias_ns?);
        let error = self.event_bias_error_ns.map(|ns| format!(", ±{}", units::time(ns)));
        let source = self.event_bias_source.as_ref();
        let source = source.map(|source| format!(" ({source}{})", error.unwrap_or_default()));
        Some(bias + &source.unwrap_or_default())
    }

    /// Returns how busy the device was, if any window is complete.
    #[doc(hidden)]
    pub fn known_coverage(&self) -> Option<&Coverage> {
        self.coverage.as_ref().filter(|coverage| coverage.windows > 0)
    }

    /// Does the same unless some of the merged reports with the device have no phases.
    pub(crate) fn coverage_of_all(&self) -> Option<&Coverage> {
        self.known_coverage().filter(|_| self.windows_from.is_none())
    }
}

/// A device's clocks in MHz, at its first use and at the time of the report. A value is `None` if
/// NVML does not report it. These are momentary values: an idle GPU lowers its clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Clocks {
    /// The SM clock at the first use. It was read under load, unless the device still reported that
    /// it was idle.
    pub sm_start_mhz: Option<u32>,
    /// The SM clock at the time of the report.
    pub sm_end_mhz: Option<u32>,
    /// The maximum SM clock.
    pub sm_max_mhz: Option<u32>,
    /// The memory clock at the first use. It was read under load, unless the device still reported
    /// that it was idle.
    pub mem_start_mhz: Option<u32>,
    /// The memory clock at the time of the report.
    pub mem_end_mhz: Option<u32>,
    /// The maximum memory clock.
    pub mem_max_mhz: Option<u32>,
}
