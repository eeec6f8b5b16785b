//! A series in the report, and the checks that apply to every series.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::nullable::nullable;

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
    #[serde(deserialize_with = "nullable")]
    pub inner_brackets: Option<PerSample>,
    pub timed: u64,
    pub measured: u64,
    pub in_flight: u64,
    pub lost: BTreeMap<String, u64>,
    pub fed: u64,
    pub starved: u64,
    pub at_floor: u64,
    pub queued: u64,
    pub bias_ns: Option<f64>,
    pub added_ns: f64,
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
    pub unknown_error: Option<String>,
    #[serde(deserialize_with = "nullable")]
    pub ci95_ns: Option<[f64; 2]>,
    #[serde(deserialize_with = "nullable")]
    pub timeline: Option<SampleTimeline>,
    #[serde(deserialize_with = "nullable")]
    pub bytes: Option<Bytes>,
    #[serde(deserialize_with = "nullable")]
    pub flops: Option<Flops>,
    pub opened: u64,
    #[serde(flatten)]
    pub kernels: KernelTimes,
}

/// The smallest and largest number of brackets in a sample.
#[derive(Debug, Deserialize)]
pub struct PerSample {
    pub min: u32,
    pub max: u32,
}

/// The kernels and times of opened calls.
#[derive(Debug, Deserialize)]
pub struct KernelTimes {
    #[serde(deserialize_with = "nullable")]
    pub busy_ns: Option<Stats>,
    #[serde(deserialize_with = "nullable")]
    pub self_busy_ns: Option<Stats>,
    #[serde(deserialize_with = "nullable")]
    pub span_ns: Option<Stats>,
    #[serde(deserialize_with = "nullable")]
    pub gaps_ns: Option<Stats>,
    #[serde(deserialize_with = "nullable")]
    pub host_ns: Option<Stats>,
    #[serde(deserialize_with = "nullable")]
    pub kernels_per_call: Option<f64>,
    #[serde(deserialize_with = "nullable")]
    pub streams: Option<u32>,
    pub kernels: Vec<Kernel>,
    pub elsewhere: Vec<Elsewhere>,
    pub zero_times: u64,
}

#[derive(Debug, Deserialize)]
pub struct Kernel {
    pub name: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub count: u64,
    pub per_call: f64,
    pub total_ns: f64,
    pub share: f64,
}

#[derive(Debug, Deserialize)]
pub struct Elsewhere {
    pub name: String,
    pub count: u64,
    pub total_ns: f64,
    pub why: String,
}

/// The times at which samples were taken, and their durations.
#[derive(Debug, Deserialize)]
pub struct SampleTimeline {
    pub origin_ns: u64,
    pub width_ns: u64,
    /// Index, count, minimum, mean and maximum.
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

impl SampleTimeline {
    /// Asserts that the timeline has at least `samples` samples, because unused ones may be
    /// included, and that its extremes equal those of `raw`.
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

impl KernelTimes {
    /// `is_sampled` if recorded calls may stand for different numbers of calls.
    fn check(&self, opened: u64, site: &str, is_sampled: bool) {
        let stats = [&self.busy_ns, &self.self_busy_ns, &self.span_ns, &self.gaps_ns];
        assert!(stats.iter().all(|of| of.is_some() == (opened > 0)), "`{site}`: {self:?}");
        // Calls timed by events may have one, too.
        assert!(opened == 0 || self.host_ns.is_some(), "`{site}`: {self:?}");
        assert!(self.kernels.len() <= 256, "`{site}`");
        let total: f64 = self.kernels.iter().map(|kernel| kernel.total_ns).sum();
        let shares: f64 = self.kernels.iter().map(|kernel| kernel.share).sum();
        assert!(total == 0.0 || (shares - 1.0).abs() < 1e-6, "`{site}`: {shares}");
        assert!(self.kernels.is_sorted_by(|a, b| a.total_ns >= b.total_ns), "`{site}`");
        for kernel in &self.kernels {
            let per_call = kernel.count as f64 / opened as f64;
            let is_exact = (kernel.per_call - per_call).abs() < 1e-9;
            assert!(is_exact || is_sampled && kernel.per_call > 0.0, "`{site}`: {kernel:?}");
        }
    }
}

impl Series {
    pub fn check(&self, site: &str, is_sampled: bool) {
        let Series { timed, measured, in_flight, fed, starved, at_floor, .. } = self;
        let lost: u64 = self.lost.values().sum();
        let opened = self.opened;
        assert_eq!(*timed, measured + opened + in_flight + lost, "`{site}`: {self:?}");
        self.kernels.check(opened, site, is_sampled);
        // Without events, the times come from opened calls.
        let samples = fed + starved + if self.clock == "kernels" { opened } else { 0 };
        assert_eq!(*measured, fed + starved + at_floor, "`{site}`: {self:?}");
        assert!(self.nested <= *measured && self.tracked <= *measured, "`{site}`: {self:?}");
        assert!(self.queued <= *fed, "`{site}`: {self:?}");
        // Replays are not calls and are not sampled like calls.
        let is_estimated = !self.graph && samples + opened > 0;
        assert_eq!(self.estimated_total_ns.is_some(), is_estimated, "`{site}`: {self:?}");
        if let (Some(total), Some(net)) = (self.estimated_total_ns, &self.net_ns) {
            assert!(total > net.sum * 0.999_999 - 1.0, "`{site}`: {self:?}");
        }
        let has_error = self.estimated_total_error_ns.is_some();
        assert_eq!(is_estimated, has_error != self.unknown_error.is_some(), "`{site}`: {self:?}");
        if let (Some([low, high]), Some(raw)) = (self.ci95_ns, &self.raw_ns) {
            assert!(low <= raw.median && raw.median <= high, "`{site}`: {self:?}");
        }
        if self.graph {
            // A replay is counted only once it has been read.
            assert!(self.launch.is_some() && self.cache == "as-found", "`{site}`: {self:?}");
            assert_eq!(*in_flight, 0, "`{site}`: {self:?}");
        }
        let measures = ["sum", "span", "launch"];
        assert!(measures.contains(&&*self.measure), "`{site}`: {self:?}");
        assert_eq!(self.measure == "launch", self.launch.is_some(), "`{site}`: {self:?}");
        let caches = ["as-found", "cold", "cold-dirty", "after-cold", "partial"];
        assert!(caches.contains(&&*self.cache), "`{site}`: {self:?}");
        assert!(
            ["events", "sync", "host", "kernels"].contains(&&*self.clock),
            "`{site}`: {self:?}"
        );
        assert_eq!(self.clock == "host", self.device == "host", "`{site}`: {self:?}");
        // Only event pairs can be starved or at the floor, because the GPU does not wait for
        // barriers.
        assert!(self.clock == "events" || starved + at_floor == 0, "`{site}`: {self:?}");
        let bytes = self.bytes.as_ref().map(|bytes| (bytes.samples, bytes.total, bytes.gb_per_s));
        let flops =
            self.flops.as_ref().map(|flops| (flops.samples, flops.total, flops.tflop_per_s));
        for (samples, total, rate) in [bytes, flops].into_iter().flatten() {
            assert!((1..=fed + starved + opened).contains(&samples), "`{site}`: {self:?}");
            assert!(total >= 0.0 && rate.is_none_or(f64::is_finite), "`{site}`: {self:?}");
        }
        assert_eq!(self.raw_ns.is_some(), samples > 0, "`{site}`: {self:?}");
        assert_eq!(self.raw_ns.is_some(), self.timeline.is_some(), "`{site}`: {self:?}");
        if let Some((raw, timeline)) = self.raw_ns.as_ref().zip(self.timeline.as_ref()) {
            timeline.check(if *fed > 0 { *fed } else { samples - fed }, raw);
        }
        for stats in [&self.raw_ns, &self.net_ns].into_iter().flatten() {
            let Stats { min, p5, median, mean, p95, p99, max, stddev, sum } = *stats;
            let rising = [min, p5, median, p95, p99, max];
            assert!(rising.is_sorted() && min >= 0.0, "`{site}`: {stats:?}");
            // The mean may differ by the bias's single-precision rounding error.
            assert!(
                min <= mean * 1.000_001 + 1e-3 && mean <= max * 1.000_001 + 1e-3,
                "`{site}`: {stats:?}"
            );
            assert!(stddev >= 0.0 && sum * 1.000_001 >= max, "`{site}`: {stats:?}");
        }
    }

    /// Returns the number of samples lost for this reason. Panics if the reason is unknown.
    pub fn lost(&self, reason: &str) -> u64 {
        *self.lost.get(reason).unwrap_or_else(|| panic!("no reason `{reason}`"))
    }

    pub fn all_lost(&self) -> u64 {
        self.lost.values().sum()
    }

    /// Returns `(timed, measured, in_flight, lost)`.
    pub fn brackets(&self) -> (u64, u64, u64, u64) {
        (self.timed, self.measured, self.in_flight, self.all_lost())
    }

    /// Returns the estimated total duration of all calls.
    pub fn total(&self) -> f64 {
        self.estimated_total_ns.unwrap_or_else(|| panic!("no estimate: {self:?}"))
    }

    /// Returns the estimated total duration of all calls, and its standard error.
    pub fn estimate(&self) -> (f64, f64) {
        let estimate = self.estimated_total_ns.zip(self.estimated_total_error_ns);
        estimate.unwrap_or_else(|| panic!("no estimate: {self:?}"))
    }

    pub fn raw(&self) -> &Stats {
        self.raw_ns.as_ref().unwrap_or_else(|| panic!("no statistics: {self:?}"))
    }
}
