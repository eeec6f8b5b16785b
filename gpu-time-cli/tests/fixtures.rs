//! Builders of reports for the tests and the bench.

use std::time::{Duration, SystemTime};

use gpu_time_report::{
    CacheState, Clock, Device, Distribution, Histogram, Launches, Losses, Measure, Process,
    ScopeKind, Series, Site, Snapshot, Summary,
};

/// Builds a series from the raw times of its fed and starved samples, and its bias.
pub fn series(device: &str, fed: &[f64], starved: &[f64], bias_ns: f64) -> Series {
    let [all_fed, all_starved] = [fed, starved].map(summary);
    let summary = if fed.is_empty() { &all_starved } else { &all_fed };
    let stats = |bias: f64| summary.stats(bias, all_fed.sum(bias) + all_starved.sum(bias));
    let samples = (fed.len() + starved.len()) as u64;
    Series {
        device: device.to_owned(),
        launch: None,
        measure: Measure::Sum,
        key: None,
        cache: CacheState::AsFound,
        clock: Clock::Events,
        graph: false,
        timed: samples,
        measured: samples,
        in_flight: 0,
        lost: Losses::default(),
        fed: fed.len() as u64,
        starved: starved.len() as u64,
        at_floor: 0,
        queued: 0,
        nested: 0,
        tracked: 0,
        upper_bound: fed.is_empty() && !starved.is_empty(),
        launches: (samples > 0).then_some(Launches { min: 1, mean: 1.0, max: 1 }),
        raw_ns: stats(0.0),
        net_ns: stats(bias_ns),
        bias_ns: Some(bias_ns),
        net_sum_ns: stats(bias_ns).map(|net| net.sum),
        estimated_total_ns: stats(bias_ns).map(|net| net.sum),
        estimated_total_error_ns: stats(bias_ns).map(|_| 0.0),
        ci95_ns: summary.median_interval(),
        histogram: summary.histogram().clone(),
        net_histogram: Histogram::default(),
        timeline: None,
        bytes: None,
        flops: None,
    }
}

fn summary(times: &[f64]) -> Summary {
    let mut distribution = Distribution::new();
    times.iter().for_each(|&ns| distribution.record(ns));
    distribution.summary()
}

/// Builds a function with these series.
pub fn site(name: &str, line: u32, series: Vec<Series>) -> Site {
    let timed = series.iter().map(|series| series.timed).max().unwrap_or_default();
    Site {
        name: name.to_owned(),
        file: "src/main.rs".to_owned(),
        line,
        scope: ScopeKind::Launches,
        launches_seen: 1,
        options: String::new(),
        remarks: Vec::new(),
        calls: timed.saturating_add(3),
        warmup: 3,
        skipped: 0,
        unsampled: 0,
        timed,
        holds_released: 500,
        holds_expired: 2,
        sample_rate: 1.0,
        warnings: Vec::new(),
        series,
    }
}

/// Builds a GPU with this id and name.
pub fn gpu(id: &str, name: &str) -> Device {
    let driver = Some("13.0".to_owned());
    Device { driver, event_step_ns: Some(32.0), ..Device::new(id.to_owned(), name.to_owned()) }
}

/// Builds the report of a process.
pub fn report(pid: u32, devices: Vec<Device>, sites: Vec<Site>) -> Snapshot {
    let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_170_600 + u64::from(pid));
    let wall = Duration::from_secs(2);
    Snapshot::new(Process::new("app".to_owned(), pid, started, wall, None), devices, sites)
}
