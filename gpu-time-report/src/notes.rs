//! Notes and warnings shown below the table and the page, one line each.

use crate::analysis::Analysis;
use crate::note_list::NoteList;
use crate::units::{self, bounded, two_digit_percent};
use crate::{Budget, CacheState, Clock, Coverage, Remark, Series, Site, Snapshot, surcharge};

/// The maximum number of lines of one kind, and of names in one line.
const MAX_LINES: usize = 10;

/// Returns the notes: calls and samples missing from the figures, those about the function to look
/// at first at the top. Leaves out those that are advice.
pub fn facts(analysis: &Analysis, advice: &[String]) -> Vec<String> {
    let snapshot = analysis.snapshot;
    let mut notes = NoteList::new(analysis);
    let untimed = notes.sites().filter_map(|site| Some((site, untimed(site)?)));
    let more = "more functions had calls that were not timed: see the JSON report";
    add_bounded(&mut notes, untimed.collect(), more);
    let of_site = |site| move |series| Some((site, gaps(site, series)?));
    let gaps = notes.sites().flat_map(|site| site.series.iter().filter_map(of_site(site)));
    let more = "more rows have lost, starved or doubtful samples: see the JSON report";
    add_bounded(&mut notes, gaps.collect(), more);
    for remark in Remark::ALL {
        let remarked = notes.sites().filter(|site| site.remarks.contains(&remark));
        let remarked = remarked.map(|site| (site, format!("{}: {}", site.name, remark.sentence())));
        add_bounded(&mut notes, remarked.collect(), "more functions have the same remark");
    }
    notes.extend(without_effect(snapshot));
    notes.extend(snapshot.process.budget.map(budget));
    notes.extend(no_kernels(snapshot));
    notes.extend(slower_launches(snapshot));
    notes.extend(no_call(snapshot));
    let never = snapshot.sites.iter().filter(|site| site.calls == 0);
    let never = never.map(|site| site.name.clone());
    let never = bounded(never.collect(), MAX_LINES, "more");
    if !never.is_empty() {
        notes.extend([format!("never called: {}", never.join(", "))]);
    }
    let mut lines = notes.into_lines();
    lines.retain(|line| !advice.contains(line));
    lines
}

/// Adds lines of one kind, or the first of them and their number.
fn add_bounded(notes: &mut NoteList, lines: Vec<(&Site, String)>, others: &str) {
    let (sites, lines): (Vec<&Site>, Vec<String>) = lines.into_iter().unzip();
    let mut sites = sites.into_iter();
    for line in bounded(lines, MAX_LINES, others) {
        // The last line may count the others, of which the next function is the first.
        if let Some(site) = sites.next() {
            notes.add(site, line);
        }
    }
}

/// Returns the reason why nothing was recorded, if something was to be.
pub fn no_kernels(snapshot: &Snapshot) -> Option<String> {
    let why = snapshot.process.kernels.as_ref()?;
    Some(format!("no kernels were recorded: {why}"))
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
pub fn no_call(snapshot: &Snapshot) -> Option<String> {
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

/// Returns notes about options that had no effect: on functions timed only by the host clock, and on those of which every
/// call was recorded, inside of another recorded one.
pub fn without_effect(snapshot: &Snapshot) -> Vec<String> {
    let heads = |site: &Site| site.series.iter().filter(|series| series.launch.is_none()).count();
    let all = |site: &Site, is: fn(&Series) -> bool| {
        site.timed > 0 && heads(site) > 0 && site.series.iter().all(is)
    };
    let on_host = |site: &Site| all(site, |series| series.clock == Clock::Host);
    let recorded = |site: &Site| {
        all(site, |series| series.fed + series.starved == 0 && series.cache == CacheState::AsFound)
            && site.series.iter().any(|series| series.opened() > 0)
    };
    let note = |key: &str, is_without: &dyn Fn(&Site) -> bool, why: &str| {
        let asked = snapshot.sites.iter().filter(|site| site.has_gpu_key(key) && is_without(site));
        let names =
            bounded(asked.map(|site| site.name.clone()).collect(), MAX_LINES, "more functions");
        let names = Some(names.join(", ")).filter(|names| !names.is_empty())?;
        Some(format!("`{key}` had no effect on {names}: {why}"))
    };
    let of_host = "the host clock timed every call, because none had a stream on a GPU";
    let of_records = "every call was recorded inside of another one. With `GPU_TIME_RECORD=20ms/1s`, events time most calls";
    let notes = ["cold", "sleep", "graph"].map(|key| note(key, &on_host, of_host));
    // A recorded call needs no `sleep`.
    notes.into_iter().chain([note("cold", &recorded, of_records)]).flatten().collect()
}

/// Compares the cost of timing with the budget.
fn budget(Budget { share, cost_share, .. }: Budget) -> String {
    let [cost, limit] = [cost_share, share].map(two_digit_percent);
    format!("budget: timing took {cost} of recent wall time; the limit is {limit}")
}

/// Counts a function's calls that were not timed.
fn untimed(site: &Site) -> Option<String> {
    let skipped = site.skipped.saturating_sub(site.unsampled);
    let parts = [(site.warmup, "warm-up"), (skipped, "skipped"), (site.unsampled, "not sampled")];
    let rate = site.sample_rate;
    let rate = if rate < 1.0 {
        format!("; the sampling rate is {} now", two_digit_percent(rate))
    } else {
        String::new()
    };
    let (name, calls) = (&site.name, units::count(site.calls));
    listed(&parts).map(|parts| format!("{name}: of {calls} calls, {parts}{rate}"))
}

/// Counts the samples missing from a series' statistics, and the samples that include more than the
/// timed work.
fn gaps(site: &Site, series: &Series) -> Option<String> {
    let lost = series.lost.sentence(series.measure);
    // If no sample was fed, the figures come from the starved ones.
    let starved = if series.upper_bound { 0 } else { series.starved };
    let counts = listed(&[
        (series.in_flight, "in flight"),
        (starved, "starved"),
        (series.at_floor, "at the floor"),
        (series.unknown_nested(), "nested"),
        (series.tracked, "tracked"),
    ]);
    let parts: Vec<String> = [counts, lost].into_iter().flatten().collect();
    (!parts.is_empty())
        .then(|| format!("{} on {}: {}", site.name, series.place(), parts.join("; ")))
}

fn listed(parts: &[(u64, &str)]) -> Option<String> {
    let parts: Vec<String> = parts
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", units::count(*count)))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
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

/// Returns the warnings about the process and its devices.
pub fn of_devices(analysis: &Analysis) -> impl Iterator<Item = String> {
    let Snapshot { process, devices, .. } = analysis.snapshot;
    process.warnings.iter().cloned().chain(devices.iter().flat_map(move |device| {
        let of_windows = device.coverage.as_ref().and_then(Coverage::warning);
        let contradiction = analysis.gpu(device).and_then(|gpu| gpu.contradiction(process));
        let of_windows = of_windows.into_iter().chain(contradiction);
        let all = device.warnings.iter().cloned().chain(of_windows);
        all.map(|warning| format!("{}: {warning}", device.id))
    }))
}

/// Returns the warnings about a function, without its name.
pub fn of_site(site: &Site) -> impl Iterator<Item = String> + '_ {
    site.warnings.iter().cloned().chain(expired(site))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{PerCall, fixtures::node};
    use crate::{Node, fixtures};

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
}
