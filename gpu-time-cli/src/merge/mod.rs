//! The `merge` command: combines many reports into one.

mod combine;
mod device;
mod kernels;
mod runs;
mod series;
mod tree;

#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, UNIX_EPOCH};

use gpu_time_report::merge::agree;
use gpu_time_report::units::bounded;
use gpu_time_report::{Process, Series, Site, Snapshot, value};

use crate::input;
use crate::message::Failure;
use crate::series_id::is_same_site;
use combine::{add, add_warning};
use device::Devices;
use runs::processes;
use series::MergedSeries;
use tree::MergedTree;

/// Merges the reports in `files`, in that order.
///
/// Parsing takes most of the time, so one thread per core parses. Each thread holds at most one
/// report until the merging thread takes it, which bounds the memory in use.
pub fn files(files: &[PathBuf]) -> Result<Snapshot, Failure> {
    let cores = thread::available_parallelism().map_or(1, usize::from).min(files.len());
    thread::scope(|scope| {
        let readers: Vec<_> = (0..cores)
            .map(|first| {
                let (sender, reader) = mpsc::sync_channel(0);
                scope.spawn(move || {
                    let mut own = files.iter().skip(first).step_by(cores);
                    // Sending fails once merging has failed and the receivers are gone.
                    own.all(|file| sender.send(input::report(file)).is_ok())
                });
                reader
            })
            .collect();
        let mut merge = Merge::default();
        let mut holders = HashMap::new();
        for (file, reader) in files.iter().zip(readers.iter().cycle()) {
            let report = reader.recv().map_err(|error| error.to_string())??;
            for process in processes(&report.process) {
                let Process { name, pid, started, wall_ns, .. } = process;
                // The wall time in nanoseconds distinguishes containers, whose processes often all
                // have pid 1 and start in the same second.
                let identity = (name.clone(), *pid, started.clone(), *wall_ns);
                if let Some(holder) = holders.insert(identity, file)
                    && !std::ptr::eq(holder, file)
                {
                    return Err(format!(
                        "`{}` and `{}` both contain the report of {name} (pid {pid}) from {started}, which \
                         would be counted twice: omit one of them",
                        holder.display(),
                        file.display()
                    ));
                }
            }
            merge
                .add(&report)
                .map_err(|why| format!("cannot merge `{}`: {why}", file.display()))?;
        }
        Ok(merge.finish())
    })
}

/// The sum of the reports added so far.
#[derive(Default)]
pub struct Merge {
    processes: Vec<Process>,
    warnings: Vec<String>,
    devices: Devices,
    sites: Vec<MergedSite>,
    /// The indices into `sites` for each name.
    by_name: HashMap<String, Vec<usize>>,
    tree: MergedTree,
}

struct MergedSite {
    /// The site, with an empty list of series.
    site: Site,
    series: Vec<MergedSeries>,
}

impl Merge {
    /// Adds a report. The caller ensures that none is added twice.
    pub fn add(&mut self, snapshot: &Snapshot) -> Result<(), &'static str> {
        let process = &snapshot.process;
        for warning in &process.warnings {
            add_warning(&mut self.warnings, warning);
        }
        let without_warnings =
            |process: &Process| value!(Process { warnings: Vec::new(), ..process.clone() });
        let (all, first) = (processes(process), self.processes.len() as u32);
        self.processes.extend(all.iter().map(without_warnings));
        let devices = self.devices.add(&snapshot.devices, first, all.len() as u32);
        if self.devices.len() > Snapshot::MAX_DEVICES {
            return Err("the merged report would have more than 1,024 devices");
        }
        let mut sites = Vec::with_capacity(snapshot.sites.len());
        for site in &snapshot.sites {
            let index = self.add_site(site);
            sites.push(index);
            let merged = &mut self.sites[index].series;
            for series in &site.series {
                let device = devices.get(series.device.as_str()).copied();
                if device.is_none() && series.device != Series::UNKNOWN_DEVICE {
                    return Err("a series names a device that the report does not list");
                }
                let known = merged.iter().position(|merged| merged.is_of(device, series));
                let at = known.unwrap_or_else(|| {
                    merged.push(MergedSeries::new(device, series));
                    merged.len() - 1
                });
                merged[at].add(site, series, process, first)?;
            }
        }
        self.tree.add(&snapshot.tree, &sites, &devices);
        Ok(())
    }

    /// Adds the counts of a site, without its series, and returns its index.
    fn add_site(&mut self, site: &Site) -> usize {
        let mut named = self.by_name.get(&site.name).into_iter().flatten().copied();
        if let Some(known) = named.find(|&i| is_same_site(&self.sites[i].site, site)) {
            self.sites[known].add(site);
            return known;
        }
        let index = self.sites.len();
        self.by_name.entry(site.name.to_owned()).or_default().push(index);
        let site = value!(Site { series: Vec::new(), ..site.clone() });
        self.sites.push(MergedSite { site, series: Vec::new() });
        index
    }

    /// Returns the merged report.
    pub fn finish(self) -> Snapshot {
        let (devices, ids) = self.devices.finish(&self.processes);
        let process = process(self.processes, self.warnings);
        let sites = self.sites.into_iter().map(|MergedSite { site, series }| {
            let series = series.into_iter().map(|merged| merged.finish(&ids)).collect();
            value!(Site { series, ..site })
        });
        Snapshot::new(process, devices, sites.collect()).with_tree(self.tree.finish(&ids))
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
                "the options differ between the reports; those of the first are shown",
            );
        }
        for warning in &other.warnings {
            add_warning(&mut ours.warnings, warning);
        }
    }
}

/// The maximum number of labels or versions that a warning names.
const NAMED: usize = 4;

/// Adds a warning if the merged reports have different labels or versions of the program.
fn warn_if_mixed<'a>(
    warnings: &mut Vec<String>,
    what: &str,
    values: impl Iterator<Item = &'a Option<String>>,
) {
    let all: BTreeSet<&str> = values.map(|value| value.as_deref().unwrap_or("none")).collect();
    let named = bounded(all.iter().map(|value| (*value).to_owned()).collect(), NAMED, "more");
    if all.len() > 1 {
        let named = named.join(", ");
        add_warning(warnings, &format!("the merged reports have different {what}: {named}"));
    }
}

/// Combines all processes into one.
fn process(merged: Vec<Process>, warnings: Vec<String>) -> Process {
    let Some((first, others)) = merged.split_first() else {
        return Process::new(String::new(), 0, UNIX_EPOCH, Duration::ZERO, None);
    };
    let mut process = first.clone();
    for other in others {
        add(&mut process.wall_ns, other.wall_ns);
        if other.started < process.started {
            process.started.clone_from(&other.started);
        }
        if other.off.is_none() {
            process.off = None;
        }
        if other.kernels.is_none() {
            process.kernels = None;
        }
        agree(&mut process.cupti_version, &other.cupti_version);
        agree(&mut process.program_version, &other.program_version);
        agree(&mut process.label, &other.label);
        agree(&mut process.host, &other.host);
    }
    let names: BTreeSet<&str> = merged.iter().map(|process| process.name.as_str()).collect();
    if let others @ 1.. = names.len() - 1 {
        let programs = if others == 1 { "program" } else { "programs" };
        process.name = format!("{} and {others} other {programs}", first.name);
    }
    let mut warnings = warnings;
    warn_if_mixed(&mut warnings, "labels", merged.iter().map(|process| &process.label));
    let versions = merged.iter().map(|process| &process.program_version);
    warn_if_mixed(&mut warnings, "versions of the program", versions);
    process.pid = 0;
    // Each process had its own budget.
    process.budget = None;
    process.version = env!("CARGO_PKG_VERSION").to_owned();
    process.warnings = warnings;
    process.merged = merged;
    process
}
