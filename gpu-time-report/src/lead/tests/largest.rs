use crate::Analysis;
use crate::fixtures::{coverage, gpu, process};
use crate::lead::ONLY;
use crate::tree::fixtures::node;
use crate::{Coverage, Device, Node, PerCall, Snapshot, Source};

/// Returns why to look at one of these functions, of which a call takes these times on the GPU and on the host, in
/// milliseconds. Events timed a hundred calls of each, in all of which the GPU may have waited.
fn first(functions: &[(&str, f64, f64)], windows: Option<Coverage>) -> (String, String) {
    let path = |&(name, gpu_ms, host_ms): &(&str, f64, f64)| {
        let ns = gpu_ms * 1e8;
        let mut node = node(name, None, ns, ns);
        (node.source, node.upper_bound, node.calls) = (Source::Events, true, 100.0);
        let [busy_ns, host_ns] = [gpu_ms, host_ms].map(|ms| ms * 1e6);
        let mean = PerCall { busy_ns, span_ns: busy_ns, ..PerCall::default() };
        Node { per_call: Some(PerCall { host_ns: Some(host_ns), ..mean }), ..node }
    };
    let gpu = Device { coverage: windows, ..gpu() };
    let snapshot = Snapshot::new(process(None), vec![gpu], Vec::new());
    let snapshot = snapshot.with_tree(functions.iter().map(path).collect());
    let first = Analysis::of(&snapshot).lead.first.unwrap();
    (first.name.to_owned(), first.why)
}

/// Nearly all that `load` took may have been the host's work.
#[test]
fn certain_time_comes_before_the_largest_bound() {
    let (name, why) = first(&[("load", 6.0, 5.999), ("compute", 4.0, 0.2)], None);
    assert_eq!(name, "compute");
    let expected =
        "at least 380.0 ms of GPU time is its own, more than is certain of any other function";
    assert_eq!(why, expected);
}

#[test]
fn bound_is_not_called_time() {
    let (name, why) = first(&[("load", 6.0, 6.1), ("compute", 4.0, 3.9)], None);
    assert_eq!(name, "load");
    let bound = "its own GPU time has the largest upper bound, at most 600.0 ms";
    assert_eq!(why, bound);
}

#[test]
fn sampled_function_that_may_not_be_the_largest_has_a_rival() {
    let why = |error_ns| {
        let mut nodes = vec![node("always", None, 1e8, 1e8), node("seldom", None, 8e7, 8e7)];
        nodes[1].self_error_ns = error_ns;
        let snapshot = Snapshot::new(process(None), vec![gpu()], Vec::new());
        Analysis::of(&snapshot.with_tree(nodes)).lead.first.unwrap().why
    };
    let rival = "~55.6% of GPU time is its own, but too few calls were recorded to tell whether `seldom` has more";
    assert_eq!([Some(1.1e7), None].map(why), [rival; 2]);
    // Without a rival, only the mark is left.
    let [estimate, exact] = [Some(9e6), Some(1e6)].map(why);
    assert_eq!(estimate, rival.split(',').next().unwrap());
    assert_eq!(exact, estimate.trim_start_matches('~'));
}

/// The run takes 1.234 s, of which functions kept the GPU busy for a tenth.
#[test]
fn bound_is_no_more_than_windows_found() {
    let windows = Coverage { busy: 0.9, idle: 0.1, attributed: 0.1, ..coverage() };
    let (_, why) = first(&[("load", 6.0, 6.1), ("compute", 4.0, 3.9)], Some(windows.clone()));
    assert!(why.ends_with(" at most 123.4 ms"), "{why}");
    let (_, why) = first(&[("load", 6.0, 6.1)], Some(windows));
    assert_eq!(why, format!("{ONLY}, at most 123.4 ms"));
}
