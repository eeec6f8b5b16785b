//! Sentences about what comes before all functions: the host's work outside of them, or work on the
//! GPU that none of them enqueued.

use super::gpus::most_idle_share;
use super::largest::most_times;
use crate::busy_time::BusyTime;
use crate::idle::{self, Idle};
use crate::in_use::{in_use_ns, in_use_words};
use crate::own_times::{Share, Shares};
use crate::units::percent;
use crate::{Device, Series, Site, Snapshot, Source, Unattributed, opened};

/// The minimum idle share of every device at which the host's work outside of functions is named.
const MOSTLY_IDLE: f64 = 0.5;
/// The maximum ratio of the functions' host time to the GPU's idle time at which the idle time
/// counts as lying mostly between calls.
const INSIDE: f64 = 0.5;

/// Work on the GPU that only windows found, of which there is more than of any function's.
pub struct FromWindows {
    pub ns: f64,
    /// It is most of the GPU time.
    pub is_most: bool,
    pub sentence: String,
}

/// Returns the idle share of each device with windows that tell it.
fn known_idle(snapshot: &Snapshot) -> impl Iterator<Item = (&Device, f64)> + '_ {
    snapshot.devices.iter().filter_map(|device| Some((device, Idle::of(snapshot, device)?.share)))
}

/// Returns a sentence about the host's work outside of annotated functions if the GPU idled mostly
/// during it. The functions of several threads may run at once, so they took at most the sum of
/// their times.
pub fn on_host(snapshot: &Snapshot) -> Option<String> {
    let is_busy = |gpu| most_idle_share(snapshot, gpu).is_some_and(|share| share < MOSTLY_IDLE);
    if snapshot.gpus().any(is_busy) {
        return None;
    }
    let least = known_idle(snapshot).min_by(|(_, one), (_, other)| one.total_cmp(other));
    let (device, idle) = least?;
    let process = &snapshot.process;
    // The functions of all processes, of which some may not have used the device.
    let (run_ns, of) = if device.used_by.is_empty() {
        (in_use_ns(process, device), in_use_words(process, device))
    } else {
        ((process.wall_ns as f64).max(1.0), "the run")
    };
    let inside = in_functions_ns(snapshot)? / run_ns;
    let [gpu, was] = match (snapshot.gpus().count(), known_idle(snapshot).count()) {
        (1, _) => ["the GPU", "was"],
        (_, 1) => [&*device.id, "was"],
        _ => ["the GPUs", "were"],
    };
    // Other processes may have used the GPU meanwhile.
    let idle_gpu = if !snapshot.devices.iter().any(Device::is_shared) {
        format!("{gpu} {was} idle")
    } else if process.merged.len() > 1 {
        format!("each process left {gpu} idle")
    } else {
        format!("this process left {gpu} idle")
    };
    (inside <= INSIDE * idle).then(|| {
        format!(
            "Look at what the host does outside of annotated functions first: on the host, their calls took {} of \
             {of}, and {idle_gpu} mostly between them.",
            percent(inside)
        )
    })
}

impl FromWindows {
    /// Returns the work, if windows found more of it than the own time of any function and than
    /// `first_ns`, the time for which a function is named.
    pub fn of(snapshot: &Snapshot, first_ns: f64) -> Option<FromWindows> {
        let shares = Shares::of(snapshot);
        let all = shares.windows_only().iter();
        let node = all.max_by(|one, other| one.self_ns.total_cmp(&other.self_ns))?;
        let most_ns = most_times(snapshot).into_values().fold(first_ns, f64::max);
        let are_telling = known_idle(snapshot).next().is_some();
        let share = (node.self_ns > most_ns && are_telling).then(|| shares.of_path(node))?;
        let is_most = match share {
            Some(share) => share.of_all > 0.5,
            None => node.self_ns > BusyTime::of_all(snapshot).ns,
        };
        let how_much = how_much(share, is_most);
        let sentence = if node.is_not_timed() {
            format!(
                "{how_much} is in calls of annotated functions without a GPU time, such as those in warm-up or \
                 timed by another clock."
            )
        } else {
            format!("{how_much} is not annotated: annotate {}.", what_to_annotate(snapshot))
        };
        Some(FromWindows { ns: node.self_ns, is_most, sentence })
    }
}

fn how_much(share: Option<Share>, is_most: bool) -> String {
    match share {
        Some(share) if is_most => format!("Most GPU time, {share},"),
        None if is_most => "Most GPU time".to_owned(),
        Some(share) => format!("More GPU time than any function has, {share},"),
        None => "More GPU time than any function has".to_owned(),
    }
}

fn what_to_annotate(snapshot: &Snapshot) -> String {
    match largest_kernel(snapshot) {
        Some((kernel, device)) => {
            let (name, share) = (opened::short(&kernel.name), percent(kernel.share));
            let of = device.map(|device| format!(" of {}", device.id)).unwrap_or_default();
            format!("the functions that enqueue `{name}` first ({share} of the busy time{of})")
        }
        None => "the functions that enqueue it first".to_owned(),
    }
}

/// Returns the kernel with the most time of those that are not annotated, and its device if there
/// are several.
fn largest_kernel(snapshot: &Snapshot) -> Option<(&Unattributed, Option<&Device>)> {
    let known = snapshot.devices.iter();
    let known = known.filter_map(|device| Some((device, idle::telling(snapshot, device)?)));
    let is_one = known.clone().count() == 1;
    let largest = known.filter_map(|(device, coverage)| {
        let kernel = coverage.unattributed.first()?;
        Some((device, kernel, coverage.busy * kernel.share))
    });
    let (device, kernel, _) = largest.max_by(|(.., one), (.., other)| one.total_cmp(other))?;
    Some((kernel, (!is_one).then_some(device)))
}

/// Returns the host time of all calls of the outermost functions, or `None` if it is unknown for
/// any of them.
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

#[cfg(test)]
mod tests {
    use crate::fixtures::{coverage, gpu, kernels, only_functions, process};
    use crate::lead::Lead;
    use crate::tree::fixtures::node;
    use crate::{Coverage, Device, Node, Snapshot, Unattributed};

    /// Returns a report of a GPU that was busy for 65 % of the run with work that is not annotated, and for
    /// this share of it with a function whose calls waited for the other share.
    fn report(own: f64, waited: f64) -> Snapshot {
        let wall_ns = process(None).wall_ns as f64;
        let kernel = |name: &str, share| Unattributed {
            name: name.to_owned(),
            count: 100,
            total_ns: 1e6,
            share,
            per_s: 100.0,
        };
        let coverage = Coverage {
            busy: 0.65 + own,
            idle: 0.35 - own,
            attributed: own,
            unattributed: vec![kernel("gemm<float>", 0.62), kernel("norm", 0.3)],
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
        Lead::of(snapshot).line().unwrap()
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
        assert!(snapshot.to_html().contains("enqueue <code>gemm&lt;float&gt;</code> first"));
    }

    #[test]
    fn trifling_function_is_not_named_beside_work_that_is_not_annotated() {
        assert_eq!(line(&report(0.01, 0.0)), format!("Most GPU time, 98.5%, {ANNOTATE}"));
        #[cfg(feature = "html")]
        assert!(
            report(0.01, 0.0).to_html().contains("enqueue <code>gemm&lt;float&gt;</code> first")
        );
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
        assert!(
            said(0.3).starts_with("Most GPU time, ~85.7%, is not annotated: "),
            "{}",
            said(0.3)
        );
        assert!(said(0.03).starts_with("Look at what the host does "), "{}", said(0.03));
    }

    #[test]
    fn longer_waits_come_before_work_that_is_not_annotated() {
        let short = line(&report(0.01, 0.1));
        let first =
            format!("{ANNOTATE} Of the functions, look at app::a first: it is launch-bound");
        assert!(short.contains(&first), "{short}");
        // Several threads waited at once.
        let long = line(&report(0.01, 0.7));
        assert!(long.starts_with("Look at app::a first: it is launch-bound"), "{long}");
    }

    #[test]
    fn windows_that_miss_functions_do_not_tell_what_is_not_annotated() {
        let mut snapshot = report(0.01, 0.0);
        snapshot.devices[0].coverage.as_mut().unwrap().attributed = 0.0;
        snapshot.tree[1].self_ns *= 2.0;
        assert!(line(&snapshot).starts_with("Look at app::a first: "), "{}", line(&snapshot));
    }

    /// The largest kernel is that of the busier GPU.
    #[test]
    fn kernel_of_several_gpus_is_named_with_its_device() {
        let mut snapshot = report(0.01, 0.0);
        let mut other = Device { id: "cuda:1".to_owned(), ..snapshot.devices[0].clone() };
        let coverage = other.coverage.as_mut().unwrap();
        (coverage.busy, coverage.unattributed[0].share) = (0.9, 0.5);
        coverage.unattributed[0].name = "conv".to_owned();
        snapshot.devices.push(other);
        let line = line(&snapshot);
        assert!(
            line.contains("enqueue `conv` first (50.0% of the busy time of cuda:1)."),
            "{line}"
        );
    }

    /// Windows of the second GPU saw nothing of the function that ran on it.
    #[test]
    fn kernel_in_windows_that_tell_nothing_is_not_named() {
        let mut snapshot = report(0.01, 0.0);
        let mut blind = Device { id: "cuda:1".to_owned(), ..snapshot.devices[0].clone() };
        let coverage = blind.coverage.as_mut().unwrap();
        (coverage.busy, coverage.attributed) = (1.0, 0.0);
        coverage.unattributed[0].name = "unseen".to_owned();
        snapshot.devices.push(blind);
        let node = snapshot.tree.iter_mut().find(|node| node.name == "app::a").unwrap();
        let of_each = [("cuda:0", 0.1), ("cuda:1", 0.9)];
        node.self_ns *= 2.0;
        node.self_ns_by_device =
            of_each.map(|(id, share)| (id.to_owned(), share * node.self_ns)).into();
        let line = line(&snapshot);
        assert!(line.contains("enqueue `gemm<float>` first (62.0% of the busy time)."), "{line}");
    }

    /// Returns what is said of two GPUs that idled while the host did other things. The functions on the
    /// second one kept it busy for this share of the run, and windows were open there or not.
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
        assert!(said.contains(", and the GPUs were idle mostly between them."), "{said}");
    }

    #[test]
    fn gpu_without_windows_is_busy_if_functions_keep_it_so() {
        let idle = on_two_gpus(0.2, false);
        assert!(idle.contains(", and cuda:0 was idle mostly between them."), "{idle}");
        let busy = on_two_gpus(0.85, false);
        assert!(!busy.contains("what the host does"), "{busy}");
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
        assert!(between(0, 0).contains(", and the GPU was idle mostly between them."));
        let shared = between(1, 0);
        assert!(
            shared.contains(", and this process left the GPU idle mostly between them."),
            "{shared}"
        );
        let merged = between(1, 2);
        assert!(
            merged.contains(", and each process left the GPU idle mostly between them."),
            "{merged}"
        );
    }
}
