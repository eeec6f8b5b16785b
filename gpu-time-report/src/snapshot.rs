//! The report: values that hold what was measured.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::schema::Schema;
use crate::{Device, Measure, Names, Process, Series, Site, series};

/// What was measured up to a moment: the process, its devices, and every annotated function.
///
/// Its `Display` is the table that is printed when the process ends, without colours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    schema: Schema,
    pub(crate) process: Process,
    pub(crate) devices: Vec<Device>,
    pub(crate) sites: Vec<Site>,
}

impl Snapshot {
    /// A snapshot of these values, which warns of counts that do not add up, and compares rates with
    /// the device's peak. The series of each site are ordered: by device, in the order given; by key; the
    /// function before its launches, these in streams before in graphs; by cache state.
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

    /// The process.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// The devices that were used, the host among them where its clock told the time.
    pub fn devices(&self) -> &[Device] {
        &self.devices
    }

    /// Every annotated function, also those that were never called.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// The function of this name, the first where several share it.
    pub fn site(&self, name: &str) -> Option<&Site> {
        self.sites.iter().find(|site| site.name == name)
    }

    /// The same for people: functions of one name are called by their places as well.
    pub(crate) fn told_apart(&self) -> Cow<'_, Snapshot> {
        let names: Names = self.sites.iter().map(Site::name).collect();
        if !names.are_shared() {
            return Cow::Borrowed(self);
        }
        let mut told = self.clone();
        for site in &mut told.sites {
            site.name = names.label(&site.name, &site.file, site.line);
        }
        Cow::Owned(told)
    }

    /// Returns every series of every function.
    pub(crate) fn all_series(&self) -> impl Iterator<Item = &Series> + Clone {
        self.sites.iter().flat_map(|site| &site.series)
    }

    /// The time of all functions on the device of a series, by the same clock, in nanoseconds: the whole
    /// of which the table shows the series's share.
    pub(crate) fn total_beside(&self, series: &Series) -> f64 {
        series::total(self.all_series().filter(|other| {
            let is_same = other.device == series.device && other.clock == series.clock;
            is_same && other.measure != Measure::Launch
        }))
    }

    /// The identities that do not hold, each in a sentence. There should be none.
    pub fn inconsistencies(&self) -> Vec<String> {
        self.sites.iter().flat_map(Site::inconsistencies).collect()
    }
}
