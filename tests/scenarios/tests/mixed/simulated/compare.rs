//! Compares the figures of a report with the truth.

mod by_events;
mod by_records;
mod coverage;
mod in_phases;

use super::figures::Figure;
use super::generate::{Feature, Plan};
use super::truth::Truth;
use crate::harness::Run;

pub fn compare(run: &Run, truth: &Truth, plan: &Plan) -> Vec<Figure> {
    let is_late = plan.features.contains(&Feature::Late);
    match plan.record.as_deref() {
        Some("off") => by_events::compare(run, truth, is_late),
        Some("on") => by_records::compare(run, truth),
        _ => in_phases::compare(run, truth, plan),
    }
}
