//! The results of a run.

use std::collections::BTreeMap;

use gpu_time_sim_driver::trace::Trace;
use gpu_time_sim_nvtx::Event;
use serde::Deserialize;

use super::chrome_trace::ChromeTrace;
use super::report::{Report, Series, Site};

/// The tally printed by the program.
#[derive(Debug, Deserialize)]
pub struct Tally {
    runs: BTreeMap<String, u64>,
    facts: BTreeMap<String, serde_json::Value>,
    pub kernels: BTreeMap<u64, String>,
}

impl Tally {
    /// Asserts that the report counts the same calls as the program.
    pub fn check(&self, report: &Report) {
        for (name, runs) in &self.runs {
            let sites = report.sites.iter().filter(|site| site.name == *name);
            let calls: Vec<u64> = sites.map(|site| site.calls).collect();
            assert!(!calls.is_empty(), "`{name}` is not in the report");
            assert_eq!(calls.iter().sum::<u64>(), *runs, "`{name}`");
        }
        for site in &report.sites {
            let ran = self.runs.contains_key(&site.name);
            assert!(ran || site.calls == 0, "`{}` was not called", site.name);
        }
    }
}

/// The results of a run.
pub struct Run {
    pub(super) chrome_trace: Option<ChromeTrace>,
    pub(super) report: Option<Report>,
    /// The HTML report.
    pub page: Option<String>,
    /// Reports from processes forked by the program.
    pub others: Vec<Report>,
    pub(super) tally: Tally,
    pub stderr: String,
    pub trace: Trace,
    /// Clocks locked and released through the NVML stand-in, and lines added by the program.
    pub nvml: Vec<String>,
    /// The NVTX ranges that a tool has seen, if a tool was attached.
    pub ranges: Option<Vec<Event>>,
}

impl Run {
    pub fn report(&self) -> &Report {
        self.report.as_ref().expect("the program makes a report")
    }

    /// Returns the Chrome trace.
    pub fn chrome_trace(&self) -> &ChromeTrace {
        self.chrome_trace.as_ref().expect("the scenario writes a Chrome trace")
    }

    /// Returns the site with this path inside the scenarios' crate, or with this name.
    pub fn site(&self, name: &str) -> &Site {
        self.report().site(name)
    }

    /// Returns the row for a function that has only one.
    pub fn row(&self, name: &str) -> &Series {
        self.site(name).row()
    }

    /// Returns a value recorded by the program. Panics if there is none.
    pub fn fact(&self, name: &str) -> u64 {
        self.optional_fact(name).unwrap_or_else(|| panic!("no fact `{name}`: {:?}", self.tally))
    }

    /// Returns a value recorded by the program, if there is one.
    pub fn optional_fact(&self, name: &str) -> Option<u64> {
        let fact = self.tally.facts.get(name)?;
        fact.as_u64().or(fact.as_bool().map(u64::from)).or(fact.as_f64().map(|fact| fact as u64))
    }

    /// Returns a text recorded by the program. Panics if there is none.
    pub fn text(&self, name: &str) -> &str {
        let fact = self.tally.facts.get(name).and_then(serde_json::Value::as_str);
        fact.unwrap_or_else(|| panic!("no text `{name}`: {:?}", self.tally))
    }

    /// Returns the handle of the kernel used at this place.
    pub fn kernel(&self, place: &str) -> u64 {
        let full = format!("scenario::{place}");
        let found = self.tally.kernels.iter().find(|(_, known)| **known == full);
        *found.unwrap_or_else(|| panic!("no kernel for `{place}`")).0
    }
}
