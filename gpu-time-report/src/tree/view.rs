//! The call tree as text.

use super::{Node, PerCall, Source, selection};
#[cfg(test)]
use crate::Snapshot;
use crate::analysis::Analysis;
use crate::figure::{Bound, Figure};
use crate::launch_bound::both_sides;
use crate::marks::{Mark, Printed};
use crate::text_table::{TextRow, TextTable};
use crate::{Terminal, units};

/// The maximum number of printed paths.
const MAX_PATHS: usize = 200;

/// The maximum number of indented levels. Rows of deeper paths show their depth.
const MAX_LEVELS: usize = 8;

#[cfg(test)]
impl Snapshot {
    /// Returns the call tree as lines of text: functions under their callers, longest first. The
    /// shortest paths of a large tree are left out, and names are shortened until each row fits the
    /// terminal. Empty if there is no tree.
    pub fn to_tree(&self, to: Terminal) -> String {
        self.analyzed(|analysis| text(analysis, to, &Printed::default()))
    }
}

/// Returns the call tree as lines of text.
pub fn text(analysis: &Analysis, to: Terminal, printed: &Printed) -> String {
    let snapshot = analysis.snapshot;
    if snapshot.tree.is_empty() {
        return String::new();
    }
    let titles = ["share", "self", "total", "calls", Mark::GpuPerCall.text(), "host/call"];
    let name_at = titles.len();
    let titles = titles.map(|title| (title.to_owned(), true)).into_iter();
    let titles = titles.chain([("function".to_owned(), false)]).collect();
    let paths = selection::longest(&snapshot.tree, MAX_PATHS);
    let rows = paths.map(|path| row(analysis, path, printed)).collect();
    let mut lines = vec![TextTable { titles, name_at, rows }.text(to)];
    if snapshot.tree.len() > MAX_PATHS {
        let more = units::count((snapshot.tree.len() - MAX_PATHS) as u64);
        lines.push(format!("and {more} shorter paths, which the JSON report has"));
    }
    lines.join("\n") + "\n"
}

fn row(analysis: &Analysis, (at, depth): (usize, usize), printed: &Printed) -> TextRow {
    let Analysis { snapshot, shares, bounded_totals: bounds, .. } = analysis;
    let node = &snapshot.tree[at];
    let remarks = node.short_remarks().collect::<Vec<_>>().join(", ");
    let depth_mark = if depth > MAX_LEVELS { format!("↳{depth} ") } else { String::new() };
    let cells = figures(node, shares.of_path(node), bounds[at], [&units::time; 2], printed);
    let sides = node.launch_bound_sentence();
    TextRow {
        before: "  ".repeat(depth.min(MAX_LEVELS)) + &depth_mark,
        name: units::printable(node.label()),
        after: if remarks.is_empty() { remarks } else { format!("  ({remarks})") },
        cells: cells.into_iter().chain([String::new()]).collect(),
        below: sides.map(|sides| format!("    waits for the CPU: {sides}")),
        ..TextRow::default()
    }
}

/// Returns the figures of a path: its share, self time, total, calls, and the times of the GPU and of the host per
/// call. The self time and the total are formatted by a function each.
pub fn figures(
    node: &Node,
    share: Option<Figure>,
    is_total_bound: bool,
    [own, total]: [&dyn Fn(f64) -> String; 2],
    printed: &Printed,
) -> [String; 6] {
    let error = match node.self_error_ns {
        Some(0.0) => String::new(),
        Some(ns) => format!(" ±{}", own(ns)),
        None => " ±?".to_owned(),
    };
    let per_call = |of: fn(&PerCall) -> Option<f64>| {
        node.per_call.as_ref().and_then(of).map(units::time).unwrap_or_default()
    };
    let of_all = |share: Figure| {
        printed.print(Mark::Share);
        share.print(&units::percent(share.value), printed)
    };
    let time = |ns: f64, is_bound: bool, text: &dyn Fn(f64) -> String| {
        Figure::new(ns, Bound::at_most(is_bound)).print(&text(ns), printed)
    };
    printed.mark(node.has_other_streams(), Mark::GpuPerCall);
    // Work that is not annotated has no calls.
    let calls = node.per_call.map(|_| units::grouped(&format!("{:.0}", node.calls)));
    [
        share.map(of_all).unwrap_or_default(),
        time(node.self_ns, node.upper_bound, own) + &error,
        time(node.inclusive_ns, is_total_bound, total),
        calls.unwrap_or_default(),
        per_call(|mean| Some(mean.busy_ns)),
        per_call(|mean| mean.host_ns),
    ]
}

impl Node {
    /// Returns the remarks that qualify the path's figures.
    #[cfg(feature = "html")]
    pub(crate) fn remark(&self) -> String {
        let sides = self.launch_bound_sentence().map(|sides| format!("waits for the CPU: {sides}"));
        let others = self.short_remarks().map(str::to_owned);
        sides.into_iter().chain(others).collect::<Vec<_>>().join(", ")
    }

    /// Returns `true` if the total has work on other streams than that of the calls, which events
    /// around the calls do not measure.
    fn has_other_streams(&self) -> bool {
        let calls_ns = self.per_call.map(|mean| mean.busy_ns * self.calls);
        let others_ns = calls_ns.map_or(0.0, |ns| self.inclusive_ns - ns);
        // The total is computed from other samples than the mean.
        let error_ns = self.inclusive_error_ns.unwrap_or(f64::INFINITY);
        self.source == Source::Events && others_ns > 0.01 * self.inclusive_ns + 3.0 * error_ns
    }

    fn short_remarks(&self) -> impl Iterator<Item = &'static str> {
        let by_events = (self.source == Source::Events).then_some("by events");
        by_events.into_iter().chain(self.callers_unknown.then_some("callers not sampled"))
    }

    /// Returns the GPU's and the host's time in the calls of a launch-bound path as text.
    pub(crate) fn launch_bound_sentence(&self) -> Option<String> {
        let mean = self.per_call.filter(|_| self.launch_bound)?;
        Some(both_sides([mean.busy_ns, mean.span_ns, mean.host_ns?], mean.kernels?))
    }
}
