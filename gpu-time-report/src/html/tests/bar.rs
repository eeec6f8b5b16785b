//! Tests of the bars of device time and their legends.

use super::*;

#[test]
fn bounds_in_the_bar_are_marked() {
    let nodes = [("decode", 9e8), ("norm", 2e8)]
        .map(|(name, ns)| Node { upper_bound: true, ..node(name, None, ns, ns) });
    let snapshot = Snapshot::new(process(None), vec![gpu()], vec![]).with_tree(nodes.into());
    let expected = ["decode ≤72.9%", "norm ≤16.2%", "idle or not annotated ≥10.9%"];
    assert_eq!(legends(&snapshot), [expected]);
    let page = snapshot.to_html();
    assert_eq!(page.matches("<i class=\"c0 bound\"").count(), 2);
    assert!(text(&snapshot).contains("GPU busy in functions≤1.100 s\n"));
}

/// Events include pauses of the GPU, of which phases know.
#[test]
fn busy_time_is_no_more_than_windows_found() {
    let bound = |name, ns| Node { upper_bound: true, ..node(name, None, ns, ns) };
    let gpu = Device { coverage: Some(Coverage { busy: 0.5, idle: 0.5, ..coverage() }), ..gpu() };
    let nodes = vec![bound("decode", 900e6), bound("norm", 200e6)];
    let snapshot = Snapshot::new(process(None), vec![gpu], vec![]).with_tree(nodes);
    // Work of functions ran for 35 % of the run, which takes 1.234 s.
    assert!(text(&snapshot).contains("≤431.9 ms\n"), "{}", text(&snapshot));
}

#[test]
fn known_time_divided_by_bounds_is_uncertain() {
    let nodes = |bounds: [bool; 2]| {
        let node = |((name, ns), upper_bound)| Node { upper_bound, ..node(name, None, ns, ns) };
        let times = [("decode", 300e6), ("norm", 100e6)].into_iter();
        times.zip(bounds).map(node).collect::<Vec<_>>()
    };
    let with_windows = Device { coverage: Some(coverage()), ..gpu() };
    let legends = |wall_ns, gpu: &Device, bounds| {
        let mut process = process(None);
        process.wall_ns = wall_ns;
        let snapshot = Snapshot::new(process, vec![gpu.clone()], vec![]).with_tree(nodes(bounds));
        legends(&snapshot).remove(0)
    };
    let run = 1_000_000_000;
    let rest = ["&lt;not annotated&gt; 35.0 ±0.6%", "idle 30.0 ±0.5%"];
    // The time that is known stays, and the bound gets the rest of what phases found.
    let some = legends(run, &with_windows, [true, false]);
    assert_eq!(some, ["decode ~25.0%", "norm 10.0%", rest[0], rest[1]]);
    let all = legends(run, &with_windows, [true, true]);
    assert_eq!(all, ["annotated functions 35.0 ±0.4%", rest[0], rest[1]]);
    // Without phases, the times are bounds on their parts of the run unless they exceed it.
    let rest = "idle or not annotated ≥60.0%";
    assert_eq!(legends(run, &gpu(), [true, false]), ["decode ≤30.0%", "norm 10.0%", rest]);
    let short = 200_000_000;
    assert_eq!(legends(short, &gpu(), [true, false]), ["decode 50.0%?", "norm ≤50.0%"]);
    assert_eq!(legends(short, &gpu(), [true, true]), ["annotated functions ≤100.0%"]);
}

/// Returns the names and the shares in the legends of the bars of device time.
fn legends(snapshot: &Snapshot) -> Vec<Vec<String>> {
    let page = snapshot.to_html();
    let lists = page.split("class=\"legend\">").skip(1);
    let text = |item: &str| {
        let (_, item) = item.split_once("\">").unwrap();
        let item = item.replace("</span> <b>", " ").replace("<span class=\"error\">", "");
        item.replace("</span>%", "%").split_once('<').unwrap().0.to_owned()
    };
    let items = |list: &str| {
        let (list, _) = list.split_once("</ul>").unwrap();
        list.split("class=\"name\" title=\"").skip(1).map(text).collect()
    };
    lists.map(items).collect()
}

#[test]
fn device_time_adds_up() {
    // Phases found the device busy for 70 % of the time, and functions for 35 %.
    let functions = ["attention 16.4%", "norm 16.4%", "pass 2.2%"];
    let rest = ["&lt;not annotated&gt; 35.0 ±0.6%", "idle 30.0 ±0.5%"];
    assert_eq!(legends(&nested())[0], [&functions[..], &rest].concat());
}

#[test]
fn device_time_has_the_exact_times_of_functions() {
    let nodes =
        [("decode", 300e6), ("norm", 100e6)].map(|(name, ns)| node(name, None, ns, ns)).to_vec();
    let bar = |coverage| {
        let mut process = process(None);
        process.wall_ns = 1_000_000_000;
        let gpu = Device { coverage: Some(coverage), ..gpu() };
        legends(&Snapshot::new(process, vec![gpu], vec![]).with_tree(nodes.clone())).remove(0)
    };
    // The rest differs from what phases found, since they found functions at work for 35 %.
    let expected =
        ["decode 30.0%", "norm 10.0%", "&lt;not annotated&gt; 30.0 ±0.6%", "idle 30.0 ±0.5%"];
    assert_eq!(bar(coverage()), expected);
    // Phases that saw no function at work do not stand for the run.
    let blind = bar(Coverage { attributed: 0.0, ..coverage() });
    assert_eq!(blind, ["decode 30.0%", "norm 10.0%", "idle or not annotated 60.0%"]);
    let few =
        Coverage { busy_error: None, idle_error: None, not_annotated_error: None, ..coverage() };
    assert_eq!(bar(few)[2..], ["&lt;not annotated&gt; ~30.0%", "idle ~30.0%"]);
    let idler = Coverage { busy: 0.3, idle: 0.7, ..coverage() };
    assert_eq!(bar(idler), ["decode 30.0%", "norm 10.0%", "idle ≤60.0%"]);
}

/// The first 600 ms of a second were before the process had a context.
#[test]
fn device_time_begins_with_its_first_use() {
    let process = Process { wall_ns: 1_000_000_000, ..process(None) };
    let windows = Coverage { covered_ns: 400e6, attributed: 0.7, ..coverage() };
    let gpu = Device { coverage: Some(windows), ..gpu() };
    let decode = vec![node("decode", None, 280e6, 280e6)];
    let snapshot = Snapshot::new(process, vec![gpu], vec![]).with_tree(decode);
    assert_eq!(legends(&snapshot), [["decode 70.0%", "idle 30.0 ±0.5%"]]);
    let text = text(&snapshot);
    assert!(text.contains(" of the time "), "{text}");
}

/// For example calls in warm-up.
#[test]
fn work_of_calls_that_were_not_timed_is_shown() {
    let process = Process { wall_ns: 1_000_000_000, ..process(None) };
    let phases = Coverage { not_timed: 0.25, not_timed_error: Some(0.004), ..coverage() };
    let gpu = Device { coverage: Some(phases), ..gpu() };
    let snapshot = Snapshot::new(process, vec![gpu], vec![]);
    let snapshot = snapshot.with_tree(vec![node("decode", None, 100e6, 100e6)]);
    let expected = [
        "decode 10.0%",
        "&lt;annotated, not timed&gt; 25.0 ±0.4%",
        "&lt;not annotated&gt; 35.0 ±0.6%",
        "idle 30.0 ±0.5%",
    ];
    assert_eq!(legends(&snapshot), [expected]);
}

/// Bounds get what phases found beside the times that are known, and no more than they are.
#[test]
fn known_times_stay_beside_bounds() {
    let legends = |nodes: &[(&str, f64, bool)], windows| {
        let process = Process { wall_ns: 1_000_000_000, ..process(None) };
        let gpu = Device { coverage: Some(windows), ..gpu() };
        let node = |&(name, ns, upper_bound): &(_, f64, bool)| Node {
            upper_bound,
            ..node(name, None, ns, ns)
        };
        let nodes = nodes.iter().map(node).collect();
        legends(&Snapshot::new(process, vec![gpu], vec![]).with_tree(nodes)).remove(0)
    };
    let step = ("step", 300e6, false);
    let small = legends(&[step, ("late", 20e6, true)], coverage());
    assert_eq!(small[..2], ["step 30.0%", "late ≤2.0%"]);
    let two = legends(&[step, ("late", 200e6, true), ("later", 300e6, true)], coverage());
    assert_eq!(two[..3], ["later 3.0%?", "step 30.0%", "late 2.0%?"].map(|part| part));
    // Phases that found less than the known time leave nothing for bounds.
    let idler = Coverage { busy: 0.1, idle: 0.9, attributed: 0.1, ..coverage() };
    let none = legends(&[step, ("late", 20e6, true)], idler);
    assert_eq!(none, ["step 30.0%", "idle ≤70.0%"]);
    // They leave little if they agree within their error.
    let close = Coverage { busy: 0.31, idle: 0.69, attributed: 0.299, ..coverage() };
    let near = legends(&[step, ("late", 400e6, true)], close);
    assert_eq!(near[..2], ["late ≤1.0%", "step 30.0%"]);
}

/// The time for which functions kept the GPU busy is the sum of the same times in another order.
#[test]
fn bounds_that_fit_stay_bounds() {
    let times = [("one", 76212290.32519871, false), ("two", 72513875.08998121, false)];
    let late = ("late", 2909075.9383968213, true);
    let node = |(name, ns, upper_bound)| Node { upper_bound, ..node(name, None, ns, ns) };
    let nodes: Vec<Node> = times.into_iter().chain([late]).map(node).collect();
    let process = Process { wall_ns: 1_000_000_000, ..process(None) };
    for coverage in [None, Some(coverage())] {
        let gpu = Device { coverage, ..gpu() };
        let snapshot = Snapshot::new(process.clone(), vec![gpu], vec![]);
        let legends = legends(&snapshot.with_tree(nodes.clone())).remove(0);
        assert!(legends.contains(&"late ≤0.3%".to_owned()), "{legends:?}");
    }
}

/// They ran at once for an unknown time.
#[test]
fn bounds_beside_more_than_the_run_stay() {
    let process = Process { wall_ns: 1_000_000_000, ..process(None) };
    let late = Node { upper_bound: true, ..node("late", None, 14e6, 14e6) };
    let known = ["one", "two"].map(|name| node(name, None, 700e6, 700e6));
    let snapshot = Snapshot::new(process, vec![gpu()], vec![]);
    let snapshot = snapshot.with_tree([&known[..], &[late]].concat());
    assert_eq!(legends(&snapshot), [["one ≤50.0%", "two ≤50.0%", "late ≤1.0%"]]);
}

/// The same without a bound.
#[test]
fn estimates_that_are_cut_are_bounds() {
    let process = Process { wall_ns: 1_000_000_000, ..process(None) };
    let sampled = |name| Node { self_error_ns: None, ..node(name, None, 700e6, 700e6) };
    let snapshot = Snapshot::new(process, vec![gpu()], vec![]);
    let snapshot = snapshot.with_tree(vec![sampled("one"), sampled("two")]);
    assert_eq!(legends(&snapshot), [["one ≤50.0%", "two ≤50.0%"]]);
}

/// The device has no other details.
#[test]
fn page_has_what_windows_found() {
    let gpu = gpu();
    let (id, name) = (gpu.id.clone(), gpu.name.clone());
    let gpu = Device { id, name, coverage: Some(coverage()), ..Device::default() };
    let text = text(&Snapshot::new(process(None), vec![gpu], vec![]));
    assert!(text.contains("busy 70.0 ±0.5%"), "{text}");
}

/// Work that ran at once counts once, with and without a bound beside it.
#[test]
fn known_overlap_counts_once_beside_bounds() {
    let nodes = |late| {
        let known = ["one", "two"].map(|name| node(name, None, 600e6, 600e6));
        let late = Node { upper_bound: true, ..node("late", None, late, late) };
        [&known[..], &[late]].concat()
    };
    let process = Process { wall_ns: 1_000_000_000, ..process(None) };
    let windows = Coverage { busy: 0.92, idle: 0.08, attributed: 0.91, ..coverage() };
    // The whole run is recorded.
    let windows = Coverage { total_ns: 1e9, covered_ns: 1e9, incomplete: 0, ..windows };
    let gpu = Device { coverage: Some(windows), ..gpu() };
    let rest = ["&lt;not annotated&gt; 1.0 ±0.6%", "idle 8.0 ±0.5%"];
    for late in [0.0, 10e6] {
        let snapshot = Snapshot::new(process.clone(), vec![gpu.clone()], vec![]);
        let legends = legends(&snapshot.with_tree(nodes(late))).remove(0);
        assert_eq!(legends, [&["one 45.5%", "two 45.5%"][..], &rest].concat());
    }
}

#[test]
fn short_functions_stay_beside_windows_without_them() {
    let process = Process { wall_ns: 1_000_000_000, ..process(None) };
    let windows = Coverage { busy: 0.1, idle: 0.9, attributed: 0.0, ..coverage() };
    let gpu = Device { coverage: Some(windows), ..gpu() };
    let snapshot = Snapshot::new(process, vec![gpu], vec![]);
    let legends = legends(&snapshot.with_tree(vec![node("short", None, 5e6, 5e6)]));
    assert_eq!(legends, [["short 0.5%", "&lt;not annotated&gt; 9.5 ±0.6%", "idle 90.0 ±0.5%"]]);
}

#[test]
fn device_time_without_windows_leaves_the_rest_open() {
    let mut snapshot = nested();
    snapshot.process.wall_ns = 640_000;
    snapshot.devices[0].coverage = None;
    let mut snapshot = snapshot.with_tree(tree());
    let expected = ["attention 23.4%", "norm 23.4%", "pass 3.1%", "idle or not annotated 50.0%"];
    assert_eq!(legends(&snapshot), [expected]);
    assert!(!text(&snapshot).contains("tells apart"));
    snapshot.process.wall_ns = 2_000_000_000;
    assert!(text(&snapshot).contains("GPU_TIME_RECORD=20ms/200ms "));
    snapshot.process.wall_ns = 60_000_000_000;
    assert!(text(&snapshot).contains("GPU_TIME_RECORD=20ms/1s "));
}

#[test]
fn device_time_is_that_of_each_device() {
    let mut snapshot = nested();
    snapshot.devices.push(Device { id: "cuda:1".to_owned(), ..gpu() });
    for node in &mut snapshot.tree {
        let device = if node.name == "norm" { "cuda:1" } else { "cuda:0" };
        node.self_ns_by_device = BTreeMap::from([(device.to_owned(), node.self_ns)]);
    }
    let legends = legends(&snapshot);
    let has = |list: &[String], name: &str| list.iter().any(|item| item.starts_with(name));
    assert_eq!(legends.len(), 2);
    assert!(!has(&legends[0], "norm") && has(&legends[0], "pass"), "{legends:?}");
    assert!(has(&legends[1], "norm") && !has(&legends[1], "pass"), "{legends:?}");
    // Nested functions are counted once.
    assert_eq!(legends[0][..2], ["attention 16.4%", "pass 2.2%"]);
}

#[test]
fn many_devices_share_a_legend() {
    let mut snapshot = nested();
    snapshot.devices[0].coverage.as_mut().unwrap().not_timed = 0.1;
    let first = snapshot.devices[0].clone();
    let more = (1..4).map(|i| Device { id: format!("cuda:{i}"), ..first.clone() });
    snapshot.devices.extend(more);
    for (at, node) in snapshot.tree.iter_mut().enumerate() {
        node.self_ns_by_device = BTreeMap::from([(format!("cuda:{}", at % 4), node.self_ns)]);
    }
    let page = snapshot.to_html();
    assert_eq!(page.matches("class=\"time-bar\"").count(), 4);
    let rest = ["&lt;annotated, not timed&gt; ", "&lt;not annotated&gt; ", "idle "];
    assert_eq!(legends(&snapshot), [[&["attention ", "norm ", "pass "][..], &rest].concat()]);
    let text = text(&snapshot);
    assert_eq!(text.matches("4 GPUs: NVIDIA").count(), 1, "{text}");
    // The details of each.
    assert_eq!(text.matches("busy 70.0 ±0.5%").count(), 4);
}

#[test]
fn each_kind_of_many_devices_is_named_once() {
    let mut snapshot = nested();
    let names = ["NVIDIA H200", "NVIDIA H100"].into_iter().cycle().map(str::to_owned);
    let device = |(at, name)| Device { id: format!("cuda:{at}"), name, ..gpu() };
    snapshot.devices = names.take(4).enumerate().map(device).collect();
    assert!(text(&snapshot).contains("4 GPUs: 2 × NVIDIA H200, 2 × NVIDIA H100cuda:0"));
}

/// Phases that saw no work of functions do not tell how busy the device was.
#[test]
fn details_do_not_say_what_blind_windows_found() {
    let gpu = Device { coverage: Some(Coverage { attributed: 0.0, ..coverage() }), ..gpu() };
    let nodes = vec![node("decode", None, 3e8, 3e8)];
    let text = text(&Snapshot::new(process(None), vec![gpu], vec![]).with_tree(nodes));
    assert!(text.contains("saw no work"), "{text}");
    assert!(!text.contains("busy 70.0"), "{text}");
}

/// Phases and functions differ by 2 % of the run, of which the sampled functions' time is within 1 %.
#[test]
fn work_within_the_errors_is_not_shown_as_not_timed() {
    let run_ns = process(None).wall_ns as f64;
    let windows = Coverage { attributed: 0.42, busy: 0.42, idle: 0.58, ..coverage() };
    let gpu = Device { coverage: Some(windows), ..gpu() };
    let mut decode = node("decode", None, 0.4 * run_ns, 0.4 * run_ns);
    decode.self_error_ns = Some(0.01 * run_ns);
    let snapshot = Snapshot::new(process(None), vec![gpu], vec![]).with_tree(vec![decode]);
    assert!(snapshot.tree.iter().all(|node| node.name != Node::NOT_TIMED));
    assert_eq!(legends(&snapshot), [["decode 40.0%", "idle 58.0 ±0.5%"]]);
}
