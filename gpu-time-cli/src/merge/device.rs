//! The devices of merged reports.

use std::collections::{BTreeMap, HashMap};

use gpu_time_report::{Coverage, Device, Overlap, Process, WindowsFrom};

use super::combine::{add, add_warning, agree};
use super::sharing::{self, Users};

/// The devices of the reports merged so far, distinguished by id, name and driver.
#[derive(Default)]
pub struct Devices(Vec<MergedDevice>);

struct MergedDevice {
    device: Device,
    windows_from: WindowsFrom,
    /// The wall time of the processes with windows.
    covered_ns: f64,
    users: Users,
}

impl Devices {
    /// Adds the devices of the report of a process, which may be merged from these. Returns the index of the merged
    /// device for each id in the report.
    pub fn add<'a>(
        &mut self,
        devices: &'a [Device],
        process: &Process,
        processes: &[Process],
    ) -> HashMap<&'a str, usize> {
        let index = |device: &'a Device| {
            let id = without_variant(device.id());
            let is_same = |MergedDevice { device: ours, .. }: &MergedDevice| {
                (ours.id(), ours.name(), ours.driver()) == (id, device.name(), device.driver())
            };
            let of = processes.len() as u64;
            let with = if device.coverage.is_some() { of } else { 0 };
            let from = device.windows_from.unwrap_or(WindowsFrom { with, of });
            let covered = covered_ns(device, from, process.wall_ns, of);
            let index = match self.0.iter().position(is_same) {
                Some(known) => {
                    let MergedDevice { device: ours, windows_from, covered_ns, users } =
                        &mut self.0[known];
                    merge(ours, device, [*covered_ns, covered]);
                    *covered_ns += covered;
                    add(&mut windows_from.with, from.with);
                    add(&mut windows_from.of, from.of);
                    users.add(device, processes);
                    known
                }
                None => {
                    let mut users = Users::default();
                    users.add(device, processes);
                    let device = Device { id: id.to_owned(), ..device.clone() };
                    self.0.push(MergedDevice {
                        device,
                        windows_from: from,
                        covered_ns: covered,
                        users,
                    });
                    self.0.len() - 1
                }
            };
            (device.id(), index)
        };
        devices.iter().map(index).collect()
    }

    /// Returns the devices, sorted by id, and the final id of each index.
    pub fn finish(self) -> (Vec<Device>, Vec<String>) {
        let finished =
            self.0.into_iter().map(|MergedDevice { mut device, windows_from, users, .. }| {
                if users.have_shared() {
                    device.shared = true;
                    add_warning(&mut device.warnings, sharing::WARNING);
                }
                let is_part = device.coverage.is_some() && windows_from.with < windows_from.of;
                Device { windows_from: is_part.then_some(windows_from), ..device }
            });
        let mut devices: Vec<Device> = finished.collect();
        let mut variants: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (i, device) in devices.iter().enumerate() {
            variants.entry(device.id.clone()).or_default().push(i);
        }
        for (id, mut same) in variants {
            if same.len() > 1 {
                same.sort_by_key(|&i| (devices[i].name.clone(), devices[i].driver.clone()));
                for (variant, i) in (1..).zip(same) {
                    devices[i].id = format!("{id}/{variant}");
                }
            }
        }
        let ids: Vec<String> = devices.iter().map(|device| device.id.clone()).collect();
        devices.sort_by(|one, other| one.id.cmp(&other.id));
        (devices, ids)
    }
}

/// Returns an id without the `/N` that an earlier merge appended.
fn without_variant(id: &str) -> &str {
    match id.rsplit_once('/') {
        Some((id, variant)) if variant.parse::<u32>().is_ok() => id,
        _ => id,
    }
}

/// Returns the wall time of the processes whose windows a device has, `from.with` of `processes`.
///
/// A merged report with windows from some of its processes does not say which, so they count as if
/// they had run for as long as the mean process.
fn covered_ns(device: &Device, from: WindowsFrom, wall_ns: u64, processes: u64) -> f64 {
    match &device.coverage {
        Some(coverage) if coverage.windows > 0 => {
            wall_ns as f64 * (from.with as f64 / (processes as f64).max(1.0)).min(1.0)
        }
        _ => 0.0,
    }
}

/// Merges another report of the same device. Throttled times and overlaps are summed, and windows
/// are pooled, weighted by the wall times of the processes. Other values become unknown if they differ.
fn merge(ours: &mut Device, theirs: &Device, covered_ns: [f64; 2]) {
    agree(&mut ours.driver_release, &theirs.driver_release);
    agree(&mut ours.uuid, &theirs.uuid);
    agree(&mut ours.l2_bytes, &theirs.l2_bytes);
    agree(&mut ours.peak_gb_per_s, &theirs.peak_gb_per_s);
    agree(&mut ours.event_step_ns, &theirs.event_step_ns);
    agree(&mut ours.event_floor_ns, &theirs.event_floor_ns);
    agree(&mut ours.event_held_empty_ns, &theirs.event_held_empty_ns);
    agree(&mut ours.event_queued_empty_ns, &theirs.event_queued_empty_ns);
    agree(&mut ours.event_inner_ns, &theirs.event_inner_ns);
    agree(&mut ours.event_queued_inner_ns, &theirs.event_queued_inner_ns);
    agree(&mut ours.event_inner_error_ns, &theirs.event_inner_error_ns);
    agree(&mut ours.event_bias_ns, &theirs.event_bias_ns);
    agree(&mut ours.event_bias_source, &theirs.event_bias_source);
    agree(&mut ours.event_bias_error_ns, &theirs.event_bias_error_ns);
    agree(&mut ours.fed_margin_ns, &theirs.fed_margin_ns);
    agree(&mut ours.flush_bytes, &theirs.flush_bytes);
    agree(&mut ours.flush_proof, &theirs.flush_proof);
    agree(&mut ours.clocks, &theirs.clocks);
    agree(&mut ours.temperature_c, &theirs.temperature_c);
    agree(&mut ours.power_w, &theirs.power_w);
    agree(&mut ours.persistence, &theirs.persistence);
    agree(&mut ours.mig, &theirs.mig);
    agree(&mut ours.mps, &theirs.mps);
    agree(&mut ours.other_processes, &theirs.other_processes);
    ours.shared |= theirs.shared;
    ours.overlap = match (ours.overlap, theirs.overlap) {
        (Some(ours), Some(theirs)) => {
            let (ns, partial) = (ours.ns + theirs.ns, ours.partial || theirs.partial);
            Some(Overlap { ns, partial }).filter(|overlap| overlap.ns.is_finite())
        }
        (ours, theirs) => ours.or(theirs),
    };
    ours.coverage = match (ours.coverage.take(), &theirs.coverage) {
        // Sums of forged values can overflow, which JSON cannot represent.
        (Some(ours), Some(theirs)) => {
            Some(ours.pooled(theirs, covered_ns)).filter(Coverage::is_finite)
        }
        (ours, theirs) => ours.or_else(|| theirs.clone()),
    };
    for (reason, held) in theirs.throttle.iter().flatten() {
        let ours = ours.throttle.get_or_insert_default().entry(reason.clone()).or_insert(Some(0));
        *ours = ours.zip(*held).map(|(ours, theirs)| ours.saturating_add(theirs));
    }
    for warning in &theirs.warnings {
        add_warning(&mut ours.warnings, warning);
    }
}
