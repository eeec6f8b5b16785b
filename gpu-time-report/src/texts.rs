//! The texts of a report: names, keys, labels and messages. They are made printable where they enter a snapshot, because
//! they come from the program or from a file of somebody else.

use std::collections::BTreeMap;
use std::mem;

use crate::units::{is_hidden, printable};
use crate::{Coverage, Device, Eviction, Node, Process, Series, Site, Snapshot};

/// The maximum length of a text in bytes. Names of kernels have up to 8 KiB.
pub const MAX_TEXT: usize = 64 << 10;

impl Snapshot {
    /// Makes all texts printable, and at most [`MAX_TEXT`] bytes long.
    pub(crate) fn clean_texts(&mut self) {
        clean_process(&mut self.process);
        self.devices.iter_mut().for_each(clean_device);
        self.sites.iter_mut().for_each(clean_site);
        self.tree.iter_mut().for_each(clean_node);
    }
}

fn clean_process(process: &mut Process) {
    let Process { name, started, version, warnings, .. } = process;
    [name, started, version].into_iter().chain(warnings).for_each(clean);
    let Process { program_version, label, host, off, kernels, .. } = process;
    [program_version, label, host, off, kernels].into_iter().flatten().for_each(clean);
    process.merged.iter_mut().for_each(clean_process);
}

fn clean_device(device: &mut Device) {
    let Device { id, name, warnings, throttle, flush_proof, coverage, .. } = device;
    [id, name].into_iter().chain(warnings).for_each(clean);
    throttle.iter_mut().for_each(clean_keys);
    if let Some(proof) = flush_proof {
        let evictions = proof.clean.iter_mut().chain(&mut proof.dirty);
        evictions.for_each(|Eviction { method, .. }| clean(method));
    }
    if let Some(Coverage { unattributed, .. }) = coverage {
        unattributed.iter_mut().for_each(|work| clean(&mut work.name));
    }
    let Device { driver, driver_release, uuid, event_bias_source, .. } = device;
    [driver, driver_release, uuid, event_bias_source].into_iter().flatten().for_each(clean);
}

fn clean_site(site: &mut Site) {
    let Site { name, file, options, gpu_keys, warnings, series, .. } = site;
    [name, file, options].into_iter().chain(gpu_keys).chain(warnings).for_each(clean);
    for Series { device, key, launch, kernel_times, .. } in series {
        clean(device);
        let launch = launch.iter_mut().map(|launch| &mut launch.name);
        key.iter_mut().chain(launch).for_each(clean);
        if let Some(times) = kernel_times {
            times.kernels.iter_mut().for_each(|kernel| clean(&mut kernel.name));
            times.elsewhere.iter_mut().for_each(|work| clean(&mut work.name));
        }
    }
}

pub(crate) fn clean_node(node: &mut Node) {
    clean(&mut node.name);
    clean_keys(&mut node.self_ns_by_device);
}

fn clean_keys<T>(map: &mut BTreeMap<String, T>) {
    if map.keys().any(|key| !is_clean(key)) {
        let cleaned = mem::take(map).into_iter().map(|(mut key, value)| {
            clean(&mut key);
            (key, value)
        });
        *map = cleaned.collect();
    }
}

fn is_clean(text: &str) -> bool {
    text.len() <= MAX_TEXT && !text.contains(is_hidden)
}

fn clean(text: &mut String) {
    const MORE: &str = "…";
    if is_clean(text) {
        return;
    }
    *text = printable(text);
    if text.len() > MAX_TEXT {
        let mut end = MAX_TEXT - MORE.len();
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        text.push_str(MORE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_between_characters() {
        for text in ["é".repeat(MAX_TEXT), "a".repeat(MAX_TEXT + 1), "\u{9b}".repeat(MAX_TEXT)] {
            let mut cut = text;
            clean(&mut cut);
            assert!((MAX_TEXT - 3..=MAX_TEXT).contains(&cut.len()) && cut.ends_with('…'));
        }
        let mut whole = "a".repeat(MAX_TEXT);
        clean(&mut whole);
        assert!(!whole.ends_with('…'));
    }
}
