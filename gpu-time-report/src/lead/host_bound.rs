//! The function whose calls take much longer on the host than on the GPU.

use super::longest::Longest;
use crate::tree::shares::OpenedCalls;
use crate::units;
use crate::{Node, Series, Site, Snapshot, Source};

/// The minimum ratio of host time to GPU time at which a call is host-bound.
const HOST_BOUND: f64 = 2.0;
/// The minimum share of the run that a host-bound function takes on the host.
const LONG_ON_HOST: f64 = 0.1;

/// A function whose calls take much longer on the host than on the GPU.
pub struct HostBound<'a> {
    pub name: &'a str,
    /// The reason to look at it.
    pub why: String,
    /// The host time of all its calls.
    pub ns: f64,
}

/// The times of a call of a path, in nanoseconds.
#[derive(Clone, Copy)]
struct CallTimes {
    host: f64,
    busy: f64,
    are_medians: bool,
}

/// Returns the host-bound function with the most host time: its calls take much longer on the host
/// than on the GPU. `None` if it took only a small part of the run.
pub fn longest(snapshot: &Snapshot) -> Option<HostBound<'_>> {
    let opened = OpenedCalls::of(&snapshot.tree);
    let times = |node: &Node| CallTimes::of(node, opened.described(node, &snapshot.sites));
    let host_ns = |node: &Node| Some(times(node)?.host * node.calls);
    let Longest { name, ref node } = Longest::of(&snapshot.tree, host_ns)?;
    let (times, ns) = (times(node)?, host_ns(node)?);
    let each = if times.are_medians { "each call takes" } else { "on average, a call takes" };
    let what = match times.busy {
        0.0 if node.inclusive_ns > 0.0 => "and most enqueue no GPU work".to_owned(),
        0.0 => "and enqueues no GPU work".to_owned(),
        busy => format!("for {} of GPU work", units::time(busy)),
    };
    let why = format!("{each} {} on the host {what}", units::time(times.host));
    let is_long = ns >= LONG_ON_HOST * snapshot.process.wall_ns as f64;
    is_long.then_some(HostBound { name, why, ns })
}

impl CallTimes {
    /// Returns the times of a host-bound path: the medians of the function that describes it, if they
    /// are those of one series, otherwise the means over its calls. `None` if the path is not
    /// host-bound. One slow call, such as the first, can make the means say that it is, so that the
    /// medians must agree.
    fn of(node: &Node, site: Option<&Site>) -> Option<CallTimes> {
        let mean = node.per_call.filter(|_| node.source == Source::Opened)?;
        let means = CallTimes { host: mean.host_ns?, busy: mean.busy_ns, are_medians: false };
        if !means.are_host_bound() {
            return None;
        }
        let all = site.iter().flat_map(|site| &site.series).filter(|series| series.opened() > 0);
        let medians: Vec<Option<CallTimes>> = all.map(CallTimes::medians).collect();
        match &medians[..] {
            [Some(medians)] => medians.are_host_bound().then_some(*medians),
            all if all.iter().all(Option::is_none) => Some(means),
            all => all.iter().flatten().any(|medians| medians.are_host_bound()).then_some(means),
        }
    }

    fn medians(series: &Series) -> Option<CallTimes> {
        let [host, busy] = [series.host_ns?, series.kernel_times.as_ref()?.busy_ns?];
        Some(CallTimes { host: host.median, busy: busy.median, are_medians: true })
    }

    fn are_host_bound(&self) -> bool {
        self.host >= HOST_BOUND * self.busy
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Coverage;
    use crate::fixtures::{coverage, gpu, kernels, process};
    use crate::tree::fixtures::node;

    /// Returns the reason to look at a function whose calls take 5 ms on average on the host and have
    /// this median. The run takes 1.234 s, and 160 calls keep the GPU busy for a fifth of it.
    fn reason(median_ns: Option<f64>) -> Option<String> {
        let mut snapshot = kernels();
        snapshot.sites.truncate(1);
        snapshot.devices[0].coverage = Some(Coverage { busy: 0.2, idle: 0.8, ..coverage() });
        let series = &mut snapshot.sites[0].series[0];
        match (&mut series.host_ns, median_ns) {
            (Some(host), Some(ns)) => host.median = ns,
            (host, _) => *host = None,
        }
        let mut node = node("decode", None, 40e6, 40e6);
        node.per_call.as_mut().unwrap().host_ns = Some(5e6);
        let snapshot = snapshot.with_tree(vec![node]);
        longest(&snapshot).map(|first| first.why)
    }

    #[test]
    fn medians_are_stated_if_they_are_known() {
        let busy = "on the host for 258.2 µs of GPU work";
        assert_eq!(reason(Some(2e6)).unwrap(), format!("each call takes 2.000 ms {busy}"));
        let means = "on average, a call takes 5.000 ms on the host for 250.0 µs of GPU work";
        assert_eq!(reason(None).unwrap(), means);
    }

    #[test]
    fn function_without_gpu_work_enqueues_none() {
        let mut node = node("parse", None, 0.0, 0.0);
        node.per_call.as_mut().unwrap().host_ns = Some(5e6);
        let snapshot = Snapshot::new(process(None), vec![gpu()], Vec::new()).with_tree(vec![node]);
        let HostBound { why, .. } = longest(&snapshot).unwrap();
        let expected = "on average, a call takes 5.000 ms on the host and enqueues no GPU work";
        assert_eq!(why, expected);
    }

    /// One call took most of the function's host time.
    #[test]
    fn slow_call_does_not_make_function_host_bound() {
        // Less than twice the GPU time.
        assert_eq!(reason(Some(0.5e6)), None);
        // Less than a tenth of the run.
        assert_eq!(reason(Some(0.7e6)), None);
    }
}
