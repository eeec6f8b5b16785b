//! The report as a set of values.

use std::borrow::Cow;
use std::vec;

use serde::{Deserialize, Serialize};

use crate::checked::Checked;
use crate::schema::Schema;
use crate::{Clock, Device, Names, Node, Process, Series, Site, tree};

/// A process's measurements at one moment: the process, its devices, and every annotated function.
///
/// `Display` prints the table that a process prints at its end, but with all functions and without
/// colours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// The process.
    schema: Schema,
    /// The measured process.
    pub process: Process,
    /// The devices that were used, including the host if its clock timed any calls.
    pub devices: Vec<Device>,
    /// Every annotated function, including those that were never called.
    pub sites: Vec<Site>,
    /// The call tree: every annotated function under its callers. Parents come first, and callees
    /// by their inclusive times, longest first. Empty if no call was recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tree: Vec<Node>,
}

impl Snapshot {
    /// The maximum number of devices. Reports with more are refused, because functions' own times are computed for each.
    #[doc(hidden)]
    pub const MAX_DEVICES: usize = 1 << 10;

    /// Creates a snapshot. Adds warnings about inconsistent counts, and compares rates with the
    /// device's peak.
    ///
    /// Sorts each site's series by device (in the order of `devices`), key, launch (with the
    /// function itself first), streams before graphs, and cache state.
    #[doc(hidden)]
    pub fn new(process: Process, devices: Vec<Device>, mut sites: Vec<Site>) -> Snapshot {
        for site in &mut sites {
            for series in &mut site.series {
                let device = devices.iter().find(|device| device.id == series.device);
                series.compare_with(device.and_then(|device| device.peak_gb_per_s));
            }
            site.series.sort_by_cached_key(|series| {
                let device = devices.iter().position(|device| device.id == series.device);
                let launch = series.launch.as_ref().map(|launch| launch.index);
                let place = device.unwrap_or(usize::MAX);
                (place, series.key.clone(), launch, series.graph, series.cache)
            });
        }
        let mut snapshot = Snapshot { schema: Schema, process, devices, sites, tree: Vec::new() };
        let inconsistencies = snapshot.inconsistencies();
        snapshot.process.warnings.extend(inconsistencies);
        snapshot.check();
        snapshot
    }

    /// Checks all texts and figures.
    pub(crate) fn check(&mut self) {
        let Snapshot { process, devices, sites, tree, .. } = self;
        process.check(0.0);
        devices.check(0.0);
        sites.check(0.0);
        tree.check(0.0);
    }

    /// Adds the call tree, with the work that only phases found. Parents come before their children.
    #[must_use]
    #[doc(hidden)]
    pub fn with_tree(mut self, mut nodes: Vec<Node>) -> Snapshot {
        nodes.iter_mut().for_each(|node| node.name.check(0.0));
        nodes.extend(tree::windows_only::found(&nodes, &self.devices, &self.process));
        self.tree = tree::completed(nodes, &self.process);
        tree::shares::share_out(&mut self.tree, &mut self.sites);
        self
    }

    /// Returns the function with this name, or the first one if several share it.
    pub fn site(&self, name: &str) -> Option<&Site> {
        self.sites.iter().find(|site| site.name == name)
    }

    /// Returns the snapshot for human-readable renderings: names shared by several functions are
    /// followed by the source location.
    pub(crate) fn with_unique_names(&self) -> Cow<'_, Snapshot> {
        let names: Names = self.sites.iter().map(|site| site.name.as_str()).collect();
        if !names.are_shared() {
            return Cow::Borrowed(self);
        }
        let mut renamed = self.clone();
        for site in &mut renamed.sites {
            site.name = names.label(&site.name, &site.file, site.line);
        }
        for node in &mut renamed.tree {
            if let Some(site) = node.site.and_then(|at| self.sites.get(at)) {
                node.name = names.label(&site.name, &site.file, site.line);
            }
        }
        Cow::Owned(renamed)
    }

    /// Returns all devices except the host.
    pub(crate) fn gpus(&self) -> impl Iterator<Item = &Device> + Clone {
        self.devices.iter().filter(|device| device.is_gpu())
    }

    /// Returns the device of a series.
    #[doc(hidden)]
    pub fn device(&self, series: &Series) -> Option<&Device> {
        self.devices.iter().find(|device| device.id == series.device)
    }

    /// Returns `true` if any row timed by events has a bias from one of these sources. A device without such rows needs
    /// no bias.
    pub(crate) fn has_bias_from(&self, sources: &[&str]) -> bool {
        let mut known = self.devices.iter().filter(|device| {
            device.event_bias_source.as_deref().is_some_and(|source| sources.contains(&source))
        });
        let by_events = || self.all_series().filter(|series| series.clock == Clock::Events);
        known.any(|device| by_events().any(|series| series.device == device.id))
    }

    /// Returns every series of every function.
    pub(crate) fn all_series(&self) -> vec::IntoIter<&Series> {
        // A list, because each use of a nested iterator is compiled by itself.
        self.sites.iter().flat_map(|site| &site.series).collect::<Vec<_>>().into_iter()
    }

    /// Returns a sentence for each identity that does not hold. Empty unless a count is wrong.
    pub fn inconsistencies(&self) -> Vec<String> {
        self.sites.iter().flat_map(Site::inconsistencies).collect()
    }
}
