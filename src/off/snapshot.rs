//! An empty snapshot, and the uninhabited types named by its accessors.
//!
//! A program that reads a snapshot must compile in both builds, so every accessor is listed here.

use std::iter::Empty;
use std::{fmt, process};

/// The reason why there is nothing to report.
pub(super) const WHY: &str = "gpu-time was built without its feature `enabled`";

/// A snapshot without devices and sites. Its `Display` prints the reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot(Process);

/// The process, in which nothing was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Process(());

answers! {
    Snapshot {
        devices: &[Device] = &[],
        sites: &[Site] = &[],
        tree: &[Node] = &[],
        to_folded: String = String::new(),
        inconsistencies: Vec<String> = Vec::new(),
        to_csv: String = String::new(),
        to_html: String = String::new(),
    }
    Process {
        name: &str = "",
        pid: u32 = process::id(),
        started: &str = "",
        wall_ns: u64 = 0,
        budget: Option<&Budget> = None,
        kernels: Option<&str> = None,
        cupti_version: Option<u32> = None,
        version: &str = env!("CARGO_PKG_VERSION"),
        program_version: Option<&str> = None,
        label: Option<&str> = None,
        host: Option<&str> = None,
        off: Option<&str> = Some(WHY),
        warnings: &[String] = &[],
        merged: &[Process] = &[],
    }
}

impl Snapshot {
    pub(super) fn empty() -> Snapshot {
        Snapshot(Process(()))
    }

    /// Returns the process, whose `off` gives the reason why nothing was timed.
    pub fn process(&self) -> &Process {
        &self.0
    }

    /// Returns `None`.
    pub fn site(&self, _name: &str) -> Option<&Site> {
        None
    }

    /// Always fails. To read reports, use the `gpu-time-report` package, which works without the
    /// `enabled` feature.
    ///
    /// # Errors
    ///
    /// Always, because the `enabled` feature is off.
    pub fn from_json(_json: &[u8]) -> Result<Snapshot, ReadError> {
        Err(ReadError(()))
    }

    /// Returns a JSON report in the usual form.
    pub fn to_json(&self) -> String {
        let (pid, version) = (self.0.pid(), self.0.version());
        format!(
            r#"{{
  "schema": "gpu-time/1",
  "process": {{
    "name": "",
    "pid": {pid},
    "started": "",
    "wall_ns": 0,
    "version": "{version}",
    "program_version": null,
    "label": null,
    "host": null,
    "timing": "off: {WHY}",
    "budget": null,
    "kernels": null,
    "cupti_version": null,
    "warnings": []
  }},
  "devices": [],
  "sites": []
}}"#
        )
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "gpu-time {}: nothing was timed: {WHY}", self.0.version())
    }
}

/// The error returned by [`Snapshot::from_json`].
#[derive(Debug)]
pub struct ReadError(());

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{WHY}: reading a report needs it, or the crate `gpu-time-report` alone")
    }
}

impl std::error::Error for ReadError {}

/// Defines uninhabited types, with the accessors that they have in the enabled build.
macro_rules! no_values {
    ($($name:ident $(: $derived:ident)* { $($accessor:ident: $value:ty),* $(,)? })*) => {$(
        /// Uninhabited, because the `enabled` feature is off.
        #[derive(Clone, Debug, PartialEq, $($derived),*)]
        pub enum $name {}

        impl $name {
            $(
                /// Never called, because this type is uninhabited.
                pub fn $accessor(&self) -> $value {
                    match *self {}
                }
            )*
        }
    )*};
}

no_values! {
    Budget: Copy { share: f64, cost_share: f64, host_ns: u64, device_ns: u64 }
    Device {
        id: &str, name: &str, driver: Option<&str>, driver_release: Option<&str>, uuid: Option<&str>,
        l2_bytes: Option<u64>, peak_gb_per_s: Option<f64>,
        event_step_ns: Option<f64>, event_floor_ns: Option<f64>, event_held_empty_ns: Option<f64>,
        event_queued_empty_ns: Option<f64>, event_inner_ns: Option<f64>,
        event_queued_inner_ns: Option<f64>, event_inner_error_ns: Option<f64>, event_bias_ns: Option<f64>,
        event_bias_source: Option<&str>, event_bias_error_ns: Option<f64>, fed_margin_ns: Option<f64>,
        flush_bytes: Option<u64>, flush_proof: Option<&FlushProof>, clocks: Option<&Clocks>,
        throttle: Empty<(&str, Option<u64>)>, temperature_c: Option<u32>, power_w: Option<f64>,
        persistence: Option<bool>, mig: Option<bool>, mps: Option<bool>,
        other_processes: Option<u32>, overlap: Option<&Overlap>, coverage: Option<&Coverage>,
        warnings: &[String],
    }
    Overlap: Copy { ns: f64, partial: bool }
    Coverage {
        windows: u64, incomplete: u64, missed: u64, total_ns: f64, covered_ns: Option<f64>, busy: f64,
        busy_error: Option<f64>, idle: f64, idle_error: Option<f64>, attributed: f64,
        attributed_error: Option<f64>, not_annotated: f64, not_annotated_error: Option<f64>,
        unattributed: &[Unattributed],
    }
    Node {
        name: &str, site: Option<usize>, parent: Option<usize>, source: &str, recorded: u64, calls: f64,
        inclusive_ns: f64, inclusive_error_ns: Option<f64>, self_ns: f64,
        self_ns_by_device: Empty<(&str, f64)>, self_error_ns: Option<f64>, share: f64,
        per_call: Option<&PerCall>, launch_bound: bool, upper_bound: bool, callers_unknown: bool,
    }
    PerCall: Copy {
        busy_ns: f64, span_ns: f64, waited_ns: Option<f64>, host_ns: Option<f64>,
        kernels: Option<f64>,
    }
    Unattributed { name: &str, count: u64, total_ns: f64, share: f64, per_s: f64 }
    Clocks: Copy: Eq {
        sm_start_mhz: Option<u32>, sm_end_mhz: Option<u32>, sm_max_mhz: Option<u32>,
        mem_start_mhz: Option<u32>, mem_end_mhz: Option<u32>, mem_max_mhz: Option<u32>,
    }
    FlushProof { clean: Option<&Eviction>, dirty: Option<&Eviction> }
    Eviction {
        proved: bool, method: &str, multiple: u32, bytes: u64, lines: u32, missed_after_read: f64,
        missed_after_write: f64, missed_discarded: Option<f64>, hit_cycles: u32,
        miss_cycles: Option<u32>, threshold_cycles: u32,
    }
    Site {
        name: &str, file: &str, line: u32, scope: &str, launches_seen: u32, options: &str,
        calls: u64, warmup: u64, skipped: u64, unsampled: u64, sample_rate: f64, timed: u64,
        holds_released: u64, holds_expired: u64, warnings: &[String], series: &[Series],
    }
    Series {
        device: &str, launch: Option<&Launch>, measure: &str, key: Option<&str>, cache: &str,
        clock: &str, graph: bool, timed: u64, measured: u64, opened: u64, in_flight: u64,
        lost: Empty<(&str, u64)>, fed: u64, starved: u64, at_floor: u64, queued: u64,
        bias_ns: Option<f64>, nested: u64, tracked: u64, upper_bound: bool,
        launches: Option<&Launches>, inner_brackets: Option<&Launches>, raw_ns: Option<&Stats>, net_ns: Option<&Stats>,
        estimated_total_ns: Option<f64>, estimated_total_error_ns: Option<f64>,
        unknown_error: Option<&str>,
        ci95_ns: Option<[f64; 2]>, independent: Option<f64>, looks: u32, histogram: &Histogram, timeline: Option<&Timeline>,
        bytes: Option<&Bytes>, flops: Option<&Flops>, host_ns: Option<&Stats>,
        kernel_times: Option<&KernelTimes>,
    }
    KernelTimes {
        opened: u64, busy_ns: Option<&Stats>, self_busy_ns: Option<&Stats>, span_ns: Option<&Stats>,
        gaps_ns: Option<&Stats>, kernels_per_call: Option<f64>,
        streams: Option<u32>, kernels: &[Kernel], elsewhere: &[Elsewhere], zero_times: u64,
    }
    Kernel {
        name: &str, grid: [u32; 3], block: [u32; 3], registers: u16, shared_bytes: u32,
        per_call: f64, count: u64, time_ns: Option<&Stats>, total_ns: f64, share: f64,
    }
    Elsewhere { name: &str, count: u64, total_ns: f64, why: &str }
    Histogram: Eq { count: u64, is_empty: bool, iter: Empty<(f64, u64)> }
    Timeline: Eq { origin_ns: u64, width_ns: u64, slots: &[Slot] }
    Slot: Copy: Eq { index: u32, count: u64, min_ns: u64, mean_ns: u64, max_ns: u64 }
    Launch: Eq { index: u32, name: &str, line: u32 }
    Launches: Copy { min: u32, mean: f64, max: u32 }
    Bytes: Copy {
        samples: u64, per_call: Option<f64>, total: f64, gb_per_s: Option<f64>,
        peak_share: Option<f64>,
    }
    Flops: Copy { samples: u64, per_call: Option<f64>, total: f64, tflop_per_s: Option<f64> }
    Stats: Copy {
        min: f64, p5: f64, median: f64, mean: f64, p95: f64, p99: f64, max: f64, stddev: f64,
        sum: f64,
    }
    BackToBack {
        calls: u32, replays: u64, per_call_ns: f64, ci95_ns: Option<[f64; 2]>,
        span_ns: Option<&Stats>, upper_bound: bool,
    }
    Ratio {
        name: &str, ratio: Option<f64>, interval95: Option<[f64; 2]>, blocks: u64, upper_bound: bool,
    }
    Unmet { site: &str, series: &str, samples: u64, margin: Option<f64>, reason: &str }
}

impl fmt::Display for BackToBack {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}

impl fmt::Display for Unmet {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {}
    }
}
