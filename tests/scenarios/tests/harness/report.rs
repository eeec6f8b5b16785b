//! The JSON report, deserialized according to the public contract.

mod nullable;
mod series;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde::Deserialize;

use super::driver::is_real;
use nullable::{error, nullable};
pub use series::{KernelTimes, Series, Stats};

/// Prefixes of warnings about a real GPU and its other users.
const MACHINE_WARNINGS: [&str; 8] = [
    "NVML cannot read it",
    "throttled by",
    "its SM clock",
    "its memory clock",
    "shared with",
    "MPS is on",
    "MIG is on",
    "persistence mode is off",
];

/// Asserts that a report conforms to the published JSON Schema.
fn assert_matches_schema(text: &str) {
    static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
        let schema = include_str!("../../../../gpu-time-report/schema/gpu-time-1.json");
        let schema = serde_json::from_str(schema).expect("the schema is JSON");
        jsonschema::draft202012::new(&schema).expect("the schema is valid")
    });
    let json = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let violations: Vec<String> = SCHEMA
        .iter_errors(&json)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(violations.is_empty(), "{violations:#?}\n{text}");
}

#[derive(Debug, Deserialize)]
pub struct Report {
    pub schema: String,
    pub process: Process,
    pub devices: Vec<Device>,
    pub sites: Vec<Site>,
    #[serde(default)]
    pub tree: Vec<Node>,
}

#[derive(Debug, Deserialize)]
pub struct Node {
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    pub parent: Option<usize>,
    pub source: String,
    pub recorded: u64,
    pub calls: f64,
    pub inclusive_ns: f64,
    #[serde(deserialize_with = "error")]
    pub inclusive_error_ns: f64,
    pub self_ns: f64,
    #[serde(deserialize_with = "error")]
    pub self_error_ns: f64,
    #[serde(default)]
    pub self_ns_by_device: BTreeMap<String, f64>,
    pub share: f64,
    #[serde(deserialize_with = "nullable")]
    pub per_call: Option<PerCall>,
    pub launch_bound: bool,
    pub upper_bound: bool,
    pub callers_unknown: bool,
}

#[derive(Debug, Deserialize)]
pub struct PerCall {
    pub busy_ns: f64,
    pub span_ns: f64,
    #[serde(deserialize_with = "nullable")]
    pub waited_ns: Option<f64>,
    #[serde(deserialize_with = "nullable")]
    pub host_ns: Option<f64>,
    #[serde(deserialize_with = "nullable")]
    pub kernels: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub struct Process {
    pub pid: u32,
    pub wall_ns: u64,
    #[serde(deserialize_with = "nullable")]
    pub label: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub program_version: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub host: Option<String>,
    pub off: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub budget: Option<Budget>,
    pub warnings: Vec<String>,
    #[serde(deserialize_with = "nullable")]
    pub kernels: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub cupti_version: Option<u32>,
    /// The warning that the budget cannot be met, moved here from `warnings`.
    #[serde(skip)]
    pub overrun: Option<String>,
}

#[derive(Debug, Deserialize)]
pub struct Budget {
    pub share: f64,
    pub cost_share: f64,
    pub host_ns: u64,
    pub device_ns: u64,
    pub added_share: Option<f64>,
    pub added_error_share: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub struct Coverage {
    pub windows: u64,
    pub incomplete: u64,
    pub missed: u64,
    pub total_ns: f64,
    pub covered_ns: f64,
    pub busy: f64,
    #[serde(deserialize_with = "nullable")]
    pub busy_error: Option<f64>,
    pub idle: f64,
    pub attributed: f64,
    #[serde(deserialize_with = "nullable")]
    pub attributed_error: Option<f64>,
    pub not_timed: f64,
    #[serde(deserialize_with = "nullable")]
    pub not_timed_error: Option<f64>,
    pub kernels: Vec<PhaseKernel>,
}

#[derive(Debug, Deserialize)]
pub struct PhaseKernel {
    pub name: String,
    pub annotated: bool,
    pub count: u64,
    pub total_ns: f64,
    #[serde(deserialize_with = "nullable")]
    pub median_ns: Option<f64>,
    pub share: f64,
    pub per_s: f64,
}

impl Coverage {
    /// Returns the work that was enqueued outside of annotated functions.
    pub fn outside(&self) -> Vec<&PhaseKernel> {
        self.kernels.iter().filter(|kernel| !kernel.annotated).collect()
    }
}

#[derive(Debug, Deserialize)]
pub struct Device {
    pub id: String,
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    pub driver: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub uuid: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub l2_bytes: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    pub peak_gb_per_s: Option<f64>,
    #[serde(deserialize_with = "nullable")]
    pub event_step_ns: Option<f64>,
    #[serde(deserialize_with = "nullable")]
    pub event_floor_ns: Option<f64>,
    #[serde(deserialize_with = "nullable")]
    pub event_held_empty_ns: Option<f64>,
    #[serde(deserialize_with = "nullable")]
    pub event_queued_empty_ns: Option<f64>,
    #[serde(deserialize_with = "nullable")]
    pub event_inner_ns: Option<f64>,
    pub event_queued_inner_ns: Option<f64>,
    pub event_inner_error_ns: Option<f64>,
    #[serde(deserialize_with = "nullable")]
    pub event_bias_ns: Option<f64>,
    #[serde(deserialize_with = "nullable")]
    pub event_bias_source: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub event_bias_error_ns: Option<f64>,
    #[serde(deserialize_with = "nullable")]
    pub flush_bytes: Option<u64>,
    #[serde(deserialize_with = "nullable")]
    pub flush_proof: Option<FlushProof>,
    #[serde(deserialize_with = "nullable")]
    pub coverage: Option<Coverage>,
    #[serde(deserialize_with = "nullable")]
    pub clocks: Option<BTreeMap<String, Option<u32>>>,
    #[serde(deserialize_with = "nullable")]
    pub throttle: Option<BTreeMap<String, Option<u64>>>,
    pub utilization: Option<BTreeMap<String, Option<f64>>>,
    #[serde(deserialize_with = "nullable")]
    pub temperature_c: Option<u32>,
    #[serde(deserialize_with = "nullable")]
    pub power_w: Option<f64>,
    #[serde(deserialize_with = "nullable")]
    pub persistence: Option<bool>,
    #[serde(deserialize_with = "nullable")]
    pub mig: Option<bool>,
    #[serde(deserialize_with = "nullable")]
    pub mps: Option<bool>,
    #[serde(deserialize_with = "nullable")]
    pub other_processes: Option<u32>,
    pub warnings: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct FlushProof {
    #[serde(deserialize_with = "nullable")]
    pub clean: Option<Eviction>,
    #[serde(deserialize_with = "nullable")]
    pub dirty: Option<Eviction>,
}

#[derive(Debug, Deserialize)]
pub struct Eviction {
    pub proved: bool,
    pub method: String,
    pub multiple: u32,
    pub bytes: u64,
    pub lines: u32,
    pub missed_after_read: f64,
    pub missed_after_write: f64,
    #[serde(deserialize_with = "nullable")]
    pub missed_discarded: Option<f64>,
    pub hit_cycles: u32,
    #[serde(deserialize_with = "nullable")]
    pub miss_cycles: Option<u32>,
    pub threshold_cycles: u32,
}

#[derive(Debug, Deserialize)]
pub struct Site {
    pub name: String,
    pub file: String,
    pub line: u32,
    pub scope: String,
    pub launches_seen: u32,
    pub options: String,
    pub calls: u64,
    pub warmup: u64,
    pub skipped: u64,
    pub unsampled: u64,
    pub timed: u64,
    pub holds_released: u64,
    pub holds_expired: u64,
    pub sample_rate: f64,
    pub warnings: Vec<String>,
    pub series: Vec<Series>,
}

impl Report {
    pub fn parse(text: &str) -> Report {
        assert_matches_schema(text);
        let report = serde_json::from_str(text);
        let mut report: Report =
            report.unwrap_or_else(|error| panic!("the report: {error}\n{text}"));
        // Other load on the test machine does not concern the test.
        report.process.warnings.retain(|warning| !warning.starts_with("the CPU is overloaded"));
        // The cost of skipped calls also depends on the machine.
        if report.process.budget.is_some() {
            let is_overrun = |warning: &mut String| warning.starts_with("the budget of ");
            report.process.overrun = report.process.warnings.extract_if(.., is_overrun).next();
        }
        if is_real() {
            report.process.warnings.retain(|warning| !warning.starts_with("no NVML"));
            for device in &mut report.devices {
                device
                    .warnings
                    .retain(|warning| !MACHINE_WARNINGS.iter().any(|w| warning.starts_with(w)));
            }
        }
        report
    }

    /// Asserts everything that must hold for every report.
    pub fn check(&self) {
        self.check_except(None);
    }

    /// Asserts everything that must hold for a report with at most this warning about the process.
    pub fn check_except(&self, warning: Option<&str>) {
        assert_eq!(self.schema, "gpu-time/1");
        let warnings = &self.process.warnings;
        assert_eq!(warnings.len(), usize::from(warning.is_some()), "{warnings:?}");
        let has_prefix = |prefix: &str| warnings.iter().all(|warning| warning.starts_with(prefix));
        assert!(warning.is_none_or(has_prefix), "{warnings:?}");
        assert!(self.sites.len() > 40, "sites that were never called are listed");
        let mut places: Vec<_> = self.sites.iter().map(|site| (&site.file, site.line)).collect();
        places.dedup();
        assert_eq!(places.len(), self.sites.len(), "every site is listed once");
        self.sites.iter().for_each(|site| site.check(self));
        self.devices.iter().for_each(Device::check);
    }

    pub fn site(&self, name: &str) -> &Site {
        let full = format!("scenario::{name}");
        let named = |site: &&Site| site.name == full || site.name == name;
        self.sites.iter().find(named).unwrap_or_else(|| panic!("no site `{name}`"))
    }

    /// Sums a number over all series.
    pub fn total(&self, part: impl Fn(&Series) -> u64) -> u64 {
        self.sites.iter().flat_map(|site| &site.series).map(part).sum()
    }

    /// Returns all warnings, except that the event bias moved: on some H200s the constant
    /// alternates between values, which is a property of the machine. Tests with scripted devices
    /// check that warning.
    pub fn warnings(&self) -> Vec<&str> {
        let is_of_run = |warning: &&String| !warning.starts_with("the event bias moved");
        let devices = self.devices.iter().flat_map(|device| &device.warnings).filter(is_of_run);
        let sites = self.sites.iter().flat_map(|site| &site.warnings);
        self.process.warnings.iter().chain(devices).chain(sites).map(String::as_str).collect()
    }
}

impl Device {
    fn check(&self) {
        let Device { event_bias_ns, event_bias_source, event_bias_error_ns, .. } = self;
        assert_eq!(event_bias_ns.is_some(), event_bias_source.is_some(), "{self:?}");
        let known = ["cupti", "table", "floor", "user"];
        assert!(
            event_bias_source.iter().all(|source| known.contains(&source.as_str())),
            "{self:?}"
        );
        // The error is unknown for a bias given by the user. For every other source, it is
        // reported.
        let is_calibrated = matches!(event_bias_source.as_deref(), Some("cupti" | "table"));
        assert!(!is_calibrated || self.event_held_empty_ns.is_some(), "{self:?}");
        let is_given = event_bias_source.as_deref() == Some("user");
        let is_said = event_bias_ns.is_some() && !is_given;
        assert_eq!(event_bias_error_ns.is_some(), is_said, "{self:?}");
        let times = [event_bias_ns, event_bias_error_ns, &self.event_step_ns];
        assert!(times.into_iter().flatten().all(|&ns| ns >= 0.0), "{self:?}");
        for seen in self.flush_proof.iter().flat_map(|proof| [&proof.clean, &proof.dirty]).flatten()
        {
            let mut shares = vec![seen.missed_after_read, seen.missed_after_write];
            shares.extend(seen.missed_discarded);
            assert_eq!(seen.missed_discarded.is_some(), seen.method == "write-discard", "{self:?}");
            assert!(shares.iter().all(|share| (0.0..=1.0).contains(share)), "{self:?}");
            let gone = seen.missed_after_read.min(seen.missed_after_write);
            let discarded = seen.missed_discarded.unwrap_or(1.0);
            assert!(!seen.proved || (gone >= 0.99 && discarded >= 0.5), "{self:?}");
            assert!((1..=4).contains(&seen.multiple), "{self:?}");
            assert!(self.flush_bytes.is_some_and(|bytes| bytes >= seen.bytes), "{self:?}");
            assert!(seen.lines >= 64 && seen.hit_cycles <= seen.threshold_cycles, "{self:?}");
            assert!(seen.miss_cycles.is_none_or(|miss| miss > seen.threshold_cycles), "{self:?}");
        }
    }
}

impl Site {
    fn check(&self, report: &Report) {
        let Site { name, calls, warmup, skipped, timed, .. } = self;
        assert_eq!(*calls, warmup + skipped + timed, "`{name}`");
        assert!(self.unsampled <= *skipped, "`{name}`: {} not sampled", self.unsampled);
        assert!((0.0..=1.0).contains(&self.sample_rate), "`{name}`: {}", self.sample_rate);
        assert!(["launches", "body"].contains(&&*self.scope), "`{name}`: {}", self.scope);
        if *timed == 0 {
            assert!(self.series.is_empty(), "`{name}`: no call was timed");
        }
        let functions = self.series.iter().filter(|series| series.launch.is_none());
        let begun: u64 = functions.map(|series| series.timed).sum();
        // A call in launches scope starts its sum row only when it returns.
        assert!(begun <= *timed, "`{name}`: {begun} rows of {timed} calls");
        if self.scope == "body" {
            assert!(begun == *timed, "`{name}`: {begun} rows of {timed} calls");
        }
        for series in &self.series {
            let line = series.launch.as_ref().map(|launch| launch.line);
            assert!(line.is_none_or(|line| line > 0), "`{name}`: {line:?}");
            let known = report.devices.iter().any(|device| device.id == series.device);
            assert!(known || series.device == "cuda:?", "`{name}`: {}", series.device);
            let are_measured = self.series.iter().any(|series| series.measured > 0);
            series.check(name, self.unsampled > 0 || are_measured);
        }
    }

    /// Returns the function's own row. Panics unless there is exactly one.
    pub fn row(&self) -> &Series {
        let rows: Vec<_> = self.rows(None).collect();
        let [row] = rows[..] else { panic!("`{}` has {} rows", self.name, rows.len()) };
        row
    }

    /// Returns the rows for the function, or for one of its launches, without replays of graphs.
    pub fn rows(&self, launch: Option<u32>) -> impl Iterator<Item = &Series> {
        let is_its = move |row: &&Series| row.launch.as_ref().map(|l| l.index) == launch;
        self.series.iter().filter(is_its).filter(|row| !row.graph)
    }

    /// Returns the row for one launch as a graph node. Panics unless there is exactly one.
    pub fn in_graphs(&self, index: u32) -> &Series {
        let is_its = |row: &&Series| row.launch.as_ref().is_some_and(|l| l.index == index);
        let rows: Vec<_> = self.series.iter().filter(is_its).filter(|row| row.graph).collect();
        let [row] = rows[..] else { panic!("`{}`#{index} has {} rows", self.name, rows.len()) };
        row
    }

    /// Returns the row for one launch. Panics unless there is exactly one.
    pub fn launch(&self, index: u32) -> &Series {
        let rows: Vec<_> = self.rows(Some(index)).collect();
        let [row] = rows[..] else { panic!("`{}`#{index} has {} rows", self.name, rows.len()) };
        row
    }

    /// Returns `(calls, warmup, skipped, timed)`.
    pub fn counts(&self) -> (u64, u64, u64, u64) {
        (self.calls, self.warmup, self.skipped, self.timed)
    }

    /// Sums a number over the site's series.
    pub fn total(&self, part: impl Fn(&Series) -> u64) -> u64 {
        self.series.iter().map(part).sum()
    }
}
