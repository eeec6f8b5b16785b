//! One report of many.

mod device;
mod series;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use gpu_time_report::{Process, Site, Snapshot};

use crate::place::is_same_site;
use crate::{Failure, input};
use device::Devices;
use series::{Merged, is_finite};

/// So many different warnings are kept of all reports.
const WARNINGS: usize = 100;

/// The merged report of these files. Reading takes most of the time, so that every core does it; one
/// waits for each to be merged, in the order given, and no more of them are in memory.
pub fn files(files: &[PathBuf]) -> Result<Snapshot, Failure> {
    let cores = thread::available_parallelism().map_or(1, usize::from).min(files.len());
    thread::scope(|scope| {
        let readers: Vec<_> = (0..cores)
            .map(|first| {
                let (sender, reader) = mpsc::sync_channel(0);
                scope.spawn(move || {
                    let mut own = files.iter().skip(first).step_by(cores);
                    // Nobody receives after a failure.
                    own.all(|file| sender.send(input::report(file)).is_ok())
                });
                reader
            })
            .collect();
        let mut merge = Merge::default();
        let mut holders = HashMap::new();
        for (file, reader) in files.iter().zip(readers.iter().cycle()) {
            let report = reader.recv().map_err(|error| error.to_string())??;
            for process in processes(&report) {
                let Process { name, pid, started, wall_ns, .. } = process;
                // By the nanosecond, for many a container's process has the id 1 and starts with others.
                let report = (name.clone(), *pid, started.clone(), *wall_ns);
                if let Some(holder) = holders.insert(report, file)
                    && !std::ptr::eq(holder, file)
                {
                    return Err(format!(
                        "`{}` and `{}` both hold the report of {name} (pid {pid}) from {started}, which would \
                         count twice: leave one of them out",
                        holder.display(),
                        file.display()
                    ));
                }
            }
            merge
                .add(&report)
                .map_err(|why| format!("`{}` cannot be merged: {why}", file.display()))?;
        }
        merge.finish()
    })
}

/// The processes that a report is of.
fn processes(report: &Snapshot) -> &[Process] {
    match report.process().merged() {
        [] => std::slice::from_ref(report.process()),
        merged => merged,
    }
}

/// What the reports so far come to.
#[derive(Default)]
struct Merge {
    processes: Vec<Process>,
    warnings: Vec<String>,
    devices: Devices,
    sites: Vec<MergedSite>,
    /// The sites of each name, by their index.
    named: HashMap<String, Vec<usize>>,
}

struct MergedSite {
    /// Without its series.
    site: Site,
    series: Vec<Merged>,
}

impl Merge {
    fn add(&mut self, snapshot: &Snapshot) -> Result<(), &'static str> {
        let process = snapshot.process();
        for warning in process.warnings() {
            add_warning(&mut self.warnings, warning);
        }
        let alone = |process: &Process| Process { warnings: Vec::new(), ..process.clone() };
        self.processes.extend(processes(snapshot).iter().map(alone));
        // What the ids of this report mean among all.
        let devices = self.devices.add(snapshot.devices());
        for site in snapshot.sites() {
            let merged = self.site(site);
            for series in site.series() {
                let device = devices.get(series.device()).copied();
                let device = device.ok_or("it has series of devices that it does not list")?;
                match self.sites[merged].series.iter_mut().find(|m| m.is_of(device, series)) {
                    Some(known) => known.add(series)?,
                    None => self.sites[merged].series.push(Merged::new(device, series)?),
                }
            }
        }
        Ok(())
    }

    /// The place of a function among the merged ones, with its counts added.
    fn site(&mut self, site: &Site) -> usize {
        let named = self.named.get(site.name());
        let known = named.into_iter().flatten().copied();
        let known = known.into_iter().find(|&at| is_same_site(&self.sites[at].site, site));
        if let Some(at) = known {
            self.sites[at].add(site);
            return at;
        }
        let at = self.sites.len();
        self.named.entry(site.name().to_owned()).or_default().push(at);
        let site = Site { series: Vec::new(), ..site.clone() };
        self.sites.push(MergedSite { site, series: Vec::new() });
        at
    }

    /// The merged report. What only a hostile report adds up to is no number, and JSON has none for it.
    fn finish(self) -> Result<Snapshot, Failure> {
        let process = process(self.processes, self.warnings);
        let (devices, ids) = self.devices.finish();
        let sites = self.sites.into_iter().map(|MergedSite { site, series }| {
            let series: Vec<_> = series.into_iter().map(|merged| merged.finish(&ids)).collect();
            if !site.sample_rate.is_finite() || !series.iter().all(is_finite) {
                return Err(format!(
                    "the reports cannot be merged: the times or the work of `{}` come to more than a \
                     number can hold",
                    site.name
                ));
            }
            Ok(Site { series, ..site })
        });
        Ok(Snapshot::new(process, devices, sites.collect::<Result<_, _>>()?))
    }
}

impl MergedSite {
    fn add(&mut self, other: &Site) {
        let ours = &mut self.site;
        let calls = (ours.calls as f64, other.calls as f64);
        let weight = if other.calls > 0 { calls.1 / (calls.0 + calls.1) } else { 0.0 };
        ours.sample_rate += (other.sample_rate - ours.sample_rate) * weight;
        add(&mut ours.calls, other.calls);
        add(&mut ours.warmup, other.warmup);
        add(&mut ours.skipped, other.skipped);
        add(&mut ours.unsampled, other.unsampled);
        add(&mut ours.timed, other.timed);
        add(&mut ours.holds_released, other.holds_released);
        add(&mut ours.holds_expired, other.holds_expired);
        if ours.options != other.options || ours.scope != other.scope {
            add_warning(
                &mut ours.warnings,
                "the reports differ in its options; the first ones are shown",
            );
        }
        for warning in &other.warnings {
            add_warning(&mut ours.warnings, warning);
        }
    }
}

/// All processes as one.
fn process(merged: Vec<Process>, warnings: Vec<String>) -> Process {
    let Some((first, others)) = merged.split_first() else {
        return Process::new(String::new(), 0, UNIX_EPOCH, Duration::ZERO, None);
    };
    let mut process = first.clone();
    let mut names = vec![&first.name];
    for other in others {
        add(&mut process.wall_ns, other.wall_ns);
        if other.started < process.started {
            process.started.clone_from(&other.started);
        }
        if other.off.is_none() {
            process.off = None;
        }
        if !names.contains(&&other.name) {
            names.push(&other.name);
        }
    }
    if let others @ 1.. = names.len() - 1 {
        let programs = if others == 1 { "program" } else { "programs" };
        process.name = format!("{} and {others} other {programs}", first.name);
    }
    process.pid = 0;
    // Each of the processes has its own.
    process.budget = None;
    process.version = env!("CARGO_PKG_VERSION").to_owned();
    process.warnings = warnings;
    process.merged = merged;
    process
}

/// Adds a count; what a hostile report says may be too much.
fn add(count: &mut u64, more: u64) {
    *count = count.saturating_add(more);
}

/// Adds a warning that is not there yet.
fn add_warning(warnings: &mut Vec<String>, warning: &str) {
    const REST: &str = "there were more warnings, in the reports that were merged";
    if warnings.len() <= WARNINGS && !warnings.iter().any(|known| known == warning) {
        let is_last = warnings.len() == WARNINGS;
        warnings.push(if is_last { REST.to_owned() } else { warning.to_owned() });
    }
}
