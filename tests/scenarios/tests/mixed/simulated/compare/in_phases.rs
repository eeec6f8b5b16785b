//! Runs in which CUPTI records phases, and events time the calls between them.

use std::collections::{BTreeMap, BTreeSet};

use gpu_time_scenarios::composition::Site;

use super::{by_events, by_records, coverage};
use crate::harness::Run;
use crate::harness::report::Series;
use crate::harness::tree::paths;
use crate::mixed::simulated::checks::{exact, rows as rows_of};
use crate::mixed::simulated::figures::{
    BESIDE_SPANS, CALLS_BESIDE_SPANS, CALLS_OF_CALLER, Figure, INCLUSIVE_OF_CALLER, LATE,
    SELF_OF_CALLER, SPANS,
};
use crate::mixed::simulated::generate::{Feature, Plan};
use crate::mixed::simulated::truth::Truth;

pub fn compare(run: &Run, truth: &Truth, plan: &Plan) -> Vec<Figure> {
    let mut figures = rows(run, truth);
    figures.extend(tree(run, truth, plan));
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
        let rows = rows_of(run, row);
        let [found] = rows[..] else { continue };
        let busy: f64 = calls.iter().map(|call| call.busy_ns).sum();
        let by_events = by_events.get(row);
        let spans = by_events.map_or(busy, |calls| calls.values().map(|call| call.0).sum());
        let within = by_events.map_or(0.0, |calls| calls.values().map(|call| call.1).sum());
        // The total is that of the calls that were not lost.
        let longest = calls.iter().fold(0.0f64, |most, call| most.max(call.busy_ns));
        let lost_ns = found.all_lost() as f64 * longest;
        if let Some(error_ns) = found.estimated_total_error_ns
            && found.starved == 0
        {
            figures.push(Figure {
                kind: if row.0 == Site::Span { SPANS } else { "total in phases" },
                of: of.clone(),
                found: found.total(),
                least: busy.min(spans) - lost_ns,
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
fn tree(run: &Run, truth: &Truth, plan: &Plan) -> Vec<Figure> {
    let has = |feature| plan.features.contains(&feature);
    let by_events = by_events::true_paths(run, truth);
    let by_records = by_records::true_paths(truth);
    let paths = paths(run);
    let mut figures = Vec::new();
    let mut calls: BTreeMap<&str, Calls> = BTreeMap::new();
    for path in by_records.keys().chain(by_events.keys()).collect::<BTreeSet<_>>() {
        let of = path.join("/");
        let recorded = by_records.get(path);
        let function = path[path.len() - 1];
        let calls = calls.entry(function).or_default();
        calls.truth += recorded.map_or(0.0, |path| path.calls);
        let Some(node) = paths.get(&of) else { continue };
        calls.found += node.calls;
        let is_opened = node.source == "opened";
        let is_caller = is_opened && node.recorded == 0;
        calls.is_recorded |= node.recorded > 0 && is_opened;
        calls.is_caller |= is_caller;
        let truth = if is_opened { recorded } else { by_events.get(path) };
        let Some(truth) = truth.filter(|_| !node.upper_bound) else { continue };
        // A call longer than phases is an estimate from the parts that were recorded.
        let is_long = path[..] == ["annotated_main"];
        let [in_self, in_inclusive] = match () {
            _ if has(Feature::Late) && !is_opened => [LATE, LATE],
            _ if has(Feature::Spans) && !is_opened => [BESIDE_SPANS, BESIDE_SPANS],
            _ if function == "span" => [SPANS, SPANS],
            _ if is_caller && !is_long => [SELF_OF_CALLER, INCLUSIVE_OF_CALLER],
            _ => ["self in phases", "inclusive in phases"],
        };
        // A call that is recorded without those around it does not share time with them.
        let [most, most_inclusive] = [truth.launched_ns, truth.inclusive_launched_ns];
        let within = truth.self_within + 2.0 * node.self_error_ns;
        let own = exact(in_self, &of, node.self_ns, truth.self_ns, within);
        let within = truth.inclusive_within + 2.0 * node.inclusive_error_ns;
        let inclusive = exact(in_inclusive, &of, node.inclusive_ns, truth.inclusive_ns, within);
        let own = Figure { most: own.most.max(most), ..own };
        let inclusive = Figure { most: inclusive.most.max(most_inclusive), ..inclusive };
        // Too few phases tell no error.
        figures.extend([own, inclusive].into_iter().filter(|figure| !figure.within.is_nan()));
    }
    for (function, Calls { found, truth, is_recorded, is_caller }) in calls {
        // The number of spans is an estimate.
        if function != "span" {
            let kind = match is_caller || !is_recorded {
                true => CALLS_OF_CALLER,
                false if has(Feature::Spans) => CALLS_BESIDE_SPANS,
                false => "calls in tree",
            };
            let all = exact(kind, function, found, truth, 0.0);
            // Lost calls are not in the tree.
            let series = &run.site(&format!("mixed::{function}")).series;
            let lost: u64 = series.iter().map(Series::all_lost).sum();
            // Rarely, one or two more are missing.
            let within = all.within + 0.1 * truth;
            figures.push(Figure { least: truth - lost as f64, within, ..all });
        }
    }
    figures
}

/// The calls of a function in the tree.
#[derive(Default)]
struct Calls {
    found: f64,
    truth: f64,
    is_recorded: bool,
    /// A path has no recorded call, but is around some.
    is_caller: bool,
}
