//! Everything that a report has to say in sentences: warnings, advice and facts.

use std::collections::HashMap;

use crate::analysis::Analysis;
use crate::marks::Mark;
use crate::series::saturating_sum;
use crate::units::{self, bounded, joined, listed, two_digit_percent};
use crate::{
    Budget, CacheState, Clock, Coverage, Lost, Measure, Node, Remark, Series, Site, Snapshot,
    Source, losses, opened, surcharge,
};

/// The maximum number of facts of one kind, and of names in one of them.
const FACTS: usize = 10;
/// The maximum number of warnings.
const WARNINGS: usize = 20;
/// The number of functions that a note names, except in the brief table.
pub const NAMED: usize = 20;

/// A sentence about a report.
pub struct Note<'a> {
    pub severity: Severity,
    /// The functions that it is about. Empty if it is about the whole program.
    sites: Vec<&'a Site>,
    /// Follows the names of the functions.
    qualifier: String,
    text: String,
}

/// The kind of a note, in the order of the notes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A reason to doubt the figures.
    Warning,
    /// It ends with what to do for better figures.
    Advice,
    /// Calls and samples missing from the figures, and how the report was made.
    Fact,
}

impl<'a> Note<'a> {
    fn new(severity: Severity, sites: Vec<&'a Site>, text: impl Into<String>) -> Note<'a> {
        Note { severity, sites, qualifier: String::new(), text: text.into() }
    }

    /// Returns the note as a line, which names this many functions before it counts the others.
    pub fn line(&self, named: usize) -> String {
        let Note { sites, qualifier, text, .. } = self;
        let names: Vec<String> = sites.iter().map(|site| site.name.clone()).collect();
        match bounded(names, named, "more functions").join(", ") {
            names if names.is_empty() => text.clone(),
            names => format!("{names}{qualifier}: {text}"),
        }
    }
}

/// Returns all notes: warnings, then advice, then facts. Of each kind, those about the function to look at first come
/// first, but warnings about the process and its devices before them.
pub fn of<'a>(analysis: &Analysis<'a>) -> Vec<Note<'a>> {
    let snapshot = analysis.snapshot;
    let first = analysis.lead.first.as_ref().and_then(|first| snapshot.sites.get(first.site));
    let is_first = |site: &Site| first.is_some_and(|first| std::ptr::eq(first, site));
    let others = snapshot.sites.iter().filter(|site| !is_first(site));
    let sites: Vec<&Site> = first.into_iter().chain(others).collect();
    let warnings = of_devices(analysis).chain(of_sites(snapshot, &sites));
    let warnings = warnings.collect();
    let mut all = some(warnings, WARNINGS, "more warnings are in the JSON report");
    for notes in [advice(snapshot, &sites), facts(snapshot, &sites)] {
        let is_about_first = |note: &Note| note.sites.first().is_some_and(|site| is_first(site));
        let (about_first, others): (Vec<_>, Vec<_>) = notes.into_iter().partition(is_about_first);
        all.extend(about_first.into_iter().chain(others));
    }
    all
}

/// Leaves the first notes of a kind, and counts the others.
fn some<'a>(mut notes: Vec<Note<'a>>, most: usize, others: &str) -> Vec<Note<'a>> {
    if notes.len() > most + 1 {
        let left_out = units::count(notes.split_off(most).len() as u64);
        notes.push(Note::new(notes[0].severity, Vec::new(), format!("{left_out} {others}")));
    }
    notes
}

/// Returns the warnings about the process and its devices.
fn of_devices<'a>(analysis: &Analysis<'a>) -> impl Iterator<Item = Note<'a>> {
    let Snapshot { process, devices, .. } = analysis.snapshot;
    let of_devices = devices.iter().flat_map(move |device| {
        let of_phases = device.coverage.as_ref().and_then(Coverage::warning);
        let all = device.warnings.iter().cloned().chain(of_phases);
        all.map(|warning| format!("{}: {warning}", device.id))
    });
    let all = process.warnings.iter().cloned().chain(of_devices);
    all.map(|text| Note::new(Severity::Warning, Vec::new(), text))
}

/// Returns the warnings about functions. Those with the same warning share a note.
fn of_sites<'a>(snapshot: &Snapshot, sites: &[&'a Site]) -> impl Iterator<Item = Note<'a>> {
    let mut notes: Vec<Note> = Vec::new();
    // The places of the texts among the notes.
    let mut known: HashMap<String, usize> = HashMap::new();
    for &site in sites {
        let of_site = site.warnings.iter().cloned().chain(expired(site));
        let of_site = of_site.map(|warning| (String::new(), warning));
        let of_series = opened::warnings(snapshot, site);
        let of_series = of_series.into_iter().map(|(place, text)| (format!(" on {place}"), text));
        for (place, text) in of_site.chain(of_series) {
            match known.get(&text).and_then(|at| notes.get_mut(*at)) {
                Some(note) => {
                    note.qualifier.clear();
                    if note.sites.last().is_none_or(|last| !std::ptr::eq(*last, site)) {
                        note.sites.push(site);
                    }
                }
                None => {
                    known.insert(text.clone(), notes.len());
                    let note = Note::new(Severity::Warning, vec![site], text);
                    notes.push(Note { qualifier: place, ..note });
                }
            }
        }
    }
    notes.into_iter()
}

/// Warns about expired holds, unless fewer than 1 % expired.
fn expired(site: &Site) -> Option<String> {
    let Site { holds_expired: expired, holds_released: released, .. } = site;
    let all = released.saturating_add(*expired);
    (*expired > 0 && expired.saturating_mul(100) >= all).then(|| {
        let [expired, all] = [*expired, all].map(units::count);
        format!(
            "{expired} of {all} holds ended by their deadline: while its stream is held, the function waits \
             for the stream, or takes much longer than usual; remove `sleep`, or move the wait out of the \
             function"
        )
    })
}

/// Returns the notes that tell the user what to do to get better figures, the most important first.
fn advice<'a>(snapshot: &Snapshot, sites: &[&'a Site]) -> Vec<Note<'a>> {
    let about = |sites: Vec<&'a Site>, text: String| Note::new(Severity::Advice, sites, text);
    let samples = |(sites, count): (Vec<&'a Site>, u64), text: &str| {
        let plural = if count == 1 { "" } else { "s" };
        let qualifier = format!(" ({} sample{plural})", units::count(count));
        Note { qualifier, ..about(sites, text.to_owned()) }
    };
    let lost = |reason: Lost| {
        let (sites, count) = counted(sites, |series| series.lost.of(reason));
        let were_lost = losses::were_lost(count, Measure::Sum);
        about(sites, format!("{were_lost} because {}", reason.meaning()))
    };
    let at_floor = counted(sites, |series| series.at_floor);
    let tracked = counted(sites, |series| series.tracked);
    let mut of_sites = vec![
        remarked(sites, Remark::OtherStream, Severity::Advice),
        upper_bounds(snapshot, sites),
        samples(
            at_floor,
            "nothing ran between the events: check that the work is on the timed stream",
        ),
    ];
    of_sites.extend(Lost::ALL.map(lost));
    of_sites.push(samples(
        tracked,
        "cudarc's event tracking is in the times: call `disable_event_tracking` of the context",
    ));
    of_sites.extend(without_effect(sites));
    of_sites.retain(|note| !note.sites.is_empty());
    let no_kernels = snapshot.process.kernels.as_ref();
    let no_kernels = no_kernels.map(|why| format!("no kernels were recorded: {why}"));
    let floor = snapshot.has_bias_from(&["floor"]).then(|| {
        "kernels read about 1 µs longer than in Nsight Systems, because the bias is that of an empty pair: \
         run `gpu-time calibrate`"
            .to_owned()
    });
    let of_program = |text| about(Vec::new(), text);
    let before = no_call(snapshot).into_iter().chain(no_kernels).map(of_program);
    before.chain(of_sites).chain(floor.map(of_program)).collect()
}

/// Returns a note about the functions with a remark of the attribute, if there are any.
fn remarked<'a>(sites: &[&'a Site], remark: Remark, severity: Severity) -> Note<'a> {
    let text = match remark {
        Remark::UnparsedBody => {
            "the macro could not parse the body, so the whole function is timed (`scope = \"body\"`)"
        }
        Remark::HiddenLaunch => {
            "a launch is in a closure, an async block, a nested item or a macro's arguments, so the \
             whole function is timed (`scope = \"body\"`)"
        }
        Remark::OtherStream => {
            "a launch on another stream than the timed one is not measured: name its stream with \
             `stream = …`, or annotate a function of its own"
        }
    };
    let sites = sites.iter().copied().filter(|site| site.remarks.contains(&remark));
    Note::new(severity, sites.collect(), text)
}

/// Returns a note about the functions without a fed sample, except those that already hold their stream.
fn upper_bounds<'a>(snapshot: &Snapshot, sites: &[&'a Site]) -> Note<'a> {
    let is_bound = |site: &&Site| {
        site.series.iter().any(|series| series.upper_bound) && !site.has_gpu_key("sleep")
    };
    let bound: Vec<&Site> = sites.iter().copied().filter(is_bound).collect();
    let remedy = match host_ns(snapshot, &bound).map(units::time) {
        Some(host) => {
            let up_to = if bound.len() > 1 { "up to " } else { "" };
            format!(
                "the host takes {up_to}{host} per call; `GPU_TIME_RECORD=on` shows how long the GPU idled, and `sleep` \
                 times the kernels alone"
            )
        }
        None => "add `sleep`".to_owned(),
    };
    let text =
        "the GPU may have waited for the CPU in every sample, so the time is an upper bound (≤)";
    Note::new(Severity::Advice, bound, format!("{text}: {remedy}"))
}

/// Returns the longest host time per call of these functions, from their series and their paths with opened
/// calls. A path timed by events has only a mean, which one slow first call may dominate.
fn host_ns(snapshot: &Snapshot, sites: &[&Site]) -> Option<f64> {
    let of_series = |series: &Series| Some(series.host_ns?.median);
    let is_opened = |node: &Node| {
        let site = node.site.and_then(|site| snapshot.sites.get(site));
        let is_one = |site: &Site| sites.iter().any(|other| std::ptr::eq(*other, site));
        node.source == Source::Opened && site.is_some_and(is_one)
    };
    let of_path = |node: &Node| node.per_call.filter(|_| is_opened(node))?.host_ns;
    let series = sites.iter().flat_map(|site| &site.series).filter_map(of_series);
    series.chain(snapshot.tree.iter().filter_map(of_path)).reduce(f64::max)
}

/// Returns the functions for which `count` is not 0, and the sum of the counts.
fn counted<'a>(sites: &[&'a Site], count: impl Fn(&Series) -> u64) -> (Vec<&'a Site>, u64) {
    let of_site = |site: &Site| {
        // A function's own series and its launches describe the same calls.
        let heads = saturating_sum(site.heads().map(&count));
        if heads > 0 { heads } else { saturating_sum(site.series.iter().map(&count)) }
    };
    let found = sites.iter().map(|site| (*site, of_site(site))).filter(|(_, count)| *count > 0);
    let (sites, counts): (Vec<&Site>, Vec<u64>) = found.unzip();
    (sites, saturating_sum(counts))
}

/// Returns notes about options that had no effect, on functions timed only by the host clock, and those of
/// which every call was recorded, inside of another recorded one.
fn without_effect<'a>(sites: &[&'a Site]) -> impl Iterator<Item = Note<'a>> {
    let all = |site: &Site, is: fn(&Series) -> bool| {
        site.timed > 0 && site.heads().next().is_some() && site.series.iter().all(is)
    };
    let on_host = move |site: &Site| all(site, |series| series.clock == Clock::Host);
    let recorded = move |site: &Site| {
        all(site, |series| series.fed + series.starved == 0 && series.cache == CacheState::AsFound)
            && site.series.iter().any(|series| series.opened() > 0)
    };
    let note = |key: &str, is_without: &dyn Fn(&Site) -> bool, why: &str| {
        let asked = sites.iter().copied();
        let asked = asked.filter(|site| site.has_gpu_key(key) && is_without(site)).collect();
        Note::new(Severity::Advice, asked, format!("`{key}` had no effect: {why}"))
    };
    let of_host = "the host clock timed every call, because none had a stream on a GPU";
    let of_records = "every call was recorded inside of another one. With `GPU_TIME_RECORD=20ms/1s`, events time most calls";
    let notes = ["cold", "sleep", "graph"].map(|key| note(key, &on_host, of_host));
    // A recorded call needs no `sleep`.
    notes.into_iter().chain([note("cold", &recorded, of_records)])
}

/// Returns the calls and samples missing from the figures, and how the report was made.
fn facts<'a>(snapshot: &Snapshot, sites: &[&'a Site]) -> Vec<Note<'a>> {
    let of_program = |text| Note::new(Severity::Fact, Vec::new(), text);
    let (mut of_functions, mut of_rows) = (Vec::new(), Vec::new());
    for site in sites {
        let fact = |text| Note::new(Severity::Fact, vec![*site], text);
        of_functions.extend(untimed(site).map(fact));
        for series in &site.series {
            let of_row = |text| Note { qualifier: format!(" on {}", series.place()), ..fact(text) };
            of_rows.extend(gaps(series).map(of_row));
        }
    }
    let more = "more functions had calls that were not timed: see the JSON report";
    let mut notes = some(of_functions, FACTS, more);
    let more = "more rows have lost, starved or doubtful samples: see the JSON report";
    notes.extend(some(of_rows, FACTS, more));
    let of_macro = [Remark::UnparsedBody, Remark::HiddenLaunch];
    let of_macro = of_macro.map(|remark| remarked(sites, remark, Severity::Fact));
    notes.extend(of_macro.into_iter().filter(|note| !note.sites.is_empty()));
    notes.extend(snapshot.process.budget.map(budget).map(of_program));
    notes.extend(slower_launches(snapshot).map(of_program));
    notes.extend(launched_elsewhere(sites));
    let never = snapshot.sites.iter().filter(|site| site.calls == 0);
    let never = bounded(never.map(|site| site.name.clone()).collect(), FACTS, "more");
    if !never.is_empty() {
        notes.push(of_program(format!("never called: {}", never.join(", "))));
    }
    notes
}

/// Counts a function's calls that were not timed.
fn untimed(site: &Site) -> Option<String> {
    let skipped = site.skipped.saturating_sub(site.unsampled);
    let parts = [
        (site.warmup, "warm-up"),
        (skipped, Mark::Skipped.text()),
        (site.unsampled, "not sampled"),
    ];
    let rate = match site.sample_rate {
        rate if rate < 1.0 => format!("; the sampling rate is {} now", two_digit_percent(rate)),
        _ => String::new(),
    };
    listed(&parts).map(|parts| format!("of {} calls, {parts}{rate}", units::count(site.calls)))
}

/// Counts the samples missing from a series' statistics, and the samples that include more than the
/// timed work.
fn gaps(series: &Series) -> Option<String> {
    let counts = listed(&series.without_figure().map(|(count, word)| (count, word.text())));
    let lost = series.lost.sentence(series.measure);
    joined(&[counts, lost], "; ")
}

/// Compares the cost of timing with the budget.
fn budget(Budget { share, cost_share, added_share, added_error_share, .. }: Budget) -> String {
    let [cost, limit] = [cost_share, share].map(two_digit_percent);
    let added = added_share.zip(added_error_share).map(|(added, error)| {
        let digits = (1.0 - (100.0 * error).max(1e-6).log10().floor()).clamp(0.0, 4.0) as usize;
        let text = |share: f64| format!("{:.digits$}", 100.0 * share);
        let error_text = text(error);
        if error >= added.abs() {
            return format!("made no measurable difference to calls (±{error_text}%), and ");
        }
        // A small negative share is rounded to `-0`.
        let added = text(added);
        let is_zero = added.chars().all(|c| "-0.".contains(c));
        let added = if is_zero { added.trim_start_matches('-') } else { &added };
        format!("made calls {added} ±{error_text}% longer, and ")
    });
    let added = added.unwrap_or_default();
    format!("budget: timing {added}took {cost} of recent wall time; the limit is {limit}")
}

/// Returns a note about the functions in whose recorded calls nothing was enqueued, if others enqueue something.
fn launched_elsewhere<'a>(sites: &[&'a Site]) -> Option<Note<'a>> {
    let per_call = |series: &Series| series.kernel_times.as_ref()?.kernels_per_call;
    let launches = |site: &Site| site.series.iter().filter_map(per_call).reduce(f64::max);
    let (without, with): (Vec<_>, Vec<_>) = sites
        .iter()
        .copied()
        .filter(|site| launches(site).is_some())
        .partition(|site| launches(site) == Some(0.0));
    let text = "launches nothing on its own thread: what other threads launch meanwhile is in the rows of the functions \
                that they call";
    (!without.is_empty() && !with.is_empty()).then(|| Note::new(Severity::Fact, without, text))
}

/// Returns a note about the slower launches after CUPTI has recorded, if it has.
fn slower_launches(snapshot: &Snapshot) -> Option<String> {
    let share = surcharge_share(snapshot)?;
    let version = snapshot.process.cupti_version?;
    let since = if surcharge::records_until_exit(version) {
        "CUPTI before CUDA 13.0 records until the process ends once it has begun, so events read 0.2 to 0.3 µs more, and \
         each launch"
    } else {
        "since CUPTI first recorded, each launch of the process"
    };
    let us = surcharge::launch_ns(version) / 1_000.0;
    let share =
        if share < 0.001 { String::new() } else { format!(", here {}", two_digit_percent(share)) };
    Some(format!(
        "{since} takes longer, by {us} µs on an H200{share}: `GPU_TIME_RECORD=off` avoids that"
    ))
}

/// Returns the time that CUPTI adds to the launches of annotated functions after it has recorded,
/// as a share of the process's wall time. The program loses less if the host would otherwise wait
/// for the GPU. `None` if CUPTI has not recorded.
fn surcharge_share(snapshot: &Snapshot) -> Option<f64> {
    let process = &snapshot.process;
    // A loaded CUPTI has recorded, unless there is a reason why it may not.
    let version = process.cupti_version.filter(|_| process.kernels.is_none())?;
    let roots = snapshot.tree.iter().filter(|node| node.parent.is_none());
    let launches = roots.filter_map(|node| Some(node.calls * node.per_call?.kernels?));
    Some(surcharge::launch_ns(version) * launches.sum::<f64>() / (process.wall_ns as f64).max(1.0))
}

/// Returns a note if no annotated function was called, and what to check.
fn no_call(snapshot: &Snapshot) -> Option<String> {
    if snapshot.sites.iter().any(|site| site.calls > 0) {
        return None;
    }
    // Calls that are filtered out, or made while timing is off, would count as skipped.
    Some(match snapshot.sites.len() {
        // Either the program has no such function, or a separately measured part of it did not call
        // one.
        0 => "no call of a function with `#[gpu_timed]` was timed: check that what was measured calls one".to_owned(),
        1 => "the one function with `#[gpu_timed]` was not called: check that the program reaches it".to_owned(),
        all => {
            let all = units::count(all as u64);
            format!("none of the {all} functions with `#[gpu_timed]` was called: check that the program reaches one")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn budget_names_what_was_measured() {
        let spent = Budget { share: 0.01, cost_share: 0.008, ..Budget::default() };
        assert_eq!(
            budget(spent),
            "budget: timing took 0.80% of recent wall time; the limit is 1.0%"
        );
        let measured =
            Budget { added_share: Some(0.0041), added_error_share: Some(0.002), ..spent };
        let expected = "budget: timing made calls 0.41 ±0.20% longer, and took 0.80% of recent wall time; the limit is 1.0%";
        assert_eq!(budget(measured), expected);
        let added = |added, error| {
            let (added_share, added_error_share) = (Some(added), Some(error));
            let text = budget(Budget { added_share, added_error_share, ..spent });
            let rest = text.strip_prefix("budget: timing made ").unwrap();
            rest.split_once(", and took 0.80% of ").unwrap().0.to_owned()
        };
        assert_eq!(added(-0.001, 0.16), "no measurable difference to calls (±16%)");
        assert_eq!(added(0.16, 0.16), "no measurable difference to calls (±16%)");
        assert_eq!(added(-0.02, 0.01), "calls -2.0 ±1.0% longer");
        assert_eq!(added(-4e-7, 1e-7), "calls 0.0000 ±0.0000% longer");
    }
    use crate::tree::{PerCall, fixtures::node};
    use crate::{Detail, Device, Node, Terminal, fixtures};

    #[test]
    fn slower_launches_are_noted_once_cupti_has_recorded() {
        let mut snapshot = fixtures::kernels();
        snapshot.tree.clear();
        let note = slower_launches(&snapshot).unwrap();
        assert!(note.contains("0.4 µs on an H200: `GPU_TIME_RECORD=off`"), "{note}");
        snapshot.process.cupti_version = Some(28);
        let note = slower_launches(&snapshot).unwrap();
        assert!(note.starts_with("CUPTI before CUDA 13.0 records until"), "{note}");
        assert!(note.contains("1.6 µs on an H200: "), "{note}");
        snapshot.process.kernels = Some("another tool holds CUPTI".to_owned());
        assert_eq!(slower_launches(&snapshot), None);
        (snapshot.process.kernels, snapshot.process.cupti_version) = (None, None);
        assert_eq!(slower_launches(&snapshot), None);
    }

    #[test]
    fn slower_launches_are_compared_with_the_run() {
        let mut snapshot = fixtures::kernels();
        // The program launches a hundred kernels per millisecond.
        let mut root = node("decode", None, 1e9, 1e9);
        root.calls = 1_000.0;
        root.per_call = root.per_call.map(|mean| PerCall { kernels: Some(100.0), ..mean });
        let inside = Node { parent: Some(0), ..root.clone() };
        (snapshot.tree, snapshot.process.wall_ns) = (vec![root, inside], 1_000_000_000);
        let note = slower_launches(&snapshot).unwrap();
        assert!(note.contains("H200, here 4.0%: "), "{note}");
    }

    #[test]
    fn calibration_is_advised_only_for_rows_by_events() {
        let is_advised = |mut snapshot: Snapshot| {
            let event_bias_source = Some("floor".to_owned());
            snapshot.devices = vec![Device { event_bias_source, ..fixtures::gpu() }];
            let notes = snapshot.to_table(Terminal::default(), Detail::All);
            notes.contains("\nkernels read about 1 µs longer")
        };
        assert!(is_advised(fixtures::everything()));
        assert!(!is_advised(fixtures::on_host()));
    }
}
