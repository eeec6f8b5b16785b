use crate::Analysis;
use crate::fixtures::{coverage, gpu, kernels, only_functions, process};
use crate::tree::fixtures::{helpers, node};
use crate::{Coverage, Device, Node, PhaseKernel, Snapshot};

/// Returns a report of a GPU that was busy for 65 % of the run with work that is not annotated, and for
/// this share of it with a function whose calls waited for the other share.
fn report(own: f64, waited: f64) -> Snapshot {
    let wall_ns = process(None).wall_ns as f64;
    let kernel = |name: &str, share| PhaseKernel {
        name: name.to_owned(),
        count: 100,
        total_ns: 1e6,
        share,
        per_s: 100.0,
        ..PhaseKernel::default()
    };
    let coverage = Coverage {
        busy: 0.65 + own,
        idle: 0.35 - own,
        attributed: own,
        kernels: vec![kernel("gemm<float>", 0.62), kernel("norm", 0.3)],
        ..coverage()
    };
    let gpu = Device { coverage: Some(coverage), ..gpu() };
    let mut node = node("app::a", None, own * wall_ns, own * wall_ns);
    let mean = node.per_call.as_mut().unwrap();
    let waited_ns = waited * wall_ns / node.calls;
    (mean.waited_ns, mean.span_ns) = (Some(waited_ns), mean.busy_ns + waited_ns);
    Snapshot::new(process(None), vec![gpu], Vec::new()).with_tree(vec![node])
}

fn line(snapshot: &Snapshot) -> String {
    Analysis::of(snapshot).lead.line().unwrap()
}

/// Returns the function to look at first, and whether other work comes before it.
fn first(snapshot: &Snapshot) -> (String, bool) {
    let lead = Analysis::of(snapshot).lead;
    let first = lead.first.unwrap_or_else(|| panic!("{:?}", lead.outside));
    (first.name.to_owned(), lead.outside.is_some())
}

const ANNOTATE: &str = "is not annotated: annotate the functions that enqueue `gemm<float>` first \
     (62.0% of the busy time).";

#[test]
fn work_that_is_not_annotated_comes_first() {
    let snapshot = report(0.05, 0.0);
    let expected = format!(
        "Most GPU time, 92.9%, {ANNOTATE} Of the functions, look at app::a first: 7.1% of GPU time is its own."
    );
    assert_eq!(line(&snapshot), expected);
    let table = snapshot.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(table.contains(&expected), "{table}");
    #[cfg(feature = "html")]
    assert!(snapshot.to_html().contains("<code>gemm&lt;float&gt;</code> first"));
}

/// Without phases, it is known from the recorded calls.
#[test]
fn work_of_helper_threads_comes_first() {
    let nodes = vec![node("app::backward", None, 4e8, 1e8), helpers(0, 3e8)];
    let report = |coverage| {
        let gpu = Device { coverage, ..gpu() };
        Snapshot::new(process(None), vec![gpu], Vec::new()).with_tree(nodes.clone())
    };
    let line_of = |share: &str| {
        format!(
            "Most GPU time, {share}, is that of helper threads of `app::backward`: annotate what runs there, if it is \
             in your code. Of the functions, look at app::backward first:"
        )
    };
    let without = line(&report(None));
    assert!(without.starts_with(&line_of("75.0%")), "{without}");
    // Its own kernels waited, but maybe not the GPU.
    let few = helpers(0, 5e7);
    let mut waits = node("app::backward", None, 1.5e8, 1e8);
    let mean = waits.per_call.as_mut().unwrap();
    let waited_ns = 0.5 * process(None).wall_ns as f64 / waits.calls;
    (mean.waited_ns, mean.span_ns) = (Some(waited_ns), mean.busy_ns + waited_ns);
    let nodes = vec![waits, few];
    let snapshot = Snapshot::new(process(None), vec![gpu()], Vec::new()).with_tree(nodes);
    assert_eq!(first(&snapshot), ("app::backward".to_owned(), false));
    assert!(line(&snapshot).contains(" 66.7% "), "{}", line(&snapshot));
}

#[test]
fn trifling_function_is_not_named_beside_work_that_is_not_annotated() {
    assert_eq!(line(&report(0.01, 0.0)), format!("Most GPU time, 98.5%, {ANNOTATE}"));
}

/// The calls took next to no time on the host, so that the GPU idled outside of them.
#[test]
fn work_that_is_not_annotated_comes_before_the_host() {
    let said = |not_annotated: f64| {
        let mut snapshot = kernels();
        snapshot.sites.truncate(1);
        let site = &mut snapshot.sites[0];
        (site.warmup, site.calls, site.timed) = (0, 160, 160);
        let coverage = snapshot.devices[0].coverage.as_mut().unwrap();
        (coverage.busy, coverage.idle) = (0.05 + not_annotated, 0.95 - not_annotated);
        coverage.attributed = 0.05;
        let ns = 0.05 * snapshot.process.wall_ns as f64;
        line(&snapshot.with_tree(vec![node("decode", None, ns, ns)]))
    };
    let (most, host) = (said(0.3), said(0.03));
    assert!(most.contains(", ~85.7%, ") && !most.contains(" host "), "{most}");
    assert!(host.contains(" host ") && !host.contains("not annotated"), "{host}");
}

#[test]
fn longer_waits_come_before_work_that_is_not_annotated() {
    let short = line(&report(0.01, 0.1));
    assert!(short.contains(ANNOTATE) && short.contains("waits for "), "{short}");
    assert_eq!(first(&report(0.01, 0.1)), ("app::a".to_owned(), true));
    // Several threads waited at once.
    let long = report(0.01, 0.7);
    assert_eq!(first(&long), ("app::a".to_owned(), false));
    assert!(line(&long).contains("waits for "), "{}", line(&long));
}

#[test]
fn windows_that_miss_functions_do_not_tell_what_is_not_annotated() {
    let mut snapshot = report(0.01, 0.0);
    snapshot.devices[0].coverage.as_mut().unwrap().attributed = 0.0;
    snapshot.tree[1].self_ns *= 2.0;
    assert_eq!(first(&snapshot), ("app::a".to_owned(), false));
}

/// The largest kernel is that of the busier GPU.
#[test]
fn kernel_of_several_gpus_is_named_with_its_device() {
    let mut snapshot = report(0.01, 0.0);
    let mut other = Device { id: "cuda:1".to_owned(), ..snapshot.devices[0].clone() };
    let coverage = other.coverage.as_mut().unwrap();
    (coverage.busy, coverage.kernels[0].share) = (0.9, 0.5);
    coverage.kernels[0].name = "conv".to_owned();
    snapshot.devices.push(other);
    let line = line(&snapshot);
    assert!(line.contains(" `conv` first (50.0% ") && line.ends_with(" of cuda:1)."), "{line}");
}

/// Phases of the second GPU saw nothing of the function that ran on it.
#[test]
fn kernel_in_windows_that_tell_nothing_is_not_named() {
    let mut snapshot = report(0.01, 0.0);
    let mut blind = Device { id: "cuda:1".to_owned(), ..snapshot.devices[0].clone() };
    let coverage = blind.coverage.as_mut().unwrap();
    (coverage.busy, coverage.attributed) = (1.0, 0.0);
    coverage.kernels[0].name = "unseen".to_owned();
    snapshot.devices.push(blind);
    let node = snapshot.tree.iter_mut().find(|node| node.name == "app::a").unwrap();
    let of_each = [("cuda:0", 0.1), ("cuda:1", 0.9)];
    node.self_ns *= 2.0;
    node.self_ns_by_device =
        of_each.map(|(id, share)| (id.to_owned(), share * node.self_ns)).into();
    let line = line(&snapshot);
    assert!(line.contains(" `gemm<float>` first (62.0% "), "{line}");
}

/// Returns what is said of two GPUs that idled while the host did other things. The functions on the
/// second one kept it busy for this share of the run, and phases were open there or not.
fn on_two_gpus(busy: f64, has_windows: bool) -> String {
    let mut snapshot = kernels();
    snapshot.sites.truncate(1);
    let site = &mut snapshot.sites[0];
    (site.warmup, site.calls, site.timed) = (0, 160, 160);
    let windows = |busy| Coverage { busy, idle: 1.0 - busy, attributed: busy, ..coverage() };
    snapshot.devices[0].coverage = Some(windows(0.1));
    let coverage = has_windows.then(|| windows(busy));
    snapshot.devices.push(Device { id: "cuda:1".to_owned(), coverage, ..gpu() });
    let run_ns = snapshot.process.wall_ns as f64;
    let on_each = [("cuda:0", 0.1), ("cuda:1", busy)];
    let ns = (0.1 + busy) * run_ns;
    let mut node = node("decode", None, ns, ns);
    node.per_call.as_mut().unwrap().host_ns = Some(1_000.0);
    node.self_ns_by_device = on_each.map(|(id, share)| (id.to_owned(), share * run_ns)).into();
    line(&snapshot.with_tree(vec![node]))
}

#[test]
fn several_gpus_were_idle() {
    let said = on_two_gpus(0.2, true);
    assert!(said.contains(" the GPUs were "), "{said}");
}

#[test]
fn gpu_without_windows_is_busy_if_functions_keep_it_so() {
    let idle = on_two_gpus(0.2, false);
    assert!(idle.contains(" cuda:0 was "), "{idle}");
    let busy = on_two_gpus(0.85, false);
    assert!(!busy.contains(" host "), "{busy}");
}

#[test]
fn shared_gpu_is_not_called_idle() {
    let between = |others, processes| {
        let mut snapshot = kernels();
        snapshot.process.merged = vec![snapshot.process.clone(); processes];
        let gpu = &mut snapshot.devices[0];
        gpu.coverage = Some(only_functions(0.8, 0.001));
        gpu.other_processes = Some(others);
        snapshot.sites.truncate(1);
        let site = &mut snapshot.sites[0];
        (site.warmup, site.calls, site.timed) = (0, 160, 160);
        let node = Node { recorded: 160, ..node("decode", None, 1e6, 1e6) };
        line(&snapshot.with_tree(vec![node]))
    };
    assert!(between(0, 0).contains(" the GPU was "));
    let shared = between(1, 0);
    assert!(shared.contains(" this process left "), "{shared}");
    let merged = between(1, 2);
    assert!(merged.contains(" each process left "), "{merged}");
}

/// Of a few phases, one may have found what no other would.
#[test]
fn nothing_is_concluded_from_fewer_than_five_windows() {
    let with_error = |snapshot: &mut Snapshot, error| {
        let coverage = snapshot.devices[0].coverage.as_mut().unwrap();
        (coverage.busy_error, coverage.idle_error) = (error, error);
    };
    let mut snapshot = report(0.05, 0.0);
    with_error(&mut snapshot, None);
    assert_eq!(first(&snapshot), ("app::a".to_owned(), false));
    let mut snapshot = super::host_times(0.39, crate::Source::Opened);
    with_error(&mut snapshot, None);
    assert_eq!(first(&snapshot), ("decode".to_owned(), false));
    let mut snapshot = super::host_times(0.6, crate::Source::Opened);
    with_error(&mut snapshot, None);
    assert!(!line(&snapshot).contains("on the host"), "{}", line(&snapshot));
}
