//! The JSON report, read as the public contract describes it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use jsonschema::Validator;
use serde::{Deserialize, Deserializer};

use super::is_real;

/// A key that must be there, and may be `null`.
fn nullable<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    Option::deserialize(from)
}

/// How warnings begin that are about a real GPU and who uses it.
const OF_THE_MACHINE: [&str; 8] = [
    "NVML does not tell of it",
    "throttled by",
    "its SM clock",
    "its memory clock",
    "shared with",
    "MPS is on",
    "MIG is on",
    "persistence mode is off",
];

/// Every report is what its JSON Schema says.
fn assert_is_of_the_schema(text: &str) {
    static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
        let schema = include_str!("../../../../gpu-time-report/schema/gpu-time-1.json");
        let schema = serde_json::from_str(schema).expect("the schema is JSON");
        jsonschema::draft202012::new(&schema).expect("it is a schema")
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
}

#[derive(Debug, Deserialize)]
pub struct Process {
    pub pid: u32,
    pub wall_ns: u64,
    pub timing: String,
    #[serde(deserialize_with = "nullable")]
    pub budget: Option<Budget>,
    pub warnings: Vec<String>,
}

#[derive(Debug, Deserialize)]
pub struct Budget {
    pub share: f64,
    pub cost_share: f64,
}

#[derive(Debug, Deserialize)]
pub struct Device {
    pub id: String,
    pub name: String,
    #[serde(deserialize_with = "nullable")]
    pub driver: Option<String>,
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
    pub clocks: Option<BTreeMap<String, Option<u32>>>,
    #[serde(deserialize_with = "nullable")]
    pub throttle: Option<BTreeMap<String, Option<u64>>>,
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
    pub sample_rate: f64,
    pub warnings: Vec<String>,
    pub series: Vec<Series>,
}

#[derive(Debug, Deserialize)]
pub struct Launch {
    pub index: u32,
    pub line: u32,
}

#[derive(Debug, Deserialize)]
pub struct Series {
    pub device: String,
    #[serde(deserialize_with = "nullable")]
    pub launch: Option<Launch>,
    pub measure: String,
    #[serde(deserialize_with = "nullable")]
    pub key: Option<String>,
    pub cache: String,
    pub clock: String,
    pub graph: bool,
    pub timed: u64,
    pub measured: u64,
    pub in_flight: u64,
    pub lost: BTreeMap<String, u64>,
    pub fed: u64,
    pub starved: u64,
    pub at_floor: u64,
    pub queued: u64,
    pub bias_ns: Option<f64>,
    pub nested: u64,
    pub tracked: u64,
    #[serde(deserialize_with = "nullable")]
    pub raw_ns: Option<Stats>,
    #[serde(deserialize_with = "nullable")]
    pub net_ns: Option<Stats>,
    #[serde(deserialize_with = "nullable")]
    pub estimated_total_ns: Option<f64>,
    #[serde(deserialize_with = "nullable")]
    pub estimated_total_error_ns: Option<f64>,
    #[serde(deserialize_with = "nullable")]
    pub ci95_ns: Option<[f64; 2]>,
    #[serde(deserialize_with = "nullable")]
    pub timeline: Option<Course>,
    #[serde(deserialize_with = "nullable")]
    pub bytes: Option<Bytes>,
    #[serde(deserialize_with = "nullable")]
    pub flops: Option<Flops>,
}

/// When samples were, and what.
#[derive(Debug, Deserialize)]
pub struct Course {
    pub origin_ns: u64,
    pub width_ns: u64,
    /// Index, count, least, mean and greatest.
    pub slots: Vec<(u64, u64, u64, u64, u64)>,
}

#[derive(Debug, Deserialize)]
pub struct Bytes {
    pub samples: u64,
    #[serde(deserialize_with = "nullable")]
    pub per_call: Option<f64>,
    pub total: f64,
    #[serde(deserialize_with = "nullable")]
    pub gb_per_s: Option<f64>,
    #[serde(deserialize_with = "nullable")]
    pub peak_share: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub struct Flops {
    pub samples: u64,
    #[serde(deserialize_with = "nullable")]
    pub per_call: Option<f64>,
    pub total: f64,
    #[serde(deserialize_with = "nullable")]
    pub tflop_per_s: Option<f64>,
}

#[derive(Debug, Deserialize)]
pub struct Stats {
    pub min: f64,
    pub p5: f64,
    pub median: f64,
    pub mean: f64,
    pub p95: f64,
    pub p99: f64,
    pub max: f64,
    pub stddev: f64,
    pub sum: f64,
}

impl Report {
    pub fn parse(text: &str) -> Report {
        assert_is_of_the_schema(text);
        let report = serde_json::from_str(text);
        let mut report: Report =
            report.unwrap_or_else(|error| panic!("the report: {error}\n{text}"));
        // What else goes on at the machine that runs the tests is none of their business.
        report.process.warnings.retain(|warning| !warning.starts_with("the CPU is overloaded"));
        if is_real() {
            report.process.warnings.retain(|warning| !warning.starts_with("no NVML"));
            for device in &mut report.devices {
                device
                    .warnings
                    .retain(|warning| !OF_THE_MACHINE.iter().any(|w| warning.starts_with(w)));
            }
        }
        report
    }

    /// What holds for every report.
    pub fn check(&self) {
        self.check_but(None);
    }

    /// What holds for every report, but for one warning about the process.
    pub fn check_but(&self, warning: Option<&str>) {
        assert_eq!(self.schema, "gpu-time/1");
        let warnings = &self.process.warnings;
        assert_eq!(warnings.len(), usize::from(warning.is_some()), "{warnings:?}");
        let begins = |begin: &str| warnings.iter().all(|warning| warning.starts_with(begin));
        assert!(warning.is_none_or(begins), "{warnings:?}");
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

    /// Σ over all series.
    pub fn total(&self, part: impl Fn(&Series) -> u64) -> u64 {
        self.sites.iter().flat_map(|site| &site.series).map(part).sum()
    }

    /// All warnings, whatever they are about.
    pub fn warnings(&self) -> Vec<&str> {
        let devices = self.devices.iter().flat_map(|device| &device.warnings);
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
        // How far the empty pair or a given bias is from the true one, nothing here measures.
        let is_calibrated = matches!(event_bias_source.as_deref(), Some("cupti" | "table"));
        assert!(!is_calibrated || self.event_held_empty_ns.is_some(), "{self:?}");
        assert!(is_calibrated || event_bias_error_ns.is_none(), "{self:?}");
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
        // A call in launches scope is begun as a sum when it returns.
        assert!(begun <= *timed, "`{name}`: {begun} rows of {timed} calls");
        if self.scope == "body" {
            assert!(begun == *timed, "`{name}`: {begun} rows of {timed} calls");
        }
        for series in &self.series {
            let line = series.launch.as_ref().map(|launch| launch.line);
            assert!(line.is_none_or(|line| line > 0), "`{name}`: {line:?}");
            let known = report.devices.iter().any(|device| device.id == series.device);
            assert!(known || series.device == "cuda:?", "`{name}`: {}", series.device);
            series.check(name);
        }
    }

    /// The function's own row. There must be one only.
    pub fn row(&self) -> &Series {
        let rows: Vec<_> = self.rows(None).collect();
        let [row] = rows[..] else { panic!("`{}` has {} rows", self.name, rows.len()) };
        row
    }

    /// The rows of the function, or of one of its launches, in streams.
    pub fn rows(&self, launch: Option<u32>) -> impl Iterator<Item = &Series> {
        let is_its = move |row: &&Series| row.launch.as_ref().map(|l| l.index) == launch;
        self.series.iter().filter(is_its).filter(|row| !row.graph)
    }

    /// The row of one launch as a node of graphs. There must be one only.
    pub fn in_graphs(&self, index: u32) -> &Series {
        let is_its = |row: &&Series| row.launch.as_ref().is_some_and(|l| l.index == index);
        let rows: Vec<_> = self.series.iter().filter(is_its).filter(|row| row.graph).collect();
        let [row] = rows[..] else { panic!("`{}`#{index} has {} rows", self.name, rows.len()) };
        row
    }

    /// The row of one launch. There must be one only.
    pub fn launch(&self, index: u32) -> &Series {
        let rows: Vec<_> = self.rows(Some(index)).collect();
        let [row] = rows[..] else { panic!("`{}`#{index} has {} rows", self.name, rows.len()) };
        row
    }

    /// `(calls, warmup, skipped, timed)`.
    pub fn counts(&self) -> (u64, u64, u64, u64) {
        (self.calls, self.warmup, self.skipped, self.timed)
    }

    /// Σ over its series.
    pub fn total(&self, part: impl Fn(&Series) -> u64) -> u64 {
        self.series.iter().map(part).sum()
    }
}

impl Course {
    /// It is of so many samples at least, since others may go on, with these statistics.
    fn check(&self, samples: u64, raw: &Stats) {
        assert!(self.slots.is_sorted_by(|a, b| a.0 < b.0), "{self:?}");
        assert!(self.slots.iter().all(|slot| slot.0 < 128 && slot.1 > 0), "{self:?}");
        assert!(self.slots.iter().all(|slot| slot.2 <= slot.3 && slot.3 <= slot.4), "{self:?}");
        let counted: u64 = self.slots.iter().map(|slot| slot.1).sum();
        assert!(counted >= samples, "{samples}: {self:?}");
        let least = self.slots.iter().map(|slot| slot.2).min();
        let most = self.slots.iter().map(|slot| slot.4).max();
        let ends = [raw.min, raw.max].map(|ns| Some(ns.round() as u64));
        assert_eq!([least, most], ends, "{self:?}");
    }
}

impl Series {
    fn check(&self, site: &str) {
        let Series { timed, measured, in_flight, fed, starved, at_floor, .. } = self;
        let lost: u64 = self.lost.values().sum();
        assert_eq!(*timed, measured + in_flight + lost, "`{site}`: {self:?}");
        assert_eq!(*measured, fed + starved + at_floor, "`{site}`: {self:?}");
        assert!(self.nested <= *measured && self.tracked <= *measured, "`{site}`: {self:?}");
        assert!(self.queued <= *fed, "`{site}`: {self:?}");
        // A replay is no call, and is not sampled like one.
        let is_estimated = !self.graph && fed + starved > 0;
        assert_eq!(self.estimated_total_ns.is_some(), is_estimated, "`{site}`: {self:?}");
        if let (Some(total), Some(net)) = (self.estimated_total_ns, &self.net_ns) {
            assert!(total > net.sum * 0.999_999 - 1.0, "`{site}`: {self:?}");
        }
        if let (Some([low, high]), Some(raw)) = (self.ci95_ns, &self.raw_ns) {
            assert!(low <= raw.median && raw.median <= high, "`{site}`: {self:?}");
        }
        if self.graph {
            // Nothing waits for a replay to be read.
            assert!(self.launch.is_some() && self.cache == "as-found", "`{site}`: {self:?}");
            assert_eq!(*in_flight, 0, "`{site}`: {self:?}");
        }
        let measures = ["sum", "span", "launch"];
        assert!(measures.contains(&&*self.measure), "`{site}`: {self:?}");
        assert_eq!(self.measure == "launch", self.launch.is_some(), "`{site}`: {self:?}");
        let caches = ["as-found", "cold", "cold-dirty", "after-cold", "partial"];
        assert!(caches.contains(&&*self.cache), "`{site}`: {self:?}");
        assert!(["events", "sync", "host"].contains(&&*self.clock), "`{site}`: {self:?}");
        assert_eq!(self.clock == "host", self.device == "host", "`{site}`: {self:?}");
        // Of barriers the GPU waits for none.
        assert!(self.clock == "events" || starved + at_floor == 0, "`{site}`: {self:?}");
        let bytes = self.bytes.as_ref().map(|bytes| (bytes.samples, bytes.total, bytes.gb_per_s));
        let flops =
            self.flops.as_ref().map(|flops| (flops.samples, flops.total, flops.tflop_per_s));
        for (samples, total, rate) in [bytes, flops].into_iter().flatten() {
            assert!((1..=fed + starved).contains(&samples), "`{site}`: {self:?}");
            assert!(total >= 0.0 && rate.is_none_or(f64::is_finite), "`{site}`: {self:?}");
        }
        assert_eq!(self.raw_ns.is_some(), fed + starved > 0, "`{site}`: {self:?}");
        assert_eq!(self.raw_ns.is_some(), self.timeline.is_some(), "`{site}`: {self:?}");
        if let Some((raw, course)) = self.raw_ns.as_ref().zip(self.timeline.as_ref()) {
            course.check(if *fed > 0 { *fed } else { *starved }, raw);
        }
        for stats in [&self.raw_ns, &self.net_ns].into_iter().flatten() {
            let Stats { min, p5, median, mean, p95, p99, max, stddev, sum } = *stats;
            let rising = [min, p5, median, p95, p99, max];
            assert!(rising.is_sorted() && min >= 0.0, "`{site}`: {stats:?}");
            // A mean may be off by what single precision leaves of a bias.
            assert!(
                min <= mean * 1.000_001 + 1e-3 && mean <= max * 1.000_001 + 1e-3,
                "`{site}`: {stats:?}"
            );
            assert!(stddev >= 0.0 && sum * 1.000_001 >= max, "`{site}`: {stats:?}");
        }
    }

    /// How many were lost for this reason. It must be known.
    pub fn lost(&self, reason: &str) -> u64 {
        *self.lost.get(reason).unwrap_or_else(|| panic!("no reason `{reason}`"))
    }

    pub fn all_lost(&self) -> u64 {
        self.lost.values().sum()
    }

    /// `(timed, measured, in_flight, lost)`.
    pub fn brackets(&self) -> (u64, u64, u64, u64) {
        (self.timed, self.measured, self.in_flight, self.all_lost())
    }

    /// What all calls took, and its standard error.
    pub fn estimate(&self) -> (f64, f64) {
        let estimate = self.estimated_total_ns.zip(self.estimated_total_error_ns);
        estimate.unwrap_or_else(|| panic!("no estimate: {self:?}"))
    }

    pub fn raw(&self) -> &Stats {
        self.raw_ns.as_ref().unwrap_or_else(|| panic!("no statistics: {self:?}"))
    }
}
