//! The devices of merged reports.

use std::collections::{BTreeMap, HashMap};

use gpu_time_report::{Device, Process, value};

use super::combine::{add, add_warning};
use crate::overlap;

/// The warning about a device that processes used at the same time. Each process records only its
/// own work, so what the others ran counts as idle time.
pub const SHARED: &str = "processes used this GPU at the same time: its busy and idle shares are means over the \
                          processes, each of which knows only its own work";

/// The devices of the reports merged so far, distinguished by UUID, name and driver; without a UUID,
/// by id, name and driver.
#[derive(Default)]
pub struct Devices(Vec<Device>);

impl Devices {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds the devices of a report of so many processes, whose first one has the place `first` in
    /// the merged report. Returns the index of the merged device for each id in the report.
    pub fn add<'a>(
        &mut self,
        devices: &'a [Device],
        first: u32,
        processes: u32,
    ) -> HashMap<&'a str, usize> {
        let index = |theirs: &'a Device| {
            let known = self.0.iter().position(|ours| is_same(ours, theirs));
            let used_by = used_by(theirs, processes);
            let of = used_by.len() as u64;
            let with = theirs.known_coverage().map_or(0, |_| of);
            let from = theirs.windows_from.unwrap_or(value!(WindowsFrom { with, of }));
            let used_by = used_by.into_iter().map(|at| first.saturating_add(at));
            let id = without_variant(&theirs.id);
            let index = known.unwrap_or(self.0.len());
            match self.0.get_mut(index) {
                Some(ours) => {
                    ours.merge(theirs, [&*ours, theirs].map(covered_ns));
                    if id < &*ours.id {
                        id.clone_into(&mut ours.id);
                    }
                    for warning in &theirs.warnings {
                        add_warning(&mut ours.warnings, warning);
                    }
                    let all_from = ours.windows_from.get_or_insert_default();
                    add(&mut all_from.with, from.with);
                    add(&mut all_from.of, from.of);
                    ours.used_by.extend(used_by);
                }
                None => self.0.push(value!(Device {
                    id: id.to_owned(),
                    windows_from: Some(from),
                    used_by: used_by.collect(),
                    ..theirs.clone()
                })),
            }
            (theirs.id.as_str(), index)
        };
        devices.iter().map(index).collect()
    }

    /// Returns the devices, sorted by id, and the final id of each index.
    pub fn finish(self, processes: &[Process]) -> (Vec<Device>, Vec<String>) {
        let mut devices = self.0;
        for device in &mut devices {
            // A report from elsewhere may list a GPU twice.
            device.used_by.sort_unstable();
            device.used_by.dedup();
            if let Some(coverage) = &mut device.coverage {
                coverage.bound_kernels();
            }
            if device.uuid.is_some() && were_simultaneous(&device.used_by, processes) {
                device.shared = true;
                add_warning(&mut device.warnings, SHARED);
            }
            let has_coverage = device.known_coverage().is_some();
            device.windows_from =
                device.windows_from.filter(|from| has_coverage && from.with < from.of);
            if device.used_by.len() >= processes.len() {
                device.used_by.clear();
            }
        }
        let mut variants: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (i, device) in devices.iter().enumerate() {
            variants.entry(device.id.clone()).or_default().push(i);
        }
        for (id, mut same) in variants {
            if same.len() > 1 {
                let identity = |device: &Device| {
                    (device.name.clone(), device.driver.clone(), device.uuid.clone())
                };
                same.sort_by_key(|&i| identity(&devices[i]));
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

/// Returns `true` for the same device. Processes may give a GPU different ids, and different GPUs the
/// same id.
fn is_same(ours: &Device, theirs: &Device) -> bool {
    let is_alike =
        (&ours.uuid, &ours.name, &ours.driver) == (&theirs.uuid, &theirs.name, &theirs.driver);
    is_alike && (ours.uuid.is_some() || ours.id == without_variant(&theirs.id))
}

/// Returns an id without the `/N` that an earlier merge appended.
fn without_variant(id: &str) -> &str {
    match id.rsplit_once('/') {
        Some((id, variant)) if variant.parse::<u32>().is_ok() => id,
        _ => id,
    }
}

/// Returns the time that the phases of a device stand for.
fn covered_ns(device: &Device) -> f64 {
    device.known_coverage().map_or(0.0, |coverage| coverage.covered_ns)
}

/// Returns the processes that used a device, of so many in its report.
fn used_by(device: &Device, processes: u32) -> Vec<u32> {
    let are_known = device.used_by.iter().all(|at| *at < processes);
    if are_known && !device.used_by.is_empty() {
        return device.used_by.clone();
    }
    (0..processes).collect()
}

/// Returns `true` if any of these processes ran at the same time.
fn were_simultaneous(users: &[u32], processes: &[Process]) -> bool {
    let users = users.iter().filter_map(|at| processes.get(*at as usize));
    (0..).zip(overlap::firsts(users, |_| Some(()))).any(|(place, first)| place != first)
}
