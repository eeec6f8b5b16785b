//! The sentences at the top of a report: what to look at first, and why.
//!
//! [`Lead::of`] lists the rules in their order, and each of them is a function that returns `None` where its figures do
//! not bear what it says.

mod figures;
mod longest;

use std::collections::HashMap;
use std::fmt;

pub use figures::Figures;
use figures::{MATTERS, in_functions_ns};
use longest::{Longest, total};

use crate::figure::Figure;
use crate::gpu_time::RUN;
use crate::own_times::{EXACT, OwnTime};
use crate::tree::Owner;
use crate::units::{self, percent};
use crate::{Device, Node, PhaseKernel, Series, Snapshot, Source, launch_bound, opened};

/// The part of a whole above which it is most of it.
const MOST: f64 = 0.5;
/// The minimum ratio of host time to GPU time at which a call is host-bound. The host takes some time for any call.
const HOST_BOUND: f64 = 2.0;
/// The minimum share of starved calls at which nearly all are. The first ones starve in any program.
const NEARLY_ALL: f64 = 0.9;
/// The number of standard errors within which one estimate may be above another.
const ERRORS: f64 = 2.0;
/// The minimum ratio of a function's time to that of work that is not annotated at which it is named beside that work.
const TRIFLING: f64 = 0.05;

/// The reason to look at the only function. Functions that call it have its time as well.
const ONLY: &str = "it is the only function with GPU time of its own";
/// What is said besides of starved calls, which do not tell where the GPU waited.
const STARVED: &str = ", but nearly every call starved: the GPU waited for the CPU, and `GPU_TIME_RECORD=on` shows where";

/// The sentences at the top of the page.
pub struct Lead<'a> {
    /// Names what comes before all functions: the host's work outside of annotated functions, or
    /// work on the GPU that is not annotated.
    pub outside: Option<String>,
    /// The function to look at first. `None` only if no function has GPU time, or none that matters
    /// beside work that is not annotated.
    pub first: Option<First<'a>>,
}

/// The function to look at first, and why. Displayed as a sentence.
pub struct First<'a> {
    /// Its index in the report.
    pub site: usize,
    pub name: &'a str,
    pub why: String,
    /// What to do about it, if the figures tell.
    pub remedy: Option<&'static str>,
    /// The time that the reason is about: waits, host time or GPU time.
    pub ns: f64,
    /// Only the first of the functions.
    pub follows_outside: bool,
}

impl<'a> Lead<'a> {
    /// Returns the sentences that the report has figures for.
    pub fn of(figures: &Figures<'_, 'a>) -> Lead<'a> {
        let between = between_calls(figures);
        let waits = match between {
            // The GPU waited elsewhere.
            Some(_) => None,
            None => launch_bound(figures).or_else(|| host_bound(figures)),
        };
        let bound = || certain(figures).or_else(|| largest_bound(figures));
        let first = waits.or_else(bound).or_else(|| largest(figures));
        let named_ns = first.as_ref().map_or(0.0, |first| first.ns);
        let found = largest_outside(figures, named_ns, between.is_some());
        let outside = found.map(|node| annotate(figures, node)).or(between);
        let is_trifle = |ns| found.is_some_and(|node| ns < TRIFLING * node.self_ns);
        let first = first.filter(|first| !is_trifle(first.ns));
        let first = first.map(|first| First { follows_outside: outside.is_some(), ..first });
        Lead { outside, first }
    }

    /// Returns what to look at first as one line.
    pub fn line(&self) -> Option<String> {
        units::joined(&[self.outside.clone(), self.first.as_ref().map(First::to_string)], " ")
    }
}

/// Whatever a function does, the GPU waits for what the host does between its calls. The functions of several threads
/// may run at once, so they took at most the sum of their times.
fn between_calls(figures: &Figures) -> Option<String> {
    let Figures { snapshot, gpus, .. } = figures;
    let known = gpus.iter().filter_map(|gpu| Some((gpu, gpu.known_idle()?)));
    let (gpu, idle) = known.clone().min_by(|(_, one), (_, other)| one.total_cmp(other))?;
    // The functions are those of all processes, of which some may not have used the device.
    let (time_ns, of) = if gpu.device.used_by.is_empty() {
        (gpu.in_use_ns, gpu.of)
    } else {
        ((snapshot.process.wall_ns as f64).max(1.0), RUN)
    };
    let inside = in_functions_ns(snapshot)? / time_ns;
    let is_busy = gpus.iter().any(|gpu| gpu.most_idle().is_some_and(|share| share < MOST));
    let devices: Vec<&Device> = known.map(|(gpu, _)| gpu.device).collect();
    (!is_busy && inside <= MOST * idle).then(|| {
        format!(
            "Look at what the host does outside of annotated functions first: on the host, their calls took {} of \
             {of}, and {} mostly between them.",
            percent(inside),
            were_idle(snapshot, &devices)
        )
    })
}

/// Returns words that say that these GPUs were idle. If other processes used any of them, it is only known how idle
/// those of the report left it.
fn were_idle(snapshot: &Snapshot, gpus: &[&Device]) -> String {
    let (name, were) = match gpus {
        [_] if snapshot.gpus().count() == 1 => ("the GPU".to_owned(), "was"),
        [gpu] => (gpu.id.clone(), "was"),
        _ if gpus.len() < snapshot.gpus().count() => (format!("{} GPUs", gpus.len()), "were"),
        _ => ("the GPUs".to_owned(), "were"),
    };
    if !gpus.iter().any(|gpu| gpu.is_shared()) {
        return format!("{name} {were} idle");
    }
    let each = if snapshot.process.merged.len() > 1 { "each" } else { "this" };
    format!("{each} process left {name} idle")
}

/// While the GPU waits for the host in the calls of a function, faster kernels gain nothing.
fn launch_bound<'a>(figures: &Figures<'_, 'a>) -> Option<First<'a>> {
    let Figures { snapshot, gpus, .. } = figures;
    let may_wait = |node: &&Node| node.launch_bound && !figures.has_helpers(node);
    let waited =
        |node: &Node| Some(node).filter(may_wait).map(|node| total(node, |mean| mean.waited_ns));
    let longest = Longest::of(&snapshot.tree, waited)?;
    let Longest { site, ns, ref node, .. } = longest;
    let medians = figures.only_series(node).and_then(launch_bound::sides_of_series);
    let medians = medians.map(|sides| format!("In each call, {sides}"));
    let means = || Some(format!("On average, {}", node.launch_bound_sentence()?));
    let sides = medians.or_else(means)?;
    let span_ns = |node: &Node| total(node, |mean| Some(mean.span_ns));
    let roots = snapshot.tree.iter().filter(|node| node.parent.is_none());
    let matters = ns >= MATTERS * roots.map(span_ns).sum::<f64>()
        && span_ns(node) >= MATTERS * snapshot.process.wall_ns as f64
        && figures.may_have_idled(site);
    // Calls of several threads may wait at once, for longer than the GPU was idle.
    let share = || {
        let [gpu] = &gpus[..] else { return None };
        let is_estimate = node.inclusive_error_ns? > EXACT * node.inclusive_ns;
        let error = if is_estimate { None } else { Some(0.0) };
        let share = Figure::estimate(ns / gpu.in_use_ns, error);
        (share.value <= gpu.most_idle()?).then(|| format!(" for {share} of {}", gpu.of))
    };
    matters.then(|| {
        let share = share().unwrap_or_default();
        let kernels = node.per_call.and_then(|mean| mean.kernels).unwrap_or_default();
        let remedy = launch_bound::remedy(figures.only_series(node), kernels);
        let why = format!("it waits for the CPU{share}. {sides}");
        First { remedy: Some(remedy), ..First::of(&longest, why) }
    })
}

/// The same if the calls of a function take much longer on the host than on the GPU. One slow call, such as the first,
/// can make the means say so, and the medians must agree.
fn host_bound<'a>(figures: &Figures<'_, 'a>) -> Option<First<'a>> {
    let is_bound = |[host_ns, busy_ns]: &[f64; 2]| *host_ns >= HOST_BOUND * busy_ns;
    let medians = |series: &Series| {
        Some([series.host_ns?.median, series.kernel_times.as_ref()?.busy_ns?.median])
    };
    let of_each = |node: &Node| figures.only_series(node).and_then(medians);
    let times = |node: &Node| {
        let is_known = node.source == Source::Opened && !figures.has_helpers(node);
        let mean = node.per_call.filter(|_| is_known)?;
        let means = Some([mean.host_ns?, mean.busy_ns]).filter(is_bound)?;
        let known = figures.opened_series(node).filter_map(medians);
        let agree = known.map(|medians| is_bound(&medians)).reduce(|one, other| one || other);
        (agree != Some(false)).then(|| of_each(node).unwrap_or(means))
    };
    let tree = &figures.snapshot.tree;
    let longest = Longest::of(tree, |node| Some(times(node)?[0] * node.calls))?;
    let Longest { site, ns, ref node, .. } = longest;
    let [host_ns, busy_ns] = times(node)?;
    let each = of_each(node).map_or("on average, a call takes", |_| "each call takes");
    let what = match busy_ns {
        0.0 if node.inclusive_ns > 0.0 => "and most enqueue no GPU work".to_owned(),
        0.0 => "and enqueues no GPU work".to_owned(),
        busy_ns => format!("for {} of GPU work", units::time(busy_ns)),
    };
    let why = format!("{each} {} on the host {what}", units::time(host_ns));
    let matters = ns >= MATTERS * figures.snapshot.process.wall_ns as f64;
    let kernels = node.per_call.and_then(|mean| mean.kernels).unwrap_or_default();
    let remedy = || launch_bound::remedy(figures.only_series(node), kernels);
    let remedy = (busy_ns > 0.0).then(remedy);
    let first = First { remedy, ..First::of(&longest, why) };
    (matters && figures.was_idle(Some(site))).then_some(first)
}

/// Where all times are upper bounds, the largest may be nothing but waits. Time that is certain comes before it: in a
/// call timed by events, the GPU waited no longer than the host took for the call.
fn certain<'a>(figures: &Figures<'_, 'a>) -> Option<First<'a>> {
    let mut least_ns = HashMap::<usize, f64>::new();
    for node in &figures.snapshot.tree {
        let host_ns = node.per_call.and_then(|mean| mean.host_ns);
        if let Some((site, host_ns)) = node.site.zip(host_ns) {
            let ns = (node.self_ns - node.calls * host_ns).max(0.0);
            *least_ns.entry(site).or_default() += ns;
        }
    }
    let functions = figures.own.iter().filter_map(|own| {
        let Owner::Function(site) = own.owner else { return None };
        let most_ns = *figures.most_ns.get(&site)?;
        Some((own, most_ns, least_ns.get(&site)?.min(most_ns)))
    });
    let (own, most_ns, ns) = functions.max_by(|(.., one), (.., other)| one.total_cmp(other))?;
    let matters = ns >= MATTERS * figures.most_ns.values().sum::<f64>();
    if !matters || figures.own.len() == 1 || figures.shares.are_known() {
        return None;
    }
    let certain = "of GPU time is its own, more than is certain of any other function";
    let why = format!("at least {} {certain}{}", units::time(ns), starved(figures));
    First::of_own(own, why, most_ns)
}

/// Where all times are upper bounds, there are no shares.
fn largest_bound<'a>(figures: &Figures<'_, 'a>) -> Option<First<'a>> {
    let own = figures.own.first().filter(|_| !figures.shares.are_known())?;
    let Owner::Function(site) = own.owner else { return None };
    let ns = *figures.most_ns.get(&site)?;
    let has = match figures.own.len() {
        1 => ONLY,
        _ => "its own GPU time has the largest upper bound",
    };
    First::of_own(own, format!("{has}, at most {}{}", units::time(ns), starved(figures)), ns)
}

/// If the GPU was idle for long and nearly every call starved, an upper bound is mostly waits, which only recorded calls
/// show.
fn starved(figures: &Figures) -> &'static str {
    let on_gpu = || figures.snapshot.all_series().filter(|series| series.is_gpu_time());
    let measured: f64 = on_gpu().map(|series| series.measured as f64).sum();
    let starved: f64 = on_gpu().map(|series| series.starved as f64).sum();
    let are_starved = measured > 0.0 && starved >= NEARLY_ALL * measured;
    let is_opened = on_gpu().any(|series| series.opened() > 0);
    if are_starved && !is_opened && figures.was_idle(None) { STARVED } else { "" }
}

/// The GPU is busy with the function that has the most time of its own.
fn largest<'a>(figures: &Figures<'_, 'a>) -> Option<First<'a>> {
    let first = figures.own.first()?;
    let share = figures.shares.of_ns(first.ns)?;
    let rival = figures
        .own
        .get(1)
        .filter(|second| first.ns - second.ns < ERRORS * first.error_ns.hypot(second.error_ns));
    let is_only = figures.own.len() == 1;
    let why = if let Some(rival) = rival {
        format!(
            "{share} of GPU time is its own, but too few calls were recorded to tell whether `{}` has more",
            rival.name
        )
    } else if is_only && figures.outside().next().is_none() {
        ONLY.to_owned()
    } else if is_only || share.value >= MATTERS {
        format!("{share} of GPU time is its own")
    } else {
        format!("it has the most GPU time of its own, {share}, but no function stands out")
    };
    First::of_own(first, why, first.ns)
}

/// Work that only phases found, or that helper threads of a function enqueued, comes before functions of which none has
/// as much time. If the GPU was idle between the calls, that matters more, unless this work is most of the GPU time.
fn largest_outside<'a>(
    figures: &Figures<'_, 'a>,
    named_ns: f64,
    is_between: bool,
) -> Option<&'a Node> {
    let node = figures.outside().max_by(|one, other| one.self_ns.total_cmp(&other.self_ns))?;
    let longest_ns = figures.most_ns.values().copied().fold(named_ns, f64::max);
    let are_telling = node.owner() == Owner::HelperThreads
        || figures.gpus.iter().any(|gpu| gpu.known_idle().is_some());
    let comes_first = node.self_ns > longest_ns && (is_most(figures, node) || !is_between);
    (are_telling && comes_first).then_some(node)
}

fn is_most(figures: &Figures, node: &Node) -> bool {
    match figures.shares.of_path(node) {
        Some(share) => share.value > MOST,
        None => node.self_ns > figures.gpus.iter().map(|gpu| gpu.busy.value).sum(),
    }
}

/// Returns the sentence about work that only phases found, or of helper threads.
fn annotate(figures: &Figures, node: &Node) -> String {
    let is_most = is_most(figures, node);
    let most = if is_most { "Most GPU time" } else { "More GPU time than any function has" };
    let share = figures.shares.of_path(node).map(|share| format!(", {share},")).unwrap_or_default();
    if node.owner() == Owner::NotTimed {
        return format!(
            "{most}{share} is in calls of annotated functions without a GPU time: in warm-up, longer than a \
             phase, or timed by another clock."
        );
    }
    if node.owner() == Owner::HelperThreads {
        let function = node.parent.and_then(|parent| figures.snapshot.tree.get(parent));
        let of = function.map(|of| format!(" of `{}`", of.name)).unwrap_or_default();
        return format!(
            "{most}{share} is that of helper threads{of}: annotate what runs there, if it is in your code."
        );
    }
    let kernel = kernel(figures);
    format!("{most}{share} is not annotated: annotate the functions that enqueue {kernel}.")
}

/// Returns the kernel with the most time of those that are not annotated, in words.
fn kernel(figures: &Figures) -> String {
    let known = figures.gpus.iter().filter_map(|gpu| Some((gpu.device, gpu.phases()?)));
    let is_one = known.clone().count() == 1;
    let kernels = known.filter_map(|(device, coverage)| {
        let kernel: &PhaseKernel = coverage.kernels.iter().find(|kernel| !kernel.annotated)?;
        Some((device, kernel, coverage.busy * kernel.share))
    });
    let largest = kernels.max_by(|(.., one), (.., other)| one.total_cmp(other));
    let Some((device, kernel, _)) = largest else { return "it first".to_owned() };
    let (name, share) = (opened::short(&kernel.name), percent(kernel.share));
    let of = if is_one { String::new() } else { format!(" of {}", device.id) };
    format!("`{name}` first ({share} of the busy time{of})")
}

impl<'a> First<'a> {
    fn of(longest: &Longest<'a>, why: String) -> First<'a> {
        let Longest { site, name, ns, .. } = *longest;
        First { site, name, why, remedy: None, ns, follows_outside: false }
    }

    /// Returns a function by its own time, of which `ns` is the most that it can be.
    fn of_own(own: &OwnTime<'a>, why: String, ns: f64) -> Option<First<'a>> {
        let Owner::Function(site) = own.owner else { return None };
        Some(First { site, name: own.name, why, remedy: None, ns, follows_outside: false })
    }

    /// Returns what precedes the name, and what follows it.
    pub fn around_name(&self) -> [String; 2] {
        let before = if self.follows_outside { "Of the functions, look at " } else { "Look at " };
        [before.to_owned(), format!(" first: {}.", self.why)]
    }
}

impl fmt::Display for First<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [before, after] = self.around_name();
        write!(f, "{before}{}{after}", self.name)?;
        self.remedy.map_or(Ok(()), |remedy| write!(f, " {remedy}."))
    }
}

#[cfg(test)]
mod tests;
