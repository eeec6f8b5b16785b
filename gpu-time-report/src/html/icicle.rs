//! The call tree: a table, which the script shows as an icicle.

use maud::{Markup, html};

use super::colours::colour;
use crate::Node;
use crate::analysis::Analysis;
use crate::marks::{Mark, Printed};
use crate::own_times::OwnTime;
use crate::scale::Scale;
use crate::tree::Owner;
use crate::tree::view::figures;
use crate::tree::{children, depth_first, selection};
use crate::units::{self, printable};

/// The maximum number of paths on the page.
const MAX_PATHS: usize = 2000;
/// The minimum share of all waits of the GPU at which a launch-bound path is underlined.
const MUCH: f64 = 0.1;
/// The minimum share of a path's waits at which its callee is underlined instead.
const MOSTLY: f64 = 0.8;

/// Renders the tree, or nothing if there is none. Marks the paths of the function to look at first.
pub fn tree(analysis: &Analysis, printed: &Printed) -> Markup {
    let Analysis { snapshot, own: times, shares, bounded_totals: bounds, lead, .. } = analysis;
    let (nodes, first) =
        (&snapshot.tree, lead.first.as_ref().map(|first| Owner::Function(first.site)));
    let left = left_edges(nodes);
    let (waits, whole_ns) = (waits(nodes), total(nodes));
    let rows: Vec<_> = selection::longest(nodes, MAX_PATHS).collect();
    let depth = rows.iter().map(|(_, depth)| depth + 1).max().unwrap_or(0);
    let scale = |of: fn(&Node) -> f64| Scale::of(nodes.iter().map(of), 3);
    let (own, inclusive) = (scale(|node| node.self_ns), scale(|node| node.inclusive_ns));
    let own_text = |ns: f64| own.text(ns);
    let total_text = |ns: f64| inclusive.text(ns);
    html! {
        @if whole_ns > 0.0 {
            div.section-head { h2 { "Call tree" } }
            div.tree-box {
                table.tree style={ "--depth:" (depth) } {
                    thead {
                        tr {
                            th { "function" }
                            th.n { "share" }
                            th.n { "self " small { (own.unit().name()) } }
                            th.n { "total " small { (inclusive.unit().name()) } }
                            th.n { "calls" }
                            th.n { (Mark::GpuPerCall.text()) }
                            th.n { "host/call" }
                            th { "remarks" }
                        }
                    }
                    tbody {
                        @for (at, depth) in rows {
                            @let node = &nodes[at];
                            tr class=[class(node, waits[at], bounds[at], first, times)]
                                style={
                                    "--x:" (fraction(left[at] / whole_ns))
                                    ";--w:" (fraction(node.inclusive_ns / whole_ns)) ";--d:" (depth)
                                }
                            {
                                th scope="row" { (printable(node.label())) }
                                @let share = shares.of_path(node);
                                @for figure in figures(node, share, bounds[at], [&own_text, &total_text], printed) {
                                    td { (figure) }
                                }
                                td { (printable(&node.remark())) }
                            }
                        }
                    }
                }
            }
            @if nodes.len() > MAX_PATHS {
                p.soft { (units::count((nodes.len() - MAX_PATHS) as u64)) " shorter paths are only in the JSON report." }
            }
        }
    }
}

/// Returns the sum of the self times of all paths.
pub fn total(nodes: &[Node]) -> f64 {
    nodes.iter().fold(0.0, |sum, node| sum + node.self_ns)
}

/// Formats a share of the whole, with as many digits as a screen's width can show.
fn fraction(of_whole: f64) -> String {
    let digits = format!("{of_whole:.5}");
    digits.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns the stylesheet classes of a path, if it needs any. Its width may be an upper bound.
fn class(
    node: &Node,
    waits: bool,
    is_bound: bool,
    first: Option<Owner>,
    own: &[OwnTime],
) -> Option<String> {
    let (waits, bound) = (waits.then_some("waits"), is_bound.then_some("bound"));
    let first = (first == Some(node.owner())).then_some("first");
    let colour = colour(own, node.owner());
    let classes: Vec<&str> = [colour, bound, waits, first].into_iter().flatten().collect();
    (!classes.is_empty()).then(|| classes.join(" "))
}

/// Selects the launch-bound paths in which the GPU waited for much of all its waits, unless it did so
/// mostly in one of their callees. In a program that waits everywhere, nearly all are launch-bound.
fn waits(nodes: &[Node]) -> Vec<bool> {
    let waited_ns = |node: &Node| {
        let mean_ns = node.per_call.as_ref().and_then(|per_call| per_call.waited_ns);
        mean_ns.filter(|_| node.launch_bound).map_or(0.0, |mean_ns| mean_ns * node.calls)
    };
    let (callees, roots) = children(nodes);
    let of = |among: &[usize]| among.iter().map(|&at| waited_ns(&nodes[at])).collect::<Vec<_>>();
    let all_ns: f64 = of(&roots).iter().sum();
    let is_selected = |(node, callees): (&Node, &Vec<usize>)| {
        let ns = waited_ns(node);
        let most_ns = of(callees).into_iter().fold(0.0, f64::max);
        ns > 0.0 && ns >= MUCH * all_ns && most_ns < MOSTLY * ns
    };
    nodes.iter().zip(&callees).map(is_selected).collect()
}

/// Returns the left edge of each path: the sum of the times of the paths drawn to its left.
fn left_edges(nodes: &[Node]) -> Vec<f64> {
    let mut left = vec![0.0; nodes.len()];
    // The next free position at each depth.
    let mut next = vec![0.0];
    for (at, depth) in depth_first(nodes) {
        next.truncate(depth + 1);
        left[at] = next[depth];
        next[depth] += nodes[at].inclusive_ns;
        next.push(left[at]);
    }
    left
}
