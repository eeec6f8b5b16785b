//! The runs of a program, each of which may have several processes.

use std::collections::BTreeMap;

use gpu_time_report::{Process, Run, Snapshot, value};

use crate::overlap;

/// Joins the processes of one host whose times overlap into one run, such as the workers of a
/// server. They share the clocks and the temperature of the run, so they differ by less than runs
/// do.
pub fn joined(report: &Snapshot) -> Snapshot {
    let firsts = firsts(&report.process.merged);
    let mut sites = report.sites.to_vec();
    for series in sites.iter_mut().flat_map(|site| &mut site.series) {
        let mut runs: BTreeMap<u32, Vec<Run>> = BTreeMap::new();
        for run in std::mem::take(&mut series.runs) {
            let first = firsts.get(run.process as usize).copied().unwrap_or(run.process);
            runs.entry(first).or_default().push(run);
        }
        series.runs = runs.into_iter().map(|(first, of_run)| mean(first, of_run)).collect();
    }
    Snapshot::new(report.process.clone(), report.devices.to_vec(), sites)
}

/// Returns `true` if several processes of a merged report belong to one run.
pub fn have_several_processes(report: &Snapshot) -> bool {
    (0..).zip(firsts(&report.process.merged)).any(|(place, first)| place != first)
}

/// Returns, for each process, the place of the first process of its run. A process with an unknown
/// host is a run by itself.
fn firsts(processes: &[Process]) -> Vec<u32> {
    overlap::firsts(processes.iter(), |process| process.host.as_deref())
}

/// Returns the figures of a run that are compared, as means over its processes. If any has fed
/// samples, the others are ignored.
fn mean(first: u32, mut of_run: Vec<Run>) -> Run {
    if of_run.iter().any(|run| run.fed > 0) {
        of_run.retain(|run| run.fed > 0);
    }
    let count = of_run.len() as f64;
    let net_ns: Option<f64> = of_run.iter().map(|run| run.net_median_ns).sum();
    value!(Run {
        process: first,
        fed: of_run.iter().map(|run| run.fed).max().unwrap_or_default(),
        raw_median_ns: of_run.iter().map(|run| run.raw_median_ns).sum::<f64>() / count,
        net_median_ns: net_ns.map(|ns| ns / count),
    })
}
