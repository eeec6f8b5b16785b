//! The report as a set of values.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::schema::Schema;
use crate::{Device, Measure, Names, Process, Series, Site};

/// A process's measurements at one moment: the process, its devices, and every annotated function.
///
/// `Display` prints the same table as at the end of the process, without colours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    schema: Schema,
    pub(crate) process: Process,
    pub(crate) devices: Vec<Device>,
    pub(crate) sites: Vec<Site>,
}

impl Snapshot {
    /// Creates a snapshot. Adds warnings about inconsistent counts, and compares rates with the
    /// device's peak. Each site's series are sorted by device, in the given order; then by key;
    /// then the function before its launches, and launches in streams before those in graphs; then
    /// by cache state.
    #[doc(hidden)]
    pub fn new(process: Process, devices: Vec<Device>, mut sites: Vec<Site>) -> Snapshot {
        for site in &mut sites {
            for series in &mut site.series {
                let device = devices.iter().find(|device| device.id == series.device);
                series.compare_with(device.and_then(Device::peak_gb_per_s));
            }
            site.series.sort_by_cached_key(|series| {
                let device = devices.iter().position(|device| device.id == series.device);
                let launch = series.launch.as_ref().map(|launch| launch.index);
                let place = device.unwrap_or(usize::MAX);
                (place, series.key.clone(), launch, series.graph, series.cache)
            });
        }
        let mut snapshot = Snapshot { schema: Schema, process, devices, sites };
        let inconsistencies = snapshot.inconsistencies();
        snapshot.process.warnings.extend(inconsistencies);
        snapshot
    }

    /// Returns the process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// Returns the devices that were used, including the host if its clock timed any calls.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Returns every annotated function, including those that were never called.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// Returns the function with this name, or the first one if several share it.
    pub fn site(&self, name: &str) -> Option<&Site> {
        self.sites.iter().find(|site| site.name == name)
    }

    /// Returns the snapshot for human-readable renderings: names shared by several functions are
    /// followed by the source location.
    pub(crate) fn with_unique_names(&self) -> Cow<'_, Snapshot> {
        let names: Names = self.sites.iter().map(Site::name).collect();
        if !names.are_shared() {
            return Cow::Borrowed(self);
        }
        let mut renamed = self.clone();
        for site in &mut renamed.sites {
            site.name = names.label(&site.name, &site.file, site.line);
        }
        Cow::Owned(renamed)
    }

    /// Returns every series of every function.
    pub(crate) fn all_series(&self) -> impl Iterator<Item = &Series> + Clone {
        self.sites.iter().flat_map(|site| &site.series)
    }

    /// Returns the total time, in nanoseconds, of all functions on the same device and clock as
    /// this series. Shares are of this total.
    pub(crate) fn total_beside(&self, series: &Series) -> f64 {
        let beside = self.all_series().filter(|other| {
            let is_same = other.device == series.device && other.clock == series.clock;
            is_same && other.measure != Measure::Launch
        });
        beside.filter_map(Series::own_total).fold(0.0, |sum, ns| sum + ns)
    }

    /// Returns a sentence for each identity that does not hold. Empty unless a count is wrong.
    pub fn inconsistencies(&self) -> Vec<String> {
        self.sites.iter().flat_map(Site::inconsistencies).collect()
    }
}
