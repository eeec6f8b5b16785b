//! The devices of merged reports.

use std::collections::{BTreeMap, HashMap};

use gpu_time_report::Device;

use super::add_warning;

/// The devices so far. One is known by id, name and driver.
#[derive(Default)]
pub struct Devices(Vec<Device>);

impl Devices {
    /// Takes in the devices of a report, and says which of ours each of its ids means.
    pub fn add<'a>(&mut self, devices: &'a [Device]) -> HashMap<&'a str, usize> {
        let place = |device: &'a Device| {
            let is_it = |ours: &Device| {
                (ours.id(), ours.name(), ours.driver())
                    == (plain(device.id()), device.name(), device.driver())
            };
            let at = match self.0.iter().position(is_it) {
                Some(at) => {
                    merge(&mut self.0[at], device);
                    at
                }
                None => {
                    self.0.push(Device { id: plain(device.id()).to_owned(), ..device.clone() });
                    self.0.len() - 1
                }
            };
            (device.id(), at)
        };
        devices.iter().map(place).collect()
    }

    /// The devices, and the id that each got.
    pub fn finish(self) -> (Vec<Device>, Vec<String>) {
        let mut devices = self.0;
        let mut variants: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, device) in devices.iter().enumerate() {
            variants.entry(device.id.clone()).or_default().push(at);
        }
        for (id, mut same) in variants {
            if same.len() > 1 {
                same.sort_by_key(|&at| (devices[at].name.clone(), devices[at].driver.clone()));
                for (i, at) in same.into_iter().enumerate() {
                    devices[at].id = format!("{id}/{}", i + 1);
                }
            }
        }
        let ids: Vec<String> = devices.iter().map(|device| device.id.clone()).collect();
        devices.sort_by(|one, other| one.id.cmp(&other.id));
        (devices, ids)
    }
}

/// An id as it was before reports were merged.
fn plain(id: &str) -> &str {
    match id.rsplit_once('/') {
        Some((id, variant)) if variant.parse::<u32>().is_ok() => id,
        _ => id,
    }
}

/// Takes in what another report says of the same device: what they do not agree in is not known,
/// times add up.
fn merge(ours: &mut Device, theirs: &Device) {
    agree(&mut ours.l2_bytes, &theirs.l2_bytes);
    agree(&mut ours.peak_gb_per_s, &theirs.peak_gb_per_s);
    agree(&mut ours.event_step_ns, &theirs.event_step_ns);
    agree(&mut ours.event_floor_ns, &theirs.event_floor_ns);
    agree(&mut ours.event_held_empty_ns, &theirs.event_held_empty_ns);
    agree(&mut ours.event_queued_empty_ns, &theirs.event_queued_empty_ns);
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
    for (reason, held) in theirs.throttle.iter().flatten() {
        let ours = ours.throttle.get_or_insert_default().entry(reason.clone()).or_insert(Some(0));
        *ours = ours.zip(*held).map(|(ours, theirs)| ours.saturating_add(theirs));
    }
    for warning in &theirs.warnings {
        add_warning(&mut ours.warnings, warning);
    }
}

/// Keeps what both say.
pub fn agree<T: PartialEq>(ours: &mut Option<T>, theirs: &Option<T>) {
    if *ours != *theirs {
        *ours = None;
    }
}
