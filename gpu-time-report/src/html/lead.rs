//! The sentence at the top: how idle the GPU was, which function to look at first, and why.

use maud::{Markup, html};

use super::colours;
use crate::units::{self, printable};
use crate::{Coverage, Device, Node, PerCall, Snapshot, tree};

/// The share of the program's GPU spans from which on waits for the host come first.
const WAITED: f64 = 0.1;
/// The idle share of a device from which on time on the host comes first.
const IDLE: f64 = 0.3;
/// The ratio of host time to GPU time from which on a call keeps the GPU waiting.
const HOST_BOUND: f64 = 2.0;
/// The share of the GPU time from which on a function stands out.
const OUTSTANDING: f64 = 0.1;
/// A callee with this share of its caller's waits is named instead of the caller.
const MOSTLY: f64 = 0.8;

/// Renders the sentences. Nothing if no GPU time is known.
pub fn lead(snapshot: &Snapshot) -> Markup {
    let idle = idle(snapshot);
    let first = first(snapshot);
    html! {
        @if idle.is_some() || first.is_some() {
            p.lead {
                @if let Some(idle) = idle { b { (printable(&idle)) } " " }
                @if let Some((name, why)) = first {
                    @if let Some(why) = why {
                        "Look at " b { (printable(name)) } " first: " (printable(&why)) "."
                    } @else {
                        "No function stands out. " b { (printable(name)) } " has the most GPU time of its own."
                    }
                }
            }
        }
    }
}

/// Returns how idle each device was, as far as windows know it.
fn idle(snapshot: &Snapshot) -> Option<String> {
    let known = snapshot.devices.iter().filter_map(|device| Some((device, device.coverage()?)));
    let known: Vec<_> = known.collect();
    match &known[..] {
        [] => None,
        [(_, coverage)] => Some(format!("The GPU was idle {} of the time.", idle_share(coverage))),
        all => {
            let each = all
                .iter()
                .map(|(device, coverage)| format!("{} {}", device.id, idle_share(coverage)));
            Some(format!("Idle: {}.", each.collect::<Vec<_>>().join(", ")))
        }
    }
}

/// Returns the function to look at first, and the reason, if it stands out.
fn first(snapshot: &Snapshot) -> Option<(&str, Option<String>)> {
    if let Some(node) = longest_wait(&snapshot.tree) {
        let sentence = node.launch_bound_sentence()?;
        let why = format!("it is launch-bound. In each call, {sentence}");
        return Some((node.name(), Some(why)));
    }
    if let Some((node, mean)) =
        longest_on_host(snapshot).and_then(|node| Some((node, node.per_call?)))
        && let Some(host_ns) = mean.host_ns
    {
        let [host, busy] = [host_ns, mean.busy_ns].map(units::time);
        return Some((
            node.name(),
            Some(format!("each call takes {host} on the host for {busy} of GPU work")),
        ));
    }
    let functions = colours::functions(snapshot, None);
    let all = functions.iter().fold(0.0, |sum, (_, ns)| sum + ns);
    let &(name, ns) = functions.first()?;
    let why = format!("{} of the GPU time measured is its own", percent(ns / all));
    Some((name, Some(why).filter(|_| ns >= OUTSTANDING * all)))
}

/// Returns the launch-bound path whose calls waited longest for the host, if the waits matter.
fn longest_wait(nodes: &[Node]) -> Option<&Node> {
    let span_ns: f64 = nodes
        .iter()
        .filter(|node| node.parent.is_none())
        .map(|node| total(node, |mean| Some(mean.span_ns)))
        .sum();
    let node = longest(nodes, PerCall::waited_ns, |node| node.launch_bound)?;
    (total(node, PerCall::waited_ns) >= WAITED * span_ns).then_some(node)
}

/// Returns the host-bound path with the most host time, or `None` if no GPU was idle for long. The calls of a
/// host-bound path take much longer on the host than on the GPU, on average.
fn longest_on_host(snapshot: &Snapshot) -> Option<&Node> {
    let is_idle = snapshot.devices.iter().filter_map(Device::coverage).any(|c| c.idle >= IDLE);
    let is_long = |mean: &PerCall| mean.host_ns.is_some_and(|ns| ns >= HOST_BOUND * mean.busy_ns);
    let is_host_bound = |node: &Node| node.per_call.as_ref().is_some_and(is_long);
    longest(&snapshot.tree, PerCall::host_ns, is_host_bound).filter(|_| is_idle)
}

/// Returns the selected path with the largest sum over its calls. A callee with most of that sum is
/// returned instead of its caller.
fn longest(
    nodes: &[Node],
    of: fn(&PerCall) -> Option<f64>,
    is_selected: impl Fn(&Node) -> bool,
) -> Option<&Node> {
    let (children, roots) = tree::children(nodes);
    let largest = |among: &[usize]| {
        let selected = among.iter().copied().filter(|&at| is_selected(&nodes[at]));
        selected.max_by(|&one, &two| total(&nodes[one], of).total_cmp(&total(&nodes[two], of)))
    };
    let mut at = largest(&roots)?;
    while let Some(inner) = largest(&children[at]) {
        if total(&nodes[inner], of) < MOSTLY * total(&nodes[at], of) {
            break;
        }
        at = inner;
    }
    nodes.get(at)
}

/// Returns a sum over all calls of a path.
fn total(node: &Node, of: fn(&PerCall) -> Option<f64>) -> f64 {
    node.per_call.as_ref().and_then(of).map_or(0.0, |mean_ns| mean_ns * node.calls)
}

/// Returns the idle share with its error.
fn idle_share(coverage: &Coverage) -> String {
    match coverage.idle_error {
        Some(error) => format!("{:.1} ±{:.1}%", 100.0 * coverage.idle, 100.0 * error),
        None => percent(coverage.idle),
    }
}

fn percent(share: f64) -> String {
    units::share(share, 1.0)
}
