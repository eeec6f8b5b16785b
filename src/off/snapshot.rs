//! A snapshot of nothing, and the types of what it would have.

use std::{fmt, iter, process};

use super::WHY;

/// A snapshot without devices and sites. Its `Display` says why.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    process: Process,
}

impl Snapshot {
    pub(super) fn nothing() -> Snapshot {
        Snapshot { process: Process(()) }
    }

    /// The process, which says why nothing was timed.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// None.
    pub fn devices(&self) -> &[Device] {
        &[]
    }

    /// None.
    pub fn sites(&self) -> &[Site] {
        &[]
    }

    /// None.
    pub fn site(&self, _name: &str) -> Option<&Site> {
        None
    }

    /// None.
    pub fn inconsistencies(&self) -> Vec<String> {
        Vec::new()
    }

    /// Answers that reading a report needs the feature `enabled`, or the package `gpu-time-report`.
    ///
    /// # Errors
    ///
    /// Always, because the feature `enabled` is off.
    pub fn from_json(_json: &[u8]) -> Result<Snapshot, ReadError> {
        Err(ReadError(()))
    }

    /// Empty.
    pub fn to_csv(&self) -> String {
        String::new()
    }

    /// Empty.
    pub fn to_html(&self) -> String {
        String::new()
    }

    /// The JSON report, of the usual shape.
    pub fn to_json(&self) -> String {
        let (pid, version) = (self.process.pid(), self.process.version());
        format!(
            r#"{{
  "schema": "gpu-time/1",
  "process": {{
    "name": "",
    "pid": {pid},
    "started": "",
    "wall_ns": 0,
    "version": "{version}",
    "timing": "off: {WHY}",
    "budget": null,
    "warnings": []
  }},
  "devices": [],
  "sites": []
}}"#
        )
    }
}

/// Why a report was not read.
#[derive(Debug)]
pub struct ReadError(());

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{WHY}: reports are read with that, or by `gpu-time-report` alone")
    }
}

impl std::error::Error for ReadError {}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "gpu-time {}: nothing was timed: {WHY}", self.process.version())
    }
}

/// The process, of which nothing was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Process(());

impl Process {
    /// Empty.
    pub fn name(&self) -> &str {
        ""
    }

    /// The process id.
    pub fn pid(&self) -> u32 {
        process::id()
    }

    /// Empty.
    pub fn started(&self) -> &str {
        ""
    }

    /// Zero.
    pub fn wall_ns(&self) -> u64 {
        0
    }

    /// None.
    pub fn budget(&self) -> Option<&Budget> {
        None
    }

    /// The version of gpu-time.
    pub fn version(&self) -> &str {
        env!("CARGO_PKG_VERSION")
    }

    /// That the feature `enabled` is off.
    pub fn off(&self) -> Option<&str> {
        Some(WHY)
    }

    /// None.
    pub fn warnings(&self) -> &[String] {
        &[]
    }

    /// None.
    pub fn merged(&self) -> &[Process] {
        &[]
    }
}

no_values! {
    #[derive(Copy)]
    Budget: share -> f64, cost_share -> f64, host_ns -> u64, device_ns -> u64
}

no_values! { Device:
    id -> &str,
    name -> &str,
    driver -> Option<&str>,
    l2_bytes -> Option<u64>,
    peak_gb_per_s -> Option<f64>,
    event_step_ns -> Option<f64>,
    event_floor_ns -> Option<f64>,
    event_held_empty_ns -> Option<f64>,
    event_queued_empty_ns -> Option<f64>,
    event_bias_ns -> Option<f64>,
    event_bias_source -> Option<&str>,
    event_bias_error_ns -> Option<f64>,
    fed_margin_ns -> Option<f64>,
    flush_bytes -> Option<u64>,
    flush_proof -> Option<&FlushProof>,
    clocks -> Option<&Clocks>,
    temperature_c -> Option<u32>,
    power_w -> Option<f64>,
    persistence -> Option<bool>,
    mig -> Option<bool>,
    mps -> Option<bool>,
    other_processes -> Option<u32>,
    warnings -> &[String],
}

impl Device {
    /// Never called, because there is nothing to call it on.
    pub fn throttle(&self) -> impl Iterator<Item = (&str, Option<u64>)> + '_ {
        iter::empty()
    }
}

no_values! {
    #[derive(Copy, Eq)]
    Clocks:
    sm_start_mhz -> Option<u32>,
    sm_end_mhz -> Option<u32>,
    sm_max_mhz -> Option<u32>,
    mem_start_mhz -> Option<u32>,
    mem_end_mhz -> Option<u32>,
    mem_max_mhz -> Option<u32>,
}

no_values! { FlushProof:
    clean -> Option<&Eviction>,
    dirty -> Option<&Eviction>,
}

no_values! { Eviction:
    proved -> bool,
    method -> &str,
    multiple -> u32,
    bytes -> u64,
    lines -> u32,
    missed_after_read -> f64,
    missed_after_write -> f64,
    missed_discarded -> Option<f64>,
    hit_cycles -> u32,
    miss_cycles -> Option<u32>,
    threshold_cycles -> u32,
}

no_values! { Site:
    name -> &str,
    file -> &str,
    line -> u32,
    scope -> &str,
    launches_seen -> u32,
    options -> &str,
    calls -> u64,
    warmup -> u64,
    skipped -> u64,
    unsampled -> u64,
    sample_rate -> f64,
    timed -> u64,
    holds_released -> u64,
    holds_expired -> u64,
    warnings -> &[String],
    series -> &[Series],
}

no_values! { Series:
    device -> &str,
    launch -> Option<&Launch>,
    measure -> &str,
    key -> Option<&str>,
    cache -> &str,
    clock -> &str,
    graph -> bool,
    timed -> u64,
    measured -> u64,
    in_flight -> u64,
    fed -> u64,
    starved -> u64,
    at_floor -> u64,
    queued -> u64,
    bias_ns -> Option<f64>,
    nested -> u64,
    tracked -> u64,
    upper_bound -> bool,
    launches -> Option<&Launches>,
    raw_ns -> Option<&Stats>,
    net_ns -> Option<&Stats>,
    estimated_total_ns -> Option<f64>,
    estimated_total_error_ns -> Option<f64>,
    ci95_ns -> Option<[f64; 2]>,
    histogram -> &Histogram,
    timeline -> Option<&Timeline>,
    bytes -> Option<&Bytes>,
    flops -> Option<&Flops>,
}

impl Series {
    /// Never called, because there is nothing to call it on.
    pub fn lost(&self) -> impl Iterator<Item = (&str, u64)> + '_ {
        iter::empty()
    }
}

no_values! {
    #[derive(Eq)]
    Histogram: count -> u64, is_empty -> bool
}

impl Histogram {
    /// Never called, because there is nothing to call it on.
    pub fn iter(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        iter::empty()
    }
}

no_values! {
    #[derive(Eq)]
    Timeline: origin_ns -> u64, width_ns -> u64, slots -> &[Slot]
}

no_values! {
    #[derive(Copy, Eq)]
    Slot: index -> u32, count -> u64, min_ns -> u64, mean_ns -> u64, max_ns -> u64
}

no_values! {
    #[derive(Eq)]
    Launch: index -> u32, name -> &str, line -> u32
}

no_values! {
    #[derive(Copy)]
    Launches: min -> u32, mean -> f64, max -> u32
}

no_values! {
    #[derive(Copy)]
    Bytes:
    samples -> u64,
    per_call -> Option<f64>,
    total -> f64,
    gb_per_s -> Option<f64>,
    peak_share -> Option<f64>,
}

no_values! {
    #[derive(Copy)]
    Flops:
    samples -> u64,
    per_call -> Option<f64>,
    total -> f64,
    tflop_per_s -> Option<f64>,
}

no_values! {
    #[derive(Copy)]
    Stats:
    min -> f64,
    p5 -> f64,
    median -> f64,
    mean -> f64,
    p95 -> f64,
    p99 -> f64,
    max -> f64,
    stddev -> f64,
    sum -> f64,
}
