//! The runs of a program, each of which may have several processes.

use std::collections::{BTreeMap, BTreeSet};

use gpu_time_report::{Process, Run, Snapshot, value};

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
    let firsts = firsts(&report.process.merged);
    firsts.iter().collect::<BTreeSet<_>>().len() < firsts.len()
}

/// Returns, for each process, the index of the first process of its run. A process with an unknown
/// host or time is a run by itself.
fn firsts(processes: &[Process]) -> Vec<u32> {
    let mut firsts: Vec<u32> = (0..).take(processes.len()).collect();
    let mut known: Vec<(&str, [u64; 2], u32)> = std::iter::zip(processes, 0..)
        .filter_map(|(process, place)| {
            Some((process.host.as_deref()?, process.period_ms()?, place))
        })
        .collect();
    known.sort_unstable();
    let mut run: Option<(&str, u64, u32)> = None;
    for (host, [start, end], place) in known {
        run = match run {
            Some((same, until, first)) if same == host && start <= until => {
                firsts[place as usize] = first;
                Some((host, until.max(end), first))
            }
            _ => Some((host, end, place)),
        };
    }
    firsts
}

/// Returns the mean figures of a run's processes. If any has fed samples, the others are ignored.
fn mean(first: u32, mut of_run: Vec<Run>) -> Run {
    if of_run.iter().any(|run| run.fed > 0) {
        of_run.retain(|run| run.fed > 0);
    }
    if let [run] = of_run[..] {
        return value!(Run { process: first, ..run });
    }
    let sum = |count: fn(&Run) -> u64| of_run.iter().map(count).fold(0, u64::saturating_add);
    let mean =
        |figure: fn(&Run) -> f64| of_run.iter().map(figure).sum::<f64>() / of_run.len() as f64;
    let has_net = of_run.iter().all(|run| run.net_median_ns.is_some());
    value!(Run {
        process: first,
        fed: sum(|run| run.fed),
        starved: sum(|run| run.starved),
        raw_median_ns: mean(|run| run.raw_median_ns),
        net_median_ns: has_net.then(|| mean(|run| run.net_median_ns.unwrap_or_default())),
        raw_mean_ns: mean(|run| run.raw_mean_ns),
        ci95_ns: None,
    })
}
