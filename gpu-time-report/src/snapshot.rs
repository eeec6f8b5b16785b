//! The report: values that hold what was measured.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::json::{self, Schema};
use crate::{Device, Names, Process, ReadError, Site, Terminal, csv, table};

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

    /// The table, as it suits the place that it is written to: with colours, and with names that are
    /// shortened until a row fits.
    #[doc(hidden)]
    pub fn to_table(&self, to: Terminal) -> String {
        let mut text = String::new();
        // A string takes all that is written to it.
        _ = table::render(self, to, &mut text);
        text
    }

    /// The JSON report.
    pub fn to_json(&self) -> String {
        json::write(self)
    }

    /// The snapshot of a JSON report: the same values that it was written from. Fields that are not
    /// known are passed over, so that reports of later versions are read too.
    ///
    /// # Errors
    ///
    /// It is no JSON, or not a report of the schema `gpu-time/1`.
    pub fn from_json(json: &[u8]) -> Result<Snapshot, ReadError> {
        json::read(json)
    }

    /// The report as one HTML page that needs nothing else, for people to look at: it sorts and filters
    /// its rows, and draws what is kept of each. Without scripts it is a table.
    #[cfg(feature = "html")]
    pub fn to_html(&self) -> String {
        crate::html::render(self)
    }

    /// The CSV report: a header, then one line for each series. Names have control characters escaped, as in
    /// the table, and are otherwise as they are: one that begins with `=`, `+`, `-` or `@`, such as a key
    /// `-1`, is a formula to a spreadsheet unless its column is imported as text.
    pub fn to_csv(&self) -> String {
        csv::render(self)
    }

    /// The identities that do not hold, each in a sentence. There should be none.
    pub fn inconsistencies(&self) -> Vec<String> {
        self.sites.iter().flat_map(Site::inconsistencies).collect()
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        table::render(self, Terminal::default(), f)
    }
}
