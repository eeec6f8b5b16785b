//! Builders of reports for the tests and the bench.

use std::time::{Duration, SystemTime};

use gpu_time_report::{
    Device, Distribution, Measure, Process, ScopeKind, Series, Site, Snapshot, Summary, value,
};

/// Builds a series from the raw times of its fed and starved samples, and its bias.
pub fn series(device: &str, fed: &[f64], starved: &[f64], bias_ns: f64) -> Series {
    let [fed, starved] = [fed, starved].map(summary);
    let has_samples = fed.count() + starved.count() > 0;
    let launches = has_samples.then_some(value!(Launches { min: 1, mean: 1.0, max: 1 }));
    Series::of_samples(device, Measure::Sum, [&fed, &starved], launches, bias_ns)
}

fn summary(times: &[f64]) -> Summary {
    let mut distribution = Distribution::new();
    times.iter().for_each(|&ns| distribution.record(ns));
    distribution.summary()
}

/// Builds a function with these series.
pub fn site(name: &str, line: u32, series: Vec<Series>) -> Site {
    let timed = series.iter().map(|series| series.timed).max().unwrap_or_default();
    value!(Site {
        launches_seen: 1,
        calls: timed.saturating_add(3),
        warmup: 3,
        timed,
        holds_released: 500,
        holds_expired: 2,
        series,
        ..Site::new(name.to_owned(), "src/main.rs".to_owned(), line, ScopeKind::Launches)
    })
}

/// Builds a GPU with this id and name.
pub fn gpu(id: &str, name: &str) -> Device {
    let driver = Some("13.0".to_owned());
    value!(Device {
        driver,
        event_step_ns: Some(32.0),
        ..Device::new(id.to_owned(), name.to_owned())
    })
}

/// Builds the report of a process.
pub fn report(pid: u32, devices: Vec<Device>, sites: Vec<Site>) -> Snapshot {
    let started = SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_170_600 + u64::from(pid));
    let wall = Duration::from_secs(2);
    Snapshot::new(Process::new("app".to_owned(), pid, started, wall, None), devices, sites)
}
