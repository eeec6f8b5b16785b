//! Values of functions that follow from their paths in the call tree.

use std::collections::HashMap;

use super::depth_first;
use crate::launch_bound::may_be_launch_bound;
use crate::{Clock, Measure, Node, Series, Site, Source};

/// Sets three values from the tree: `launch_bound` of each site, and the own and outer shares of
/// its series. A path is launch-bound only if the medians of its function agree.
pub fn share_out(nodes: &mut [Node], sites: &mut [Site]) {
    let opened = opened_calls(nodes);
    sites.iter_mut().for_each(|site| site.launch_bound = None);
    for node in nodes.iter_mut() {
        let described = described(node, sites, &opened);
        node.launch_bound &= described.is_none_or(may_be_launch_bound);
    }
    let is_known = |node: &&Node| node.source == Source::Opened || node.launch_bound;
    for node in nodes.iter().filter(is_known) {
        if let Some(site) = node.site.and_then(|site| sites.get_mut(site)) {
            site.launch_bound = Some(site.launch_bound == Some(true) || node.launch_bound);
        }
    }
    let mut sums = vec![[0.0; 3]; sites.len()];
    for (node, is_inside) in nodes.iter().zip(recursive(nodes)) {
        let Some([own_ns, outer_ns, all_ns]) = node.site.and_then(|site| sums.get_mut(site)) else {
            continue;
        };
        *own_ns += node.self_ns;
        // A call nested in another call of the same function counts for both, as it does in the
        // series.
        let ns = node.per_call.map_or(0.0, |mean| mean.busy_ns * node.calls);
        *all_ns += ns;
        *outer_ns += if is_inside { 0.0 } else { ns };
    }
    for (site, [own_ns, outer_ns, all_ns]) in sites.iter_mut().zip(sums) {
        if !(all_ns > 0.0 && all_ns.is_finite()) {
            continue;
        }
        let [own_share, outer_share] = [own_ns / all_ns, outer_ns / all_ns];
        // Brackets of launches contain no other function.
        let has_others =
            |series: &Series| series.clock != Clock::Events || series.measure == Measure::Span;
        let on_gpu = || site.series.iter().filter(|series| series.clock != Clock::Host);
        // With several rows, it is unknown which of them the inner calls are in.
        let outer_share =
            (on_gpu().filter(|series| has_others(series)).count() == 1).then_some(outer_share);
        for series in site.series.iter_mut().filter(|series| series.clock != Clock::Host) {
            let has_others = has_others(series);
            series.own_share = Some(if has_others { own_share } else { 1.0 });
            series.outer_share = outer_share.filter(|_| has_others);
        }
    }
}

/// Returns for each path whether its function is also among its callers.
fn recursive(nodes: &[Node]) -> Vec<bool> {
    let mut are_recursive = vec![false; nodes.len()];
    let (mut callers, mut calls) = (Vec::new(), HashMap::<usize, u64>::new());
    for (at, depth) in depth_first(nodes) {
        for site in callers.drain(depth..).flatten() {
            calls.entry(site).and_modify(|calls| *calls -= 1);
        }
        let site = nodes[at].site;
        if let Some(site) = site {
            let around = calls.entry(site).or_default();
            are_recursive[at] = *around > 0;
            *around += 1;
        }
        callers.push(site);
    }
    are_recursive
}

/// The number of recorded calls of each function, by index.
pub type OpenedCalls = HashMap<usize, u64>;

/// Counts the recorded calls in a call tree.
pub fn opened_calls(nodes: &[Node]) -> OpenedCalls {
    let mut calls = OpenedCalls::new();
    for node in nodes.iter().filter(|node| node.source == Source::Opened) {
        if let Some(site) = node.site {
            let of_site = calls.entry(site).or_default();
            *of_site = of_site.saturating_add(node.recorded);
        }
    }
    calls
}

/// Returns a path's function if its medians describe the path: if most of the function's opened
/// calls took this path.
pub fn described<'a>(node: &Node, sites: &'a [Site], opened: &OpenedCalls) -> Option<&'a Site> {
    let opened = opened.get(&node.site?).copied().unwrap_or_default();
    sites.get(node.site?).filter(|_| node.recorded > opened / 2)
}
