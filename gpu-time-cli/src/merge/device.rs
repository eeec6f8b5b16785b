//! The devices of merged reports.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use gpu_time_report::{Device, Process, WindowsFrom, value};

use super::combine::{add, add_warning};
use super::sharing::{self, Users};

/// The devices of the reports merged so far, distinguished by id, name and driver.
#[derive(Default)]
pub struct Devices {
    merged: Vec<MergedDevice>,
    /// The number of processes whose reports were merged.
    processes: u32,
}

struct MergedDevice {
    device: Device,
    windows_from: WindowsFrom,
    /// The time that the phases stand for.
    covered_ns: f64,
    /// The processes that used the device, by their order in the merged report.
    used_by: Vec<u32>,
    users: Users,
}

impl Devices {
    /// Adds the devices of a report of these processes. Returns the index of the merged device for each id in the
    /// report.
    pub fn add<'a>(
        &mut self,
        devices: &'a [Device],
        processes: &[Process],
    ) -> HashMap<&'a str, usize> {
        let index = |device: &'a Device| {
            let id = without_variant(&device.id);
            let is_same = |MergedDevice { device: ours, .. }: &MergedDevice| {
                ours.id == id && ours.name == device.name && ours.driver == device.driver
            };
            let used_by = used_by(device, processes.len());
            let of = used_by.len() as u64;
            let with = device.known_coverage().map_or(0, |_| of);
            let from = device.windows_from.unwrap_or(value!(WindowsFrom { with, of }));
            let using = || used_by.iter().filter_map(|at| processes.get(*at as usize));
            // The time that its phases stand for.
            let covered = device.known_coverage().map_or(0.0, |coverage| coverage.covered_ns);
            let index = match self.merged.iter().position(is_same) {
                Some(known) => known,
                None => {
                    let id = id.to_owned();
                    self.merged.push(MergedDevice {
                        // Without what is summed.
                        device: value!(Device {
                            id,
                            coverage: None,
                            overlap: None,
                            throttle: None,
                            ..device.clone()
                        }),
                        windows_from: value!(WindowsFrom { with: 0, of: 0 }),
                        covered_ns: 0.0,
                        used_by: Vec::new(),
                        users: Users::default(),
                    });
                    self.merged.len() - 1
                }
            };
            let ours = &mut self.merged[index];
            ours.device.merge(device, [ours.covered_ns, covered]);
            for warning in &device.warnings {
                add_warning(&mut ours.device.warnings, warning);
            }
            ours.covered_ns += covered;
            add(&mut ours.windows_from.with, from.with);
            add(&mut ours.windows_from.of, from.of);
            ours.used_by.extend(used_by.iter().map(|at| self.processes.saturating_add(*at)));
            ours.users.add(device, using());
            (device.id.as_str(), index)
        };
        let indices = devices.iter().map(index).collect();
        self.processes = self.processes.saturating_add(processes.len() as u32);
        indices
    }

    /// Returns the devices, sorted by id, and the final id of each index.
    pub fn finish(self) -> (Vec<Device>, Vec<String>) {
        let all = self.processes as usize;
        let finished = self.merged.into_iter().map(|merged| {
            let MergedDevice { mut device, windows_from, used_by, users, .. } = merged;
            if let Some(coverage) = &mut device.coverage {
                coverage.bound_kernels();
            }
            if users.have_shared() {
                device.shared = true;
                add_warning(&mut device.warnings, sharing::WARNING);
            }
            let is_part = device.known_coverage().is_some() && windows_from.with < windows_from.of;
            let used_by = if used_by.len() < all { used_by } else { Vec::new() };
            value!(Device { windows_from: is_part.then_some(windows_from), used_by, ..device })
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

/// Returns the processes that used a device, of so many in its report.
fn used_by(device: &Device, processes: usize) -> Cow<'_, [u32]> {
    let are_known = device.used_by.iter().all(|at| (*at as usize) < processes);
    if are_known && !device.used_by.is_empty() {
        return Cow::Borrowed(&device.used_by);
    }
    Cow::Owned((0..processes as u32).collect())
}
