//! The sentences at the top of the page: how idle the GPU was, which function to look at first, and
//! why. The table shows the last of them, because it has the times by device.

mod first;
mod gpus;
mod host_bound;
mod largest;
mod longest;
mod outside;
mod time;

use first::First;
use gpus::{is_any_idle, most_idle_share, used_by};
use host_bound::HostBound;
use largest::largest;
use longest::{Longest, total};
use outside::FromWindows;

use crate::idle::Idle;
use crate::in_use::{in_use_ns, in_use_words};
use crate::launch_bound::sides_of_series;
use crate::tree::shares::OpenedCalls;
use crate::units::{self, percent};
use crate::{Device, Node, Site, Snapshot, series};

/// The minimum share of the program's GPU spans at which a launch-bound function is named first.
const WAITED: f64 = 0.1;
/// The minimum share of the run that a function's waits are stated for.
const LONG_WAIT: f64 = 0.01;
/// The maximum error of an estimate that is stated without it.
const STATED: f64 = 0.05;
/// The minimum ratio of a function's time to that of work that is not annotated at which it is named
/// beside that work.
const TRIFLING: f64 = 0.05;
/// The minimum share of the run at which a function is called launch-bound.
const WORTHWHILE: f64 = 0.05;

/// The sentences at the top of the page.
pub struct Lead<'a> {
    /// States the idle share of the GPU or, without windows, the share of the run that functions
    /// account for.
    #[cfg_attr(
        not(any(feature = "html", test)),
        expect(dead_code, reason = "the table has it by device")
    )]
    pub time: Option<String>,
    /// Names what comes before all functions: the host's work outside of annotated functions, or
    /// work on the GPU that is not annotated.
    pub outside: Option<String>,
    /// The function to look at first. `None` only if no function has a time, or none that matters
    /// beside work that is not annotated.
    pub first: Option<First<'a>>,
}

impl<'a> Lead<'a> {
    /// Returns the sentences that the report has figures for.
    pub fn of(snapshot: &'a Snapshot) -> Lead<'a> {
        let on_host = outside::on_host(snapshot);
        let first = match on_host {
            Some(_) => None,
            None => launch_bound(snapshot).or_else(|| host_bound(snapshot)),
        };
        let first = first.or_else(|| largest(snapshot, on_host.is_some()));
        let first = first.or_else(|| longest_on_host(snapshot));
        let windows_only = FromWindows::of(snapshot, first.as_ref().map_or(0.0, |first| first.ns));
        // If most work is outside of functions, so is the idle time, which then tells nothing.
        let windows_only = windows_only.filter(|work| work.is_most || on_host.is_none());
        let least_ns = windows_only.as_ref().map_or(0.0, |work| TRIFLING * work.ns);
        let outside = windows_only.map(|work| work.sentence).or(on_host);
        let first = first.filter(|first| first.ns >= least_ns);
        Lead {
            time: time::sentence(snapshot),
            first: first.map(|first| First { follows_outside: outside.is_some(), ..first }),
            outside,
        }
    }

    /// Returns what to look at first as one line.
    pub fn line(&self) -> Option<String> {
        let first = self.first.as_ref().map(First::to_string);
        let sentences: Vec<String> = [self.outside.clone(), first].into_iter().flatten().collect();
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }
}

/// Returns the launch-bound function whose calls waited longest for the host, unless the waits are
/// short or the GPUs that it uses are known to have been busy with other work meanwhile.
fn launch_bound(snapshot: &Snapshot) -> Option<First<'_>> {
    let span_ns: f64 = snapshot
        .tree
        .iter()
        .filter(|node| node.parent.is_none())
        .map(|node| total(node, |mean| Some(mean.span_ns)))
        .sum();
    let waited_ns = |node: &Node| total(node, |per_call| per_call.waited_ns);
    let Longest { name, ref node } =
        Longest::of(&snapshot.tree, |node| node.launch_bound.then(|| waited_ns(node)))?;
    let gpus = used_by(snapshot, name);
    let matters = waited_ns(node) >= WAITED * span_ns
        && is_worthwhile(snapshot, &gpus, total(node, |mean| Some(mean.span_ns)))
        && is_any_idle(snapshot, &gpus) != Some(false);
    let medians = sides_of_paths(snapshot, node).map(|sides| format!("In each call, {sides}"));
    let means = || Some(format!("On average, {}", node.launch_bound_sentence()?));
    let sentence = medians.or_else(means).filter(|_| matters)?;
    let share = waited_share(snapshot, node).map(|share| format!(" for {share}"));
    let share = share.unwrap_or_default();
    let why = format!("it is launch-bound (the GPU waited for the CPU{share}). {sentence}");
    Some(First::new(name, why, waited_ns(node)))
}

/// Returns the share of the run for which the GPU waited in the calls of a function, in words. `None` if
/// there are several GPUs, if the number of calls is not known well, or if the GPU is not known to have
/// been idle that long: calls of several threads may wait at once.
fn waited_share(snapshot: &Snapshot, node: &Node) -> Option<String> {
    let mut gpus = snapshot.gpus();
    let (Some(gpu), None) = (gpus.next(), gpus.next()) else { return None };
    let idle = most_idle_share(snapshot, gpu)?;
    let is_exact = node.inclusive_error_ns? <= STATED * node.inclusive_ns;
    let share = total(node, |per_call| per_call.waited_ns) / in_use_ns(&snapshot.process, gpu);
    let is_known = is_exact && share >= LONG_WAIT && share <= idle;
    is_known.then(|| format!("{} of {}", percent(share), in_use_words(&snapshot.process, gpu)))
}

/// Describes the medians of a launch-bound function, if most of its opened calls took these paths and
/// are in one series.
fn sides_of_paths(snapshot: &Snapshot, node: &Node) -> Option<String> {
    let site = OpenedCalls::of(&snapshot.tree).described(node, &snapshot.sites)?;
    let mut opened = site.series.iter().filter(|series| series.opened() > 0);
    let (Some(series), None) = (opened.next(), opened.next()) else { return None };
    sides_of_series(series)
}

/// Returns the host-bound function with the most host time, if a GPU that it uses is known to have
/// been idle for long.
fn host_bound(snapshot: &Snapshot) -> Option<First<'_>> {
    let HostBound { name, why, ns } = host_bound::longest(snapshot)?;
    let is_idle = is_any_idle(snapshot, &used_by(snapshot, name)) == Some(true);
    is_idle.then(|| First::new(name, why, ns))
}

/// Returns the function whose calls took longest by the clock of the host, if no GPU time is known.
fn longest_on_host(snapshot: &Snapshot) -> Option<First<'_>> {
    let total =
        |site: &Site| series::total(site.series.iter().filter(|series| series.launch.is_none()));
    let longest = snapshot
        .sites
        .iter()
        .reduce(|longest, site| if total(site) > total(longest) { site } else { longest });
    let (name, ns) = longest.map(|site| (&site.name, total(site))).filter(|(_, ns)| *ns > 0.0)?;
    let why =
        format!("no GPU time is known, and its calls took longest, {} in total", units::time(ns));
    Some(First::new(name, why, ns))
}

/// Returns `true` if a function's time is a worthwhile share of the run. With windows of the GPUs that it
/// uses, any time is, because the windows show how busy these were.
fn is_worthwhile(snapshot: &Snapshot, gpus: &[&Device], ns: f64) -> bool {
    let is_known = gpus.iter().any(|gpu| Idle::of(snapshot, gpu).is_some());
    is_known || ns >= WORTHWHILE * snapshot.process.wall_ns as f64
}

#[cfg(test)]
mod tests;
