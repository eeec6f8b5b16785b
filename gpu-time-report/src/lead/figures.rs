//! The figures that decide what to look at first, gathered once.

use std::collections::HashMap;

use crate::gpu_time::GpuTime;
use crate::own_times::{OwnTime, Shares};
use crate::tree::shares::{OpenedCalls, described, opened_calls};
use crate::tree::{Owner, any_inside};
use crate::{Node, Series, Site, Snapshot, Source};

/// The minimum part of a whole that matters. Who mends less than a tenth gains next to nothing.
pub const MATTERS: f64 = 0.1;
/// The minimum idle share of a GPU at which waits matter. A busier one had other work meanwhile.
const IDLE: f64 = 0.3;

/// The figures of a report.
pub struct Figures<'t, 'a> {
    pub snapshot: &'a Snapshot,
    pub gpus: &'t [GpuTime<'a>],
    /// The functions' own GPU times, longest first.
    pub own: Vec<&'t OwnTime<'a>>,
    pub shares: &'t Shares<'a>,
    /// The own time that each function has at most, by index. An upper bound is no more than phases found of all functions.
    pub most_ns: HashMap<usize, f64>,
    opened: OpenedCalls,
    /// The functions that helper threads worked for, or for a function inside. What the GPU did in their calls is not known.
    helped: Vec<usize>,
}

impl<'t, 'a> Figures<'t, 'a> {
    pub fn of(
        snapshot: &'a Snapshot,
        own: &'t [OwnTime<'a>],
        shares: &'t Shares<'a>,
        gpus: &'t [GpuTime<'a>],
    ) -> Figures<'t, 'a> {
        let mut limits = HashMap::<usize, f64>::new();
        for gpu in gpus {
            for time in &gpu.times {
                if let Owner::Function(site) = time.owner {
                    *limits.entry(site).or_default() += time.ns.min(gpu.busy.value);
                }
            }
        }
        let (mut functions, mut most_ns) = (Vec::new(), HashMap::new());
        for time in own {
            if let Owner::Function(site) = time.owner {
                let limit_ns = limits.get(&site).filter(|_| time.is_bound());
                most_ns.insert(site, limit_ns.map_or(time.ns, |ns| time.ns.min(*ns)));
                functions.push(time);
            }
        }
        let opened = opened_calls(&snapshot.tree);
        let helped = helped(&snapshot.tree);
        Figures { snapshot, gpus, own: functions, shares, most_ns, opened, helped }
    }

    /// Returns `true` if helper threads worked for a function, or for one inside.
    pub fn has_helpers(&self, node: &Node) -> bool {
        node.site.is_some_and(|site| self.helped.contains(&site))
    }

    /// Returns the paths with time of their own that are no functions.
    pub fn outside(&self) -> impl Iterator<Item = &'a Node> {
        let helpers = self.snapshot.tree.iter().filter(|node| node.owner() == Owner::HelperThreads);
        helpers.chain(self.shares.windows_only().iter().copied())
    }

    /// Returns the series whose medians describe a path, if there is only one.
    pub fn only_series(&self, node: &Node) -> Option<&'a Series> {
        let mut series = self.opened_series(node);
        series.next().filter(|_| series.next().is_none())
    }

    /// Returns the series of a path's function with recorded calls, if most of these took the path.
    pub fn opened_series(&self, node: &Node) -> impl Iterator<Item = &'a Series> + use<'a> {
        let site = described(node, &self.snapshot.sites, &self.opened);
        let all = site.into_iter().flat_map(|site| &site.series);
        all.filter(|series| series.opened() > 0)
    }

    /// Returns `true` if a GPU that a function uses was idle for long.
    pub fn was_idle(&self, function: Option<usize>) -> bool {
        self.used(function).iter().any(|gpu| gpu.known_idle().is_some_and(|share| share >= IDLE))
    }

    /// Returns `true` unless every GPU that a function uses is known to have been busy.
    pub fn may_have_idled(&self, function: usize) -> bool {
        let used = self.used(Some(function));
        used.iter().any(|gpu| gpu.most_idle().is_none_or(|share| share >= IDLE))
    }

    /// Returns the GPUs on which a function, with those that it calls, has at least a tenth of the time that it has on
    /// any, or the GPUs on which all functions have. One kernel on a GPU says nothing about the calls.
    pub fn used(&self, function: Option<usize>) -> Vec<&GpuTime<'a>> {
        let mut are_inside = vec![false; self.snapshot.tree.len()];
        // In the order of the GPUs.
        let mut times = vec![0.0; self.gpus.len()];
        for (at, node) in self.snapshot.tree.iter().enumerate() {
            let is_inside = node.parent.is_some_and(|caller| caller < at && are_inside[caller]);
            are_inside[at] = is_inside || function.is_none_or(|site| node.site == Some(site));
            for (gpu, ns) in self.gpus.iter().zip(&mut times).filter(|_| are_inside[at]) {
                *ns += node.self_ns_by_device.get(&gpu.device.id).copied().unwrap_or_default();
            }
        }
        let least_ns = MATTERS * times.iter().copied().fold(0.0, f64::max);
        if least_ns > 0.0 {
            let all = self.gpus.iter().zip(times).filter(|(_, ns)| *ns >= least_ns);
            all.map(|(gpu, _)| gpu).collect()
        } else if function.is_some() {
            self.used(None)
        } else {
            self.gpus.iter().collect()
        }
    }
}

/// Returns the functions around helper threads.
fn helped(nodes: &[Node]) -> Vec<usize> {
    let are_helped = any_inside(nodes, |node| node.owner() == Owner::HelperThreads);
    let helped = nodes.iter().zip(are_helped).filter(|(_, is_helped)| *is_helped);
    helped.filter_map(|(node, _)| node.site).collect()
}

/// Returns the host time of all calls of the outermost functions, or `None` if it is unknown for any of them.
pub fn in_functions_ns(snapshot: &Snapshot) -> Option<f64> {
    let roots = snapshot.tree.iter().filter(|node| node.parent.is_none());
    let mut sum_ns = 0.0;
    for node in roots.filter(|node| node.source != Source::Windows) {
        // The tree has no calls in warm-up.
        let site = snapshot.sites.get(node.site?)?;
        let in_tree = site.timed.saturating_add(site.unsampled).max(1);
        let all = (site.calls as f64 / in_tree as f64).max(1.0);
        sum_ns += all * node.calls * node.per_call?.host_ns?;
    }
    // The tree contains neither untimed functions nor those timed by other clocks.
    let is_timed = |site: &Site| site.calls == 0 || site.timed > 0 || site.unsampled > 0;
    let others = snapshot.all_series().filter(|series| !series.is_gpu_time());
    let others = others.filter(|series| series.launch.is_none()).filter_map(Series::total);
    (sum_ns > 0.0 && snapshot.sites.iter().all(is_timed)).then(|| sum_ns + others.sum::<f64>())
}
