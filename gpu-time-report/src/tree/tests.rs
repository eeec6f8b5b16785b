use super::fixtures::{by_events, helpers, node, tree as pass};
use super::*;
use crate::Analysis;
use crate::fixtures as reports;
use crate::terminal::View;
use crate::{Coverage, Detail, Device, Measure, Process, Site, Snapshot, Terminal};

fn snapshot(nodes: Vec<Node>, devices: Vec<Device>) -> Snapshot {
    let process: Process = reports::process(None);
    Snapshot::new(process, devices, Vec::new()).with_tree(nodes)
}

#[test]
fn shares_are_of_self_time_and_add_up() {
    let snapshot = snapshot(pass(), vec![]);
    let shares: Vec<f64> = snapshot.tree.iter().map(|node| node.share).collect();
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{shares:?}");
    let longest: Vec<_> =
        snapshot.tree.iter().map(|node| (node.name.as_str(), node.parent)).collect();
    let expected = [("pass", None), ("attention", Some(0)), ("norm", Some(1)), ("norm", Some(0))];
    assert_eq!(longest, expected);
}

#[test]
fn shares_of_functions_are_of_their_own_time() {
    let mut snapshot = reports::kernels();
    let mut nodes = pass();
    // `pass` is the first function; the others are the second, which is called twice.
    nodes[0].site = Some(0);
    nodes[1..].iter_mut().for_each(|node| node.site = Some(1));
    snapshot.sites[1].series[0].measure = Measure::Span;
    snapshot = snapshot.with_tree(nodes);
    let own = |site: usize| snapshot.sites[site].series[0].own_share;
    assert_eq!(own(0), Some(20_000.0 / 320_000.0));
    // The second function's own time is 300 µs. Its calls take 350 µs in all, because one is nested in another.
    assert_eq!(own(1), Some(300.0 / 350.0));
    assert_eq!(own(2), None);
    // Brackets of launches contain nothing but the function's own launches.
    let mut of_launches = snapshot.clone();
    of_launches.sites[1].series[0].measure = Measure::Sum;
    let of_launches =
        of_launches.with_tree(pass().into_iter().map(|n| Node { site: Some(1), ..n }).collect());
    assert_eq!(of_launches.sites[1].series[0].own_share, Some(1.0));
    let read = Snapshot::from_json(snapshot.to_json().as_bytes()).unwrap();
    assert_eq!(read, snapshot);
}

#[test]
fn recursive_calls_count_once_in_the_total() {
    let mut snapshot = reports::kernels();
    // `a` calls itself, through `b` as well, and is called by `b`.
    let path = |site, parent, inclusive_ns, self_ns| Node {
        site: Some(site),
        ..node("f", parent, inclusive_ns, self_ns)
    };
    let nodes = vec![
        path(0, None, 300.0, 100.0),
        path(0, Some(0), 80.0, 80.0),
        path(1, Some(0), 120.0, 50.0),
        path(0, Some(2), 70.0, 70.0),
        path(1, None, 60.0, 20.0),
        path(0, Some(4), 40.0, 40.0),
    ];
    let totals = |snapshot: &Snapshot| {
        snapshot.sites[..2].iter().map(|site| site.series[0].total().unwrap()).collect::<Vec<_>>()
    };
    snapshot.sites[1].series[0].measure = Measure::Span;
    let [all_a, all_b] = totals(&snapshot)[..] else { panic!() };
    let snapshot = snapshot.with_tree(nodes);
    let [a, b] = totals(&snapshot)[..] else { panic!() };
    assert_eq!((a, b), (all_a * (340.0 / 490.0), all_b));
    assert_eq!(snapshot.sites[0].series[0].estimated_total_ns, Some(all_a));
    // With several rows, it is unknown which of them has the inner calls.
    let (nodes, mut snapshot) = (snapshot.tree.clone(), snapshot);
    let other = snapshot.sites[0].series[0].clone();
    snapshot.sites[0].series.push(other);
    assert_eq!(totals(&snapshot.with_tree(nodes))[0], all_a);
}

#[test]
fn forged_times_set_no_shares() {
    for ns in [-1.0, 0.0, f64::INFINITY] {
        let mut nodes = pass();
        nodes.iter_mut().for_each(|node| node.site = Some(0));
        nodes
            .iter_mut()
            .filter_map(|node| node.per_call.as_mut())
            .for_each(|mean| mean.busy_ns = ns);
        let snapshot = reports::kernels().with_tree(nodes);
        let series = &snapshot.sites[0].series[0];
        assert_eq!((series.own_share, series.outer_share), (None, None), "{ns}");
    }
}

#[test]
fn windows_add_work_that_is_not_annotated() {
    let mut gpu = reports::gpu();
    let mut coverage = reports::coverage();
    // The functions take 320 µs.
    let run_ns = reports::process(None).wall_ns as f64;
    (coverage.attributed, coverage.busy) = (320e3 / run_ns, 320e3 / run_ns + 0.1);
    coverage.not_annotated_error = Some(0.05);
    coverage.total_ns = 1e6;
    gpu.coverage = Some(coverage);
    let snapshot = snapshot(pass(), vec![gpu]);
    let outside = snapshot.tree.iter().find(|node| node.source == Source::Windows).unwrap();
    assert_eq!(outside.name, "<not annotated>");
    // In the phases, work outside of annotated functions takes a tenth of the time. The run takes 1.234 s.
    assert!((outside.self_ns - 123.4e6).abs() < 1e-6, "{outside:?}");
    assert!((outside.self_error_ns.unwrap() - 61.7e6).abs() < 1e-6, "{outside:?}");
    assert!((snapshot.tree.iter().map(|node| node.share).sum::<f64>() - 1.0).abs() < 1e-12);
}

#[test]
fn function_may_have_the_name_of_other_work() {
    let own = |snapshot: &Snapshot| {
        let times = Analysis::of(snapshot).own;
        times.iter().map(|time| (time.name.to_owned(), time.ns)).collect::<Vec<_>>()
    };
    let nodes = vec![node(Node::NOT_ANNOTATED, None, 2e6, 2e6), node("f", None, 1e6, 1e6)];
    let gpu = Device { coverage: Some(reports::coverage()), ..reports::gpu() };
    let snapshot = snapshot(nodes, vec![gpu]);
    assert_eq!(own(&snapshot), [("<not annotated>".to_owned(), 2e6), ("f".to_owned(), 1e6)]);
    let outside = Analysis::of(&snapshot).shares.windows_only()[0];
    assert_eq!(outside.source, Source::Windows);
}

/// They are like one function, but are none.
#[test]
fn helper_threads_are_no_function() {
    let nodes = vec![
        node("pass", None, 8e6, 2e6),
        helpers(0, 1e6),
        node("layer", Some(0), 5e6, 3e6),
        helpers(2, 2e6),
        node(Node::HELPER_THREADS, None, 1e6, 1e6),
    ];
    let snapshot = snapshot(nodes, vec![reports::gpu()]);
    assert!((snapshot.tree.iter().map(|node| node.share).sum::<f64>() - 1.0).abs() < 1e-12);
    let names = snapshot.tree.iter().map(|node| (node.name.as_str(), node.parent));
    let expected = [
        ("pass", None),
        ("layer", Some(0)),
        ("<helper threads>", Some(1)),
        ("<helper threads>", Some(0)),
        ("<helper threads>", None),
    ];
    assert_eq!(names.collect::<Vec<_>>(), expected);
    let shares = Analysis::of(&snapshot).shares;
    let helpers = shares.helpers().unwrap();
    assert_eq!((helpers.ns, shares.of_ns(helpers.ns).unwrap().value), (3e6, 3.0 / 9.0));
    let times = Analysis::of(&snapshot).own;
    let functions = times.iter().filter(|time| time.owner != Owner::HelperThreads);
    let functions: Vec<_> = functions.map(|time| (time.name, time.ns)).collect();
    assert_eq!(functions, [("layer", 3e6), ("pass", 2e6), ("<helper threads>", 1e6)]);
    assert!(snapshot.tree[0].site.is_some() && snapshot.tree[2].site.is_none());
    let folded = snapshot.to_folded();
    assert!(folded.contains("layer;<helper threads> 2000000\n"), "{folded}");
}

#[test]
fn folded_stacks_add_up_to_the_self_times() {
    let folded = snapshot(pass(), vec![]).to_folded();
    let stacks: Vec<&str> = folded.lines().collect();
    let expected =
        ["pass 20000", "pass;attention 150000", "pass;attention;norm 50000", "pass;norm 100000"];
    assert_eq!(stacks, expected);
}

#[test]
fn folded_stacks_have_bounded_lines() {
    let chain = (0..1_000).map(|at: usize| node("f", at.checked_sub(1), 1_000.0 - at as f64, 1.0));
    let folded = snapshot(chain.collect(), vec![]).to_folded();
    assert_eq!(folded.lines().count(), 1_000);
    let deepest = folded.lines().map(|line| line.matches('f').count()).max();
    assert_eq!(deepest, Some(Node::MAX_LEVELS));
}

#[test]
fn names_do_not_break_folded_stacks() {
    for (name, frame) in [("a;b\nc", r"a,b\nc"), ("a\u{202e}b", r"a\u{202e}b"), ("", "<unnamed>")] {
        let folded = snapshot(vec![node(name, None, 5.0, 5.0)], vec![]).to_folded();
        assert_eq!(folded, format!("{frame} 5\n"));
    }
}

#[test]
fn launch_bound_path_gives_both_sides() {
    let snapshot = snapshot(pass(), vec![]);
    assert!(snapshot.tree[0].launch_bound);
    assert!(!snapshot.tree[1].launch_bound);
    insta::assert_snapshot!(snapshot.to_tree(Terminal::default()));
}

#[test]
fn tree_by_events_marks_bounds() {
    let text = snapshot(by_events(), vec![]).to_tree(Terminal::default());
    let row = |name: &str| text.lines().find(|line| line.contains(name)).unwrap();
    // The path whose times are bounds has marks at self and total. Its callers have one at total.
    let marks: Vec<usize> = text.lines().skip(1).map(|line| line.matches('≤').count()).collect();
    assert_eq!(marks, [1, 1, 2, 0], "{text}");
    // All shares are of a sum that contains the bound.
    let mut shares = text.lines().skip(1).map(|line| line.split_whitespace().next().unwrap());
    assert!(shares.all(|share| share.ends_with("%?")), "{text}");
    assert!(row("pass").contains("pass  (by events)"), "{text}");
    assert!(!text.contains("waits for the CPU"), "{text}");
}

/// Events around a call measure its own stream only.
#[test]
fn total_with_other_streams_is_explained() {
    let is_explained = |nodes| {
        let to = Terminal { view: View::Tree, ..Terminal::default() };
        let table = snapshot(nodes, vec![]).to_table(to, Detail::Brief);
        table.contains("GPU/call: ")
    };
    assert!(!is_explained(by_events()));
    let mut nodes = by_events();
    nodes[0].per_call.as_mut().unwrap().busy_ns *= 0.9;
    assert!(is_explained(nodes.clone()));
    nodes[0].self_error_ns = Some(20_000.0);
    nodes[0].inclusive_error_ns = Some(20_000.0);
    assert!(!is_explained(nodes));
}

#[test]
fn tree_of_bounds_has_no_shares() {
    let bounds = by_events().into_iter().map(|node| Node { upper_bound: true, ..node }).collect();
    let gpu = Device { coverage: Some(reports::coverage()), ..reports::gpu() };
    let text = snapshot(bounds, vec![gpu]).to_tree(Terminal::default());
    assert!(text.contains("<not annotated>") && !text.contains('%'), "{text}");
}

/// Returns the lines of the tree on a terminal, none of them wider than the terminal.
fn on_terminal(nodes: Vec<Node>, columns: usize) -> Vec<String> {
    let to = Terminal { columns: Some(columns), ..Terminal::default() };
    let text = snapshot(nodes, vec![]).to_tree(to);
    let lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for line in &lines {
        assert!(line.chars().count() <= columns, "{line}\n{text}");
    }
    lines
}

#[test]
fn tree_fits_the_terminal() {
    let mut nodes = pass();
    for node in &mut nodes {
        node.name = format!("model::decoder::layers::{}::forward_with_cache", node.name);
    }
    let lines = on_terminal(nodes, 100);
    let end = |line: &String| line.rsplit("  ").next().unwrap().to_owned();
    assert!(end(&lines[1]).ends_with("pass::forward_with_cache"), "{lines:#?}");
    // The path's sentence takes a line of its own, and the next path is on the line after it.
    assert!(lines[2].starts_with("    waits ") && lines[2].contains(" 0.002 of 1.210 ms; "));
    assert!(end(&lines[3]).ends_with("::forward_with_cache"), "{lines:#?}");
}

/// The first paths in depth-first order may all be short.
#[test]
fn longest_of_many_paths_are_shown() {
    let mut nodes = vec![node("deep", None, 0.0, 0.0)];
    nodes.extend((0..300).map(|i| node(&format!("short_{i}"), Some(0), 10.0, 10.0)));
    nodes.push(node("long", None, 1_000.0, 1_000.0));
    let lines = on_terminal(nodes, 100);
    assert!(lines.iter().any(|line| line.ends_with("long")), "{lines:?}");
    let more = lines.iter().find(|line| line.starts_with("and ")).unwrap();
    assert!(more.starts_with("and 102 shorter paths"), "{more}");
}

#[test]
fn deep_paths_say_how_deep_they_are() {
    let chain = |parent: Option<usize>| {
        node(&format!("f{}", parent.map_or(0, |p| p + 1)), parent, 1e3, 1e3)
    };
    let nodes = (0..60).map(|at: usize| chain(at.checked_sub(1))).collect();
    let lines = on_terminal(nodes, 100);
    let row = |name: &str| lines.iter().find(|line| line.ends_with(name)).unwrap().as_str();
    let starts = |name: &str| row(name).find(name.trim_start()).unwrap();
    assert_eq!(starts(" f8") - starts(" f0"), 16);
    assert!(row(" f9").ends_with("  ↳9 f9") && row(" f59").ends_with("  ↳59 f59"), "{lines:#?}");
    assert_eq!(starts("↳59 f59"), starts("↳9 f9"));
}

/// Neither waits in the functions' times nor functions on other devices change it.
#[test]
fn work_that_is_not_annotated_is_that_of_the_windows() {
    let with_windows = Device { coverage: Some(reports::coverage()), ..reports::gpu() };
    let without = Device { id: "cuda:1".to_owned(), ..reports::gpu() };
    for nodes in [pass(), by_events(), vec![node("f", None, 0.0, 0.0)]] {
        let snapshot = snapshot(nodes, vec![with_windows.clone(), without.clone()]);
        let outside = snapshot.tree.iter().find(|node| node.source == Source::Windows).unwrap();
        // 35 % of the run, which takes 1.234 s.
        assert!((outside.self_ns - 431.9e6).abs() < 1e-6, "{outside:?}");
        assert!(!outside.upper_bound);
    }
    assert!(snapshot(pass(), vec![without]).tree.iter().all(|node| node.site.is_some()));
    assert!(snapshot(vec![], vec![with_windows]).tree.is_empty());
}

#[test]
fn shares_of_all_clocks_of_a_device_add_up() {
    let snapshot = reports::kernels();
    let shares = Analysis::of(&snapshot).shares;
    let of_site = |(at, site): (usize, &Site)| {
        let heads = site.series.iter().filter(|series| series.measure != Measure::Launch);
        heads.filter_map(|series| Some(shares.of_row(at, series)?.value)).sum::<f64>()
    };
    assert!((snapshot.sites.iter().enumerate().map(of_site).sum::<f64>() - 1.0).abs() < 1e-12);
}

#[test]
fn few_windows_have_an_unknown_error() {
    let few = |id: &str, windows| {
        let mut gpu = Device { id: id.to_owned(), ..reports::gpu() };
        let error = (windows >= 5).then_some(0.01);
        gpu.coverage = Some(Coverage {
            windows,
            busy: 0.9,
            attributed: 0.3,
            busy_error: error,
            attributed_error: error,
            not_annotated_error: error,
            ..reports::coverage()
        });
        gpu
    };
    for (devices, is_known) in [
        (vec![few("cuda:0", 3)], false),
        (vec![few("cuda:0", 40), few("cuda:1", 3)], false),
        (vec![few("cuda:0", 40), few("cuda:1", 40)], true),
    ] {
        let snapshot = snapshot(vec![node("f", None, 370.2e6, 370.2e6)], devices.clone());
        let outside = snapshot.tree.iter().find(|node| node.source == Source::Windows).unwrap();
        // 60 % of each device's time.
        let expected = 740.4e6 * devices.len() as f64;
        assert!((outside.self_ns - expected).abs() < 1.0, "{outside:?}");
        assert_eq!(outside.self_error_ns.is_some(), is_known, "{outside:?}");
        assert_eq!(outside.inclusive_error_ns, outside.self_error_ns);
        assert_eq!(
            snapshot.to_tree(Terminal::default()).contains(" ±? "),
            !is_known,
            "{}",
            snapshot.to_tree(Terminal::default())
        );
        let read = Snapshot::from_json(snapshot.to_json().as_bytes()).unwrap();
        assert_eq!(read, snapshot);
    }
}

/// The medians of both processes say that the means are those of a slow call. They are not merged.
#[test]
fn merged_path_is_launch_bound_only_if_it_was_in_a_process() {
    let is_bound = |was_bound| {
        let mut process = crate::fixtures::process(None);
        process.merged = vec![process.clone(), process.clone()];
        let nodes =
            fixtures::tree().into_iter().map(|node| Node { launch_bound: was_bound, ..node });
        let snapshot = Snapshot::new(process, Vec::new(), Vec::new()).with_tree(nodes.collect());
        [&snapshot.tree[0], &snapshot.tree[1]].map(|node| node.launch_bound)
    };
    assert_eq!(is_bound(true), [true, false]);
    assert_eq!(is_bound(false), [false, false]);
}

/// Events do not tell the waits, so that those of the sum are unknown.
#[test]
fn merged_path_by_events_is_launch_bound_if_it_was_in_a_process() {
    let is_bound = |was_bound| {
        let mut snapshot = reports::kernels();
        snapshot.process.merged = vec![snapshot.process.clone(), snapshot.process.clone()];
        let node = Node { launch_bound: was_bound, ..by_events()[0].clone() };
        let snapshot = snapshot.with_tree(vec![node]);
        (snapshot.tree[0].launch_bound, snapshot.sites[0].launch_bound)
    };
    assert_eq!(is_bound(true), (true, Some(true)));
    assert_eq!(is_bound(false), (false, None));
}

#[test]
fn function_is_launch_bound_if_a_path_is() {
    let mut nodes = pass();
    nodes[1..].iter_mut().for_each(|node| node.site = Some(1));
    let snapshot = reports::kernels().with_tree(nodes);
    let seen: Vec<_> = snapshot.sites.iter().map(|site| site.launch_bound).collect();
    assert_eq!(seen, [Some(true), Some(false), None, None]);
    let snapshot = reports::kernels().with_tree(by_events());
    assert!(snapshot.sites.iter().all(|site| site.launch_bound.is_none()));
}

#[test]
fn tree_survives_json() {
    for nodes in [pass(), by_events()] {
        let snapshot = snapshot(nodes, vec![]);
        let read = Snapshot::from_json(snapshot.to_json().as_bytes()).unwrap();
        assert_eq!(read, snapshot);
    }
}

#[test]
fn forged_parents_end() {
    let nodes = vec![node("a", Some(0), 1.0, 1.0), node("b", Some(7), 2.0, 2.0)];
    let mut snapshot = snapshot(vec![], vec![]);
    snapshot.tree = nodes;
    assert_eq!(snapshot.to_folded(), "b 2\na 1\n");
}
