//! Runs in which CUPTI records phases, and events time the calls between them.

use std::collections::BTreeMap;

use super::{by_events, by_records, coverage, exact};
use crate::harness::Run;
use crate::harness::tree::paths;
use crate::mixed::simulated::figures::Figure;
use crate::mixed::simulated::truth::Truth;

pub fn compare(run: &Run, truth: &Truth) -> Vec<Figure> {
    let mut figures = rows(run, truth);
    figures.extend(tree(run, truth));
    figures.extend(coverage::compare_phases(run, truth));
    figures
}

/// The total of a row is that of all calls, by events or by records, which leave out the gaps between kernels.
fn rows(run: &Run, truth: &Truth) -> Vec<Figure> {
    let by_events = by_events::true_rows(run, truth);
    let by_records = by_records::true_rows(truth);
    let mut figures = Vec::new();
    for (row, calls) in &by_records {
        let of = format!("{} {:?}", row.0.name(), row.1);
        let rows = super::rows(run, row);
        let [found] = rows[..] else { continue };
        let busy: f64 = calls.iter().map(|call| call.busy_ns).sum();
        let by_events = by_events.get(row);
        let spans = by_events.map_or(busy, |calls| calls.values().map(|call| call.0).sum());
        let within = by_events.map_or(0.0, |calls| calls.values().map(|call| call.1).sum());
        if let Some(error_ns) = found.estimated_total_error_ns
            && found.starved == 0
        {
            figures.push(Figure {
                kind: "total",
                of: of.clone(),
                found: found.total(),
                least: busy.min(spans),
                most: busy.max(spans),
                within: within + 2.0 * error_ns,
            });
        }
        if let Some(net) = &found.net_ns
            && found.starved == 0
            && let Some(calls) = by_events
        {
            let within = calls.values().fold(0.0f64, |most, call| most.max(call.1));
            let least = calls.values().fold(f64::MAX, |least, call| least.min(call.0));
            let most = calls.values().fold(0.0f64, |most, call| most.max(call.0));
            for (kind, found) in [("min in phases", net.min), ("max in phases", net.max)] {
                figures.push(Figure { kind, of: of.clone(), found, least, most, within });
            }
        }
        if let Some(found) = &found.kernels.busy_ns {
            let least = calls.iter().fold(f64::MAX, |least, call| least.min(call.busy_ns));
            let most = calls.iter().fold(0.0f64, |most, call| most.max(call.busy_ns));
            for (kind, found) in [("min busy", found.min), ("max busy", found.max)] {
                figures.push(Figure { kind, of: of.clone(), found, least, most, within: 1.0 });
            }
        }
    }
    figures
}

/// Each path has its times by events or by records.
fn tree(run: &Run, truth: &Truth) -> Vec<Figure> {
    let by_events = by_events::true_paths(run, truth);
    let by_records = by_records::true_paths(truth);
    let paths = paths(run);
    let mut figures = Vec::new();
    let mut calls: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (path, recorded) in &by_records {
        let of = path.join("/");
        // Calls longer than a phase are not timed, but those inside are.
        let is_long = path[..] == ["annotated_main"];
        calls.entry(path[path.len() - 1]).or_default().1 += recorded.calls;
        let Some(node) = paths.get(&of) else { continue };
        calls.entry(path[path.len() - 1]).or_default().0 += node.calls;
        let truth = if node.source == "opened" { Some(recorded) } else { by_events.get(path) };
        let Some(truth) = truth else { continue };
        let long_ns = if is_long { recorded.self_ns } else { 0.0 };
        if node.upper_bound {
            continue;
        }
        if std::env::var_os("GPU_TIME_MIXED_SHOW").is_some() {
            println!("NODE {of}: {node:?}");
        }
        for (kind, found, error_ns, truth, within) in [
            ("self", node.self_ns, node.self_error_ns, truth.self_ns - long_ns, truth.self_within),
            (
                "inclusive",
                node.inclusive_ns,
                node.inclusive_error_ns,
                truth.inclusive_ns - long_ns,
                truth.inclusive_within,
            ),
        ] {
            if !error_ns.is_nan() {
                figures.push(exact(kind, &of, found, truth, within + 2.0 * error_ns));
            }
        }
    }
    for (function, (found, truth)) in calls {
        figures.push(exact("calls in tree", function, found, truth, 0.0));
    }
    figures
}
