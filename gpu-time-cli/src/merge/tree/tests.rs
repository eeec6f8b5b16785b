use super::*;

/// Returns a path with the means of its calls.
fn path(site: usize, parent: Option<usize>, calls: u64, self_ns: f64) -> Node {
    let per_call = value!(PerCall {
        busy_ns: self_ns / calls as f64,
        span_ns: 0.0,
        waited_ns: Some(10.0),
        host_ns: None,
        kernels: Some(calls as f64),
    });
    value!(Node {
        site: Some(site),
        parent,
        recorded: calls,
        calls: calls as f64,
        self_ns,
        self_error_ns: Some(3.0),
        per_call: Some(per_call),
        ..Node::of(Source::Opened)
    })
}

/// Returns the site, the parent, the calls and the self time of each path.
fn summary(nodes: &[Node]) -> Vec<(Option<usize>, Option<usize>, f64, f64)> {
    nodes.iter().map(|n| (n.site, n.parent, n.calls, n.self_ns)).collect()
}

#[test]
fn paths_are_those_of_the_merged_functions() {
    let mut merged = MergedTree::default();
    merged.add(&[path(0, None, 1, 100.0), path(1, Some(0), 2, 40.0)], &[0, 1], &HashMap::new());
    // The other report lists the functions in another order and has one more path.
    let other = [path(1, None, 3, 300.0), path(0, Some(0), 6, 20.0), path(0, None, 1, 5.0)];
    merged.add(&other, &[1, 0], &HashMap::new());
    let nodes = merged.finish(&[]);
    let expected =
        [(Some(0), None, 4.0, 400.0), (Some(1), Some(0), 8.0, 60.0), (Some(1), None, 1.0, 5.0)];
    assert_eq!(summary(&nodes), expected);
    assert_eq!((nodes[0].recorded, nodes[0].self_error_ns), (4, Some(3.0_f64.hypot(3.0))));
}

#[test]
fn means_are_weighted_by_calls_if_both_exist() {
    let mut merged = MergedTree::default();
    merged.add(&[path(0, None, 1, 100.0)], &[0], &HashMap::new());
    let mut other = path(0, None, 3, 900.0);
    other.per_call = other.per_call.map(|mean| value!(PerCall { waited_ns: None, ..mean }));
    merged.add(&[other], &[0], &HashMap::new());
    let mean = merged.finish(&[])[0].per_call.unwrap();
    assert_eq!((mean.busy_ns, mean.kernels), (250.0, Some(2.5)));
    assert_eq!((mean.waited_ns, mean.host_ns), (None, None));
}

/// A process that recorded few of its calls counts for all of them.
#[test]
fn means_are_weighted_by_all_calls() {
    let of = |recorded: u64, calls: f64, host_ns: f64| {
        let mut path = path(0, None, recorded, 0.0);
        path.calls = calls;
        path.per_call =
            path.per_call.map(|mean| value!(PerCall { host_ns: Some(host_ns), ..mean }));
        path
    };
    let mut merged = MergedTree::default();
    merged.add(&[of(1000, 1000.0, 320e3)], &[0], &HashMap::new());
    merged.add(&[of(90, 9000.0, 720e3)], &[0], &HashMap::new());
    let node = &merged.finish(&[])[0];
    assert_eq!((node.calls, node.per_call.unwrap().host_ns), (10_000.0, Some(680e3)));
}

#[test]
fn sum_has_worse_source_of_both() {
    let mut merged = MergedTree::default();
    merged.add(&[path(0, None, 1, 100.0)], &[0], &HashMap::new());
    let other =
        value!(Node { source: Source::Events, upper_bound: true, ..path(0, None, 1, 50.0) });
    merged.add(&[other], &[0], &HashMap::new());
    let [node] = &merged.finish(&[])[..] else { panic!() };
    assert_eq!((node.source, node.upper_bound), (Source::Events, true));
}

#[test]
fn path_may_be_launch_bound_if_it_was_in_a_report() {
    let merged = |were_bound: [bool; 2]| {
        let mut merged = MergedTree::default();
        for launch_bound in were_bound {
            let path = value!(Node { launch_bound, ..path(0, None, 1, 100.0) });
            merged.add(&[path], &[0], &HashMap::new());
        }
        merged.finish(&[])[0].launch_bound
    };
    assert_eq!([[false, true], [true, false], [false, false]].map(merged), [true, true, false]);
}

#[test]
fn work_outside_of_functions_adds_up() {
    let outside = |ns, error_ns| {
        value!(Node {
            name: Node::NOT_ANNOTATED.to_owned(),
            self_ns: ns,
            self_error_ns: error_ns,
            ..Node::of(Source::Windows)
        })
    };
    let function =
        value!(Node { name: Node::NOT_ANNOTATED.to_owned(), site: None, ..path(0, None, 1, 7.0) });
    let mut merged = MergedTree::default();
    for tree in [
        &[outside(50.0, Some(3.0)), path(0, None, 1, 100.0), function][..],
        &[path(0, None, 1, 100.0), outside(30.0, Some(4.0))],
        // A process without phases.
        &[path(0, None, 1, 100.0)],
    ] {
        merged.add(tree, &[0], &HashMap::new());
    }
    let nodes = merged.finish(&[]);
    let expected = [(None, None, 0.0, 80.0), (Some(0), None, 3.0, 300.0), (None, None, 1.0, 7.0)];
    assert_eq!(summary(&nodes), expected);
    assert_eq!((nodes[0].source, nodes[0].self_error_ns), (Source::Windows, Some(5.0)));
}

#[test]
fn forged_trees_do_no_harm() {
    let mut merged = MergedTree::default();
    let unknown =
        value!(Node { name: "gone".to_owned(), site: Some(9), ..path(0, Some(7), 1, 1.0) });
    merged.add(
        &[unknown.clone(), value!(Node { parent: Some(1), ..unknown })],
        &[0],
        &HashMap::new(),
    );
    assert_eq!(summary(&merged.finish(&[])), [(None, None, 2.0, 2.0)]);
}

#[test]
fn times_by_device_follow_the_devices() {
    let on = |times: &[(&str, f64)]| {
        value!(Node {
            self_ns_by_device: times.iter().map(|(id, ns)| (id.to_string(), *ns)).collect(),
            ..path(0, None, 1, 100.0)
        })
    };
    let mut merged = MergedTree::default();
    let devices = HashMap::from([("cuda:0", 1), ("cuda:1", 0)]);
    merged.add(&[on(&[("cuda:0", 70.0), ("cuda:1", 30.0)])], &[0], &devices);
    // `cuda:0` of this report is another GPU.
    let devices = HashMap::from([("cuda:0", 2)]);
    merged.add(&[on(&[("cuda:0", 100.0), ("cuda:9", 5.0)])], &[0], &devices);
    let ids = ["cuda:1", "cuda:0/1", "cuda:0/2"].map(str::to_owned);
    let nodes = merged.finish(&ids);
    let times = [("cuda:0/1", 70.0), ("cuda:0/2", 100.0), ("cuda:1", 30.0)];
    assert_eq!(nodes[0].self_ns_by_device, times.map(|(id, ns)| (id.to_owned(), ns)).into());
    // A path without times by device makes them unknown.
    let mut merged = MergedTree::default();
    for times in [&[("cuda:0", 70.0)][..], &[]] {
        merged.add(&[on(times)], &[0], &HashMap::from([("cuda:0", 0)]));
    }
    assert!(merged.finish(&ids)[0].self_ns_by_device.is_empty());
}
