//! The call tree as text.

use comfy_table::{CellAlignment, Table, presets};

use super::{Node, PerCall, Source, bounded_totals, depth_first};
use crate::launch_bound::both_sides;
use crate::marks::bound;
use crate::{Snapshot, units};

/// The maximum number of printed paths.
const MAX_PATHS: usize = 200;

impl Snapshot {
    /// Returns the call tree as lines of text: functions under their callers, longest first. Empty
    /// if there is no tree.
    #[doc(hidden)]
    pub fn to_tree(&self) -> String {
        if self.tree.is_empty() {
            return String::new();
        }
        let mut table = Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["share", "self", "total", "calls", "GPU/call", "host/call", "function"]);
        let bounds = bounded_totals(&self.tree);
        for (at, depth) in depth_first(&self.tree).take(MAX_PATHS) {
            table.add_row(row(&self.tree[at], bounds[at], depth));
        }
        let last = 6;
        for (at, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 2));
            if at != last {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut text = table.trim_fmt();
        text.push('\n');
        if self.tree.len() > MAX_PATHS {
            let more = self.tree.len() - MAX_PATHS;
            text.push_str(&format!("and {more} more paths, which the JSON report has\n"));
        }
        text
    }
}

fn row(node: &Node, is_total_bound: bool, depth: usize) -> [String; 7] {
    let error = match node.self_error_ns {
        Some(ns) if ns > 0.0 => format!(" ±{}", units::time(ns)),
        Some(_) => String::new(),
        None => " ±?".to_owned(),
    };
    let per_call = |of: fn(&PerCall) -> Option<f64>| {
        node.per_call.as_ref().and_then(of).map(units::time).unwrap_or_default()
    };
    let remark = match node.remark() {
        none if none.is_empty() => none,
        remark => format!("  ({remark})"),
    };
    [
        bound(node.upper_bound).to_owned() + &units::percent(node.share),
        bound(node.upper_bound).to_owned() + &units::time(node.self_ns) + &error,
        bound(is_total_bound).to_owned() + &units::time(node.inclusive_ns),
        if node.per_call.is_some() { format!("{:.0}", node.calls) } else { String::new() },
        per_call(|mean| Some(mean.busy_ns)),
        per_call(PerCall::host_ns),
        format!("{}{}{}", "  ".repeat(depth), units::printable(&node.name), remark),
    ]
}

impl Node {
    /// Returns what a reader must know about the path's figures.
    pub(crate) fn remark(&self) -> String {
        let mut remarks = Vec::new();
        if let Some(sentence) = self.launch_bound_sentence() {
            remarks.push(format!("launch-bound: {sentence}"));
        }
        if self.source == Source::Events {
            remarks.push("by events".to_owned());
        }
        if self.callers_unknown {
            remarks.push("callers not sampled".to_owned());
        }
        remarks.join(", ")
    }

    /// Returns the GPU's and the host's time in the calls of a launch-bound path as text.
    pub(crate) fn launch_bound_sentence(&self) -> Option<String> {
        let mean = self.per_call.filter(|_| self.launch_bound)?;
        Some(both_sides([mean.busy_ns, mean.span_ns, mean.host_ns?], mean.kernels?))
    }

    /// Returns the standard error as a percentage of the self time.
    #[cfg(feature = "html")]
    pub(crate) fn self_error(&self) -> String {
        let known = |ns| format!("±{}", units::share(ns, self.self_ns));
        self.self_error_ns.map_or("±?".to_owned(), known)
    }
}
