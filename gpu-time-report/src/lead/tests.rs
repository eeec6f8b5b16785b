mod gpus;
mod host_bound;
mod largest;
mod outside;

use super::*;
use crate::fixtures::{coverage, gpu, kernels, only_functions, process};
use crate::tree::fixtures::{by_events, node, tree};
use crate::{
    Analysis, Coverage, Detail, Device, KernelTimes, PerCall, Site, Snapshot, Source, Terminal,
};

/// Returns the figures that decide what to look at first.
fn figures<'t, 'a>(analysis: &'t Analysis<'a>) -> Figures<'t, 'a> {
    Figures::of(analysis.snapshot, &analysis.own, &analysis.shares, &analysis.gpus)
}

/// Returns what to look at first in a program with this call tree, and with phases in which the GPU had this idle share.
fn first(nodes: Vec<Node>, idle: Option<f64>) -> String {
    let own_ns: f64 = nodes.iter().map(|node| node.self_ns).sum();
    let functions = own_ns / process(None).wall_ns as f64;
    let gpu = Device { coverage: idle.map(|idle| only_functions(idle, functions)), ..gpu() };
    let snapshot = Snapshot::new(process(None), vec![gpu], Vec::new()).with_tree(nodes);
    Analysis::of(&snapshot).lead.line().unwrap_or_default()
}

const LAUNCH_BOUND: &str = "Look at pass first: it waits for the CPU for 11.5% of the run. On average, the GPU works 0.002 of 1.210 ms; the host \
     spends 3.556 µs on 3 kernels. Fused kernels or a graph would shorten the waits.";
const LARGEST: &str = "Look at attention first: ";

#[test]
fn idle_gpu_waited_for_the_host() {
    assert_eq!(first(tree(), Some(0.3)), LAUNCH_BOUND);
    // The idle share is not known.
    assert_eq!(first(tree(), None), LAUNCH_BOUND);
}

/// Another stream keeps the GPU busy while one waits for the host.
#[test]
fn busy_gpu_is_not_launch_bound() {
    let first = first(tree(), Some(0.02));
    assert!(first.starts_with(LARGEST) && first.contains("46.9%"), "{first}");
}

/// The same without phases: functions account for nearly all of the run.
#[test]
fn gpu_that_functions_keep_busy_is_not_launch_bound() {
    let nodes = |busy_ns| {
        let mut nodes = vec![node("decode", None, busy_ns, busy_ns), node("norm", None, 1e6, 1e6)];
        let mean = nodes[0].per_call.as_mut().unwrap();
        (mean.waited_ns, mean.host_ns) = (Some(0.4 * mean.span_ns), Some(mean.span_ns));
        nodes
    };
    // The run takes 1.234 s.
    let launch_bound = |busy_ns| first(nodes(busy_ns), None).contains("waits for the CPU");
    assert!(launch_bound(0.8e9));
    assert!(!launch_bound(0.9e9));
}

#[test]
fn waits_are_a_share_of_the_run() {
    // The run takes 1.234 s, and each of 160 calls waits.
    let nodes = |waited_ns| {
        let mut nodes = vec![node("decode", None, 0.2e9, 0.2e9)];
        let mean = nodes[0].per_call.as_mut().unwrap();
        (mean.span_ns, mean.waited_ns) = (mean.busy_ns + waited_ns, Some(waited_ns));
        nodes
    };
    let reason = |nodes, idle| {
        let first = first(nodes, idle);
        first
            .split_once("first: it ")
            .map(|(_, rest)| rest.split_once(". ").unwrap().0.to_owned())
            .unwrap()
    };
    let stated = "waits for the CPU for 44.1% of the run";
    let unstated = "waits for the CPU";
    assert_eq!(reason(nodes(3.4e6), Some(0.63)), stated);
    assert_eq!(reason(nodes(3.4e6), None), stated);
    // The calls of several threads waited at once.
    assert_eq!(reason(nodes(3.4e6), Some(0.4)), unstated);
    // The number of calls is an estimate.
    let mut rough = nodes(3.4e6);
    (rough[0].self_error_ns, rough[0].inclusive_error_ns) = (Some(2e7), Some(2e7));
    assert_eq!(reason(rough.clone(), Some(0.63)), stated.replace("44.1%", "~44.1%"));
    (rough[0].self_error_ns, rough[0].inclusive_error_ns) = (None, None);
    assert_eq!(reason(rough, Some(0.63)), unstated);
}

/// Every row is an upper bound, so that none tells where the GPU waited.
#[test]
fn starved_program_is_told_what_shows_the_waits() {
    let snapshot = |idle| {
        let mut snapshot = crate::fixtures::everything();
        snapshot.sites.retain(|site| site.series.iter().any(|series| series.device != "host"));
        for series in snapshot.sites.iter_mut().flat_map(|site| &mut site.series) {
            (series.fed, series.starved, series.upper_bound) = (0, series.measured, true);
        }
        for device in &mut snapshot.devices {
            device.coverage = Some(Coverage { busy: 1.0 - idle, idle, ..coverage() });
        }
        snapshot
    };
    let first = |idle| Analysis::of(&snapshot(idle)).lead.line().unwrap();
    let largest = "Look at app::sampled first: its own GPU time has the largest upper bound, at most 6.100 ms";
    let starved = format!(
        "{largest}, but nearly every call starved: the GPU waited for the CPU, and `GPU_TIME_RECORD=on` shows where."
    );
    assert_eq!(first(0.6), starved);
    assert_eq!(first(0.1), format!("{largest}."));
}

/// The GPU may also have waited for what the host does between the calls.
#[test]
fn only_function_is_not_told_to_show_which_function_waits() {
    let mut snapshot = crate::fixtures::everything();
    snapshot.sites.retain(|site| site.name == "app::sampled");
    for series in &mut snapshot.sites[0].series {
        (series.fed, series.starved, series.upper_bound) = (0, series.measured, true);
    }
    let coverage = Coverage { busy: 0.4, idle: 0.6, ..coverage() };
    snapshot.devices[0].coverage = Some(coverage);
    let only = "it is the only function with GPU time of its own, at most 6.100 ms, but nearly every call starved: the \
                GPU waited for the CPU, and `GPU_TIME_RECORD=on` shows where";
    assert_eq!(Analysis::of(&snapshot).lead.first.unwrap().why, only);
}

#[test]
fn path_without_host_time_falls_through() {
    let mut nodes = tree();
    nodes[0].per_call.as_mut().unwrap().host_ns = None;
    assert!(first(nodes, Some(0.3)).starts_with(LARGEST));
}

#[test]
fn function_with_little_of_the_run_is_named() {
    // The run takes 1.234 s.
    let nodes = |ns| vec![node("mlp", None, ns, ns), node("norm", None, 2e6, 2e6)];
    for (ns, share) in [(5.4e6, " 73.0% "), (700e6, " 99.7% ")] {
        let first = first(nodes(ns), None);
        assert!(first.starts_with("Look at mlp ") && first.contains(share), "{first}");
    }
}

#[test]
fn only_function_is_named() {
    let node = node("f", None, 700e6, 700e6);
    let expected = "Look at f first: it is the only function with GPU time of its own.";
    assert_eq!(first(vec![node.clone()], None), expected);
    let bound = Node { upper_bound: true, ..node };
    let expected =
        "Look at f first: it is the only function with GPU time of its own, at most 700.0 ms.";
    assert_eq!(first(vec![bound], None), expected);
}

/// The host's times would not tell what takes long on a GPU.
#[test]
fn nothing_is_concluded_on_a_machine_without_a_gpu() {
    let lead = |snapshot: &Snapshot| Analysis::of(snapshot).lead.line();
    assert_eq!(
        [crate::fixtures::on_host(), crate::fixtures::off()].map(|it| lead(&it)),
        [None, None]
    );
}

#[test]
fn bounds_say_so() {
    let nodes = |is_bound: [bool; 2]| {
        let nodes = by_events().into_iter().zip([("mlp", 900e6), ("norm", 200e6)]).zip(is_bound);
        let of = |((node, (name, ns)), upper_bound): ((Node, (&str, f64)), bool)| Node {
            name: name.to_owned(),
            parent: None,
            self_ns: ns,
            upper_bound,
            ..node
        };
        nodes.map(of).collect()
    };
    // The shares are not known.
    let expected =
        "Look at mlp first: its own GPU time has the largest upper bound, at most 900.0 ms.";
    assert_eq!(first(nodes([true, true]), None), expected);
    let expected = "Look at mlp first: 81.8%? of GPU time is its own.";
    assert_eq!(first(nodes([false, true]), None), expected);
}

/// Returns a report of one function with recorded calls, whose first call made the means long.
fn slow_first_call() -> Snapshot {
    let mut snapshot = kernels();
    snapshot.sites.truncate(1);
    snapshot.devices[0].coverage = None;
    snapshot.process.wall_ns = 10_000_000;
    let mut path = node("model::decode", None, 3e6, 3e6);
    path.recorded = 8;
    path.per_call.as_mut().unwrap().waited_ns = Some(3e6);
    snapshot.with_tree(vec![path])
}

#[test]
fn lead_has_the_medians_of_the_row() {
    let snapshot = slow_first_call();
    let line = snapshot.to_table(Terminal::default(), Detail::All);
    let (_, sides) = line.split_once("per call: waits for the CPU (").unwrap();
    let (sides, _) = sides.split_once(')').unwrap();
    let first = Analysis::of(&snapshot).lead.first.unwrap().to_string();
    assert!(first.contains(&format!("In each call, {sides}. ")), "{first}");
}

#[test]
fn remedy_follows_from_what_the_calls_enqueue() {
    let remedy = |change: fn(&mut KernelTimes, &mut PerCall)| {
        let mut snapshot = slow_first_call();
        let times = snapshot.sites[0].series[0].kernel_times.as_mut().unwrap();
        change(times, snapshot.tree[0].per_call.as_mut().unwrap());
        Analysis::of(&snapshot).lead.first.unwrap().remedy.unwrap()
    };
    assert!(remedy(|_, _| ()).starts_with("Fused kernels "));
    let copies = |times: &mut KernelTimes, _: &mut PerCall| {
        times.kernels.iter_mut().for_each(|kernel| kernel.name = "[copy HtoD]".to_owned());
    };
    assert!(remedy(copies).starts_with("Copies from pinned "));
    assert!(remedy(|_, mean| mean.kernels = Some(1.0)).starts_with("Less work "));
}

#[test]
fn slow_first_call_is_not_launch_bound() {
    let mut snapshot = slow_first_call();
    let times = snapshot.sites[0].series[0].kernel_times.as_mut().unwrap();
    times.gaps_ns.as_mut().unwrap().median = 0.0;
    snapshot.sites[0].launch_bound = None;
    let nodes = snapshot.tree.clone();
    let snapshot = snapshot.with_tree(nodes);
    assert!(!snapshot.tree[0].launch_bound);
    assert_eq!(snapshot.sites[0].launch_bound, Some(false));
    let first = Analysis::of(&snapshot).lead.first.unwrap().to_string();
    assert!(!first.contains("waits for the CPU"), "{first}");
}

/// The site's medians describe the usual path, which most of its calls took.
#[test]
fn rare_path_is_launch_bound_by_its_means() {
    let mut snapshot = slow_first_call();
    let times = snapshot.sites[0].series[0].kernel_times.as_mut().unwrap();
    times.gaps_ns.as_mut().unwrap().median = 0.0;
    let rare = Node { recorded: 3, ..snapshot.tree[0].clone() };
    let mut usual = Node { recorded: 5, ..rare.clone() };
    usual.per_call.as_mut().unwrap().waited_ns = Some(0.0);
    let snapshot = snapshot.with_tree(vec![usual, rare]);
    assert_eq!(snapshot.tree.iter().filter(|node| node.launch_bound).count(), 1);
    let first = Analysis::of(&snapshot).lead.first.unwrap().to_string();
    assert!(first.contains("On average, "), "{first}");
}

/// Returns what to look at first for a mostly idle GPU and two functions: `decode`, whose calls take
/// this share of the run on the host, and `trifle`, which takes next to no time.
fn with_host_time(share: f64, source: Source) -> String {
    Analysis::of(&host_times(share, source)).lead.line().unwrap()
}

fn host_times(share: f64, source: Source) -> Snapshot {
    let on_host = |name: &str, busy_ns: f64, host_ns: f64| {
        let mut node = node(name, None, 160.0 * busy_ns, 160.0 * busy_ns);
        let mean = node.per_call.as_mut().unwrap();
        (mean.waited_ns, mean.host_ns) = (Some(0.0), Some(host_ns));
        Node { source, ..node }
    };
    let wall_ns = process(None).wall_ns as f64;
    let mut nodes = vec![
        on_host("decode", 500_000.0, share * wall_ns / 160.0),
        on_host("trifle", 100.0, 0.001 * wall_ns / 160.0),
    ];
    let mut snapshot = kernels();
    snapshot.devices[0].coverage = Some(only_functions(0.8, 0.001));
    snapshot.sites.truncate(1);
    snapshot.sites[0].warmup = 0;
    (snapshot.sites[0].calls, snapshot.sites[0].timed) = (320, 320);
    // Only the means are known.
    snapshot.sites[0].series.clear();
    let trifle = Site { name: "trifle".to_owned(), ..snapshot.sites[0].clone() };
    snapshot.sites.push(trifle);
    nodes[1].site = Some(1);
    snapshot.with_tree(nodes)
}

/// The functions are those of both processes, of which one used this GPU.
#[test]
fn host_time_is_that_of_all_processes() {
    let mut snapshot = host_times(0.39, Source::Opened);
    let half = crate::Process { wall_ns: snapshot.process.wall_ns / 2, ..process(None) };
    snapshot.process.merged = vec![half.clone(), half];
    snapshot.devices[0].used_by = vec![0];
    let line = Analysis::of(&snapshot).lead.line().unwrap();
    assert!(line.contains(" took 39.1% "), "{line}");
}

#[test]
fn host_outside_of_functions_is_named() {
    let outside = "Look at what the host does outside of annotated functions first: on the host, their calls took 39.1% of \
                   the run, and the GPU was idle mostly between them. Of the functions, look at decode first: \
                   100.0% of GPU time is its own.";
    assert_eq!(with_host_time(0.39, Source::Opened), outside);
    assert_eq!(with_host_time(0.39, Source::Events), outside);
    let inside = with_host_time(0.6, Source::Opened);
    assert!(inside.starts_with("Look at decode ") && inside.contains(" 4.628 ms "), "{inside}");
    // Events give only a mean, which one slow first call may dominate.
    let inside = with_host_time(0.6, Source::Events);
    assert!(inside.contains(" 100.0% ") && !inside.contains(" host "), "{inside}");
}

/// The host time of warm-up calls is not measured, so they count like the other calls.
#[test]
fn warm_up_counts_as_time_in_functions() {
    let mut nodes = vec![node("decode", None, 1e6, 1e6)];
    nodes[0].per_call.as_mut().unwrap().host_ns = Some(1e6);
    let mut snapshot = kernels();
    snapshot.sites.truncate(1);
    snapshot.devices[0].coverage = None;
    let site = &mut snapshot.sites[0];
    (site.calls, site.timed, site.warmup) = (640, 160, 480);
    let snapshot = snapshot.with_tree(nodes);
    assert_eq!(in_functions_ns(&snapshot), Some(640e6));
    let mut snapshot = snapshot;
    snapshot.tree[0].per_call.as_mut().unwrap().host_ns = None;
    assert_eq!(in_functions_ns(&snapshot), None);
}

/// `trifle` takes longer on the host than on the GPU, but only a thousandth of the run.
#[test]
fn function_with_little_host_time_is_not_named() {
    let mut nodes = vec![node("gemm", None, 700e6, 700e6), node("trifle", None, 1e3, 1e3)];
    for (node, host_ns) in nodes.iter_mut().zip([1e6, 7.7e3]) {
        node.per_call.as_mut().unwrap().host_ns = Some(host_ns);
    }
    let first = first(nodes, Some(0.4));
    assert!(first.starts_with("Look at gemm "), "{first}");
}
