//! Expected bracket durations, computed only from the simulated driver's trace.

use std::collections::{BTreeMap, BTreeSet};

use gpu_time_sim_driver::trace::{Call, Trace};

use super::report::Report;

/// The expected samples for each launch.
///
/// Each kernel is launched at only one place. A bracket therefore belongs to the place whose kernel
/// was the first that the thread launched after recording the start, provided that the launch came
/// before the stop.
pub struct Timeline(BTreeMap<String, Vec<f64>>);

impl Timeline {
    /// Computes the samples. `kernels` maps each kernel to the place that launches it.
    pub fn of(trace: &Trace, kernels: &BTreeMap<u64, String>) -> Timeline {
        let number = |call: &Call, name: &str| call.args.get(name)?.as_u64();
        // The launches of each thread, in order, and the thread, sequence number and stream of each record.
        let mut launches: BTreeMap<u32, Vec<(u64, u64, Option<u64>)>> = BTreeMap::new();
        let mut records: BTreeMap<u64, (u32, u64, Option<u64>)> = BTreeMap::new();
        for call in trace.calls() {
            if call.name.starts_with("cuLaunchKernel")
                && let Some(function) = number(call, "f")
            {
                let stream = number(call, "hStream");
                launches.entry(call.thread).or_default().push((call.seq, function, stream));
            }
            if call.name.starts_with("cuEventRecord")
                && let Some(record) = number(call, "record")
            {
                records.insert(record, (call.thread, call.seq, number(call, "hStream")));
            }
        }
        let mut values: BTreeMap<String, Vec<f64>> =
            kernels.values().map(|place| (place.clone(), Vec::new())).collect();
        let pairs = trace.elapsed();
        // The distance between two starts shows when a bracket began, not how long it took.
        let starts: BTreeSet<_> = pairs.iter().map(|pair| pair.start.record).collect();
        for elapsed in pairs.iter().filter(|pair| !starts.contains(&pair.stop.record)) {
            let record = |command: &gpu_time_sim_driver::trace::Command| {
                records.get(&command.record?).copied()
            };
            // Records made by a graph do not belong to a bracket.
            let (Some((thread, start, stream)), Some((_, stop, same))) =
                (record(elapsed.start), record(elapsed.stop))
            else {
                continue;
            };
            let Some(launches) = launches.get(&thread) else { continue };
            let next = launches.partition_point(|(seq, ..)| *seq < start);
            let Some((seq, function, its)) = launches.get(next) else { continue };
            // Pairs on two different streams, or on one stream without a launch in between, only
            // compare clocks.
            if *seq < stop
                && (stream, same) == (*its, *its)
                && let Some(values) = kernels.get(function).and_then(|place| values.get_mut(place))
            {
                assert_eq!(elapsed.reported_ns, elapsed.expected_ns());
                values.push(elapsed.expected_ns() as f64);
            }
        }
        Timeline(values)
    }

    /// Asserts that the report's samples are exactly these values. Returns the number of values
    /// compared.
    pub fn check(&self, report: &Report) -> usize {
        let mut compared = 0;
        for (place, values) in &self.0 {
            let (name, launch) = match place.split_once('#') {
                Some((name, index)) => (name, Some(index)),
                None => (place.as_str(), None),
            };
            let Some(site) = report.sites.iter().find(|site| site.name == name) else { continue };
            // In launches scope, a place without an index is launch 0.
            let launch = match launch {
                Some(index) => index.parse().ok(),
                None if site.scope == "launches" => Some(0),
                None => None,
            };
            if launch.is_none() && place.contains('#') {
                continue;
            }
            // Other clocks do not use events.
            let rows = || site.rows(launch).filter(|row| row.clock == "events");
            let measured: u64 = rows().map(|row| row.measured).sum();
            assert_eq!(measured, values.len() as u64, "`{place}`: {:?}", site.series);
            compared += values.len();
            let mut values = values.clone();
            values.sort_by(f64::total_cmp);
            // Samples at the floor, in which nothing ran, are the shortest.
            let at_floor: u64 = rows().map(|row| row.at_floor).sum();
            let values = &values[at_floor as usize..];
            let (Some(least), Some(most)) = (values.first(), values.last()) else { continue };
            let sum = |part: fn(&super::report::Stats) -> f64| {
                rows().filter_map(|row| row.raw_ns.as_ref()).map(part).sum::<f64>()
            };
            let added_ns: f64 = rows().map(|row| row.added_ns).sum();
            near(sum(|stats| stats.sum) + added_ns, values.iter().sum(), place);
            for row in rows().filter(|row| row.raw_ns.is_some()) {
                let stats = row.raw();
                let least = least - row.added_ns - 1.0;
                assert!(stats.min > least && stats.max < most + 1.0, "`{place}`: {row:?}");
            }
            // The statistics cover the fed samples if there are any, otherwise all samples.
            if let [row] = rows().collect::<Vec<_>>()[..]
                && (row.fed == 0 || row.starved == 0)
                && row.added_ns == 0.0
            {
                near(row.raw().min, *least, place);
                near(row.raw().max, *most, place);
            }
        }
        compared
    }
}

/// Asserts equality within the driver's single precision.
pub fn near(found: f64, expected: f64, what: &str) {
    assert!(
        (found - expected).abs() <= expected * 1e-6 + 0.5,
        "`{what}`: {found}, expected {expected}"
    );
}
