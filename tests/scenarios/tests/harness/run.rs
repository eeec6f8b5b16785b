//! What a run left.

use std::collections::BTreeMap;

use gpu_time_sim_driver::trace::Trace;
use serde::Deserialize;

use super::events::Events;
use super::report::{Report, Series, Site};

/// What the program printed of itself.
#[derive(Debug, Deserialize)]
pub struct Book {
    runs: BTreeMap<String, u64>,
    facts: BTreeMap<String, serde_json::Value>,
    pub kernels: BTreeMap<u64, String>,
}

impl Book {
    /// The report counts the calls that there were.
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

/// What a run left.
pub struct Run {
    pub(super) events: Option<Events>,
    pub(super) report: Option<Report>,
    /// The same as a page.
    pub page: Option<String>,
    /// Reports of processes that it forked.
    pub others: Vec<Report>,
    pub(super) book: Book,
    pub stderr: String,
    pub trace: Trace,
    /// What the stand-in for NVML locked and gave back, and the program's own marks.
    pub nvml: Vec<String>,
}

impl Run {
    pub fn report(&self) -> &Report {
        self.report.as_ref().expect("it makes a report")
    }

    /// The trace for viewers.
    pub fn events(&self) -> &Events {
        self.events.as_ref().expect("it shows what it did")
    }

    /// The site of this path inside the scenarios' crate, or of this name.
    pub fn site(&self, name: &str) -> &Site {
        self.report().site(name)
    }

    /// The row of a function that has one only.
    pub fn row(&self, name: &str) -> &Series {
        self.site(name).row()
    }

    /// What the program noted; it must have.
    pub fn fact(&self, name: &str) -> u64 {
        self.found(name).unwrap_or_else(|| panic!("no fact `{name}`: {:?}", self.book))
    }

    /// What the program noted, if it did.
    pub fn found(&self, name: &str) -> Option<u64> {
        let fact = self.book.facts.get(name)?;
        fact.as_u64().or(fact.as_bool().map(u64::from)).or(fact.as_f64().map(|fact| fact as u64))
    }

    /// The text that the program noted; it must have.
    pub fn text(&self, name: &str) -> &str {
        let fact = self.book.facts.get(name).and_then(serde_json::Value::as_str);
        fact.unwrap_or_else(|| panic!("no text `{name}`: {:?}", self.book))
    }

    /// The handle of the kernel of one place.
    pub fn kernel(&self, place: &str) -> u64 {
        let full = format!("scenario::{place}");
        let found = self.book.kernels.iter().find(|(_, known)| **known == full);
        *found.unwrap_or_else(|| panic!("no kernel is for `{place}`")).0
    }
}
