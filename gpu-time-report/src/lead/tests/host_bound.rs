use super::figures;
use crate::Analysis;
use crate::fixtures::{coverage, gpu, kernels, only_functions, process};
use crate::lead::host_bound;
use crate::tree::fixtures::node;
use crate::{Coverage, Device, Snapshot};

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
    host_bound(&figures(&Analysis::of(&snapshot))).map(|first| first.why)
}

#[test]
fn medians_are_stated_if_they_are_known() {
    let busy = "on the host for 258.2 µs of GPU work";
    let medians = format!("each call takes 2.000 ms {busy}");
    assert_eq!(reason(Some(2e6)).unwrap(), medians);
    let means = "on average, a call takes 5.000 ms on the host for 250.0 µs of GPU work";
    assert_eq!(reason(None).unwrap(), means);
}

#[test]
fn function_without_gpu_work_enqueues_none() {
    let mut node = node("parse", None, 0.0, 0.0);
    node.per_call.as_mut().unwrap().host_ns = Some(5e6);
    let idle = Device { coverage: Some(only_functions(0.9, 0.0)), ..gpu() };
    let snapshot = Snapshot::new(process(None), vec![idle], Vec::new()).with_tree(vec![node]);
    let why = host_bound(&figures(&Analysis::of(&snapshot))).unwrap().why;
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
