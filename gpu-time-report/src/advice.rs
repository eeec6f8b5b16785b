//! Notes that tell the user what to do to get better figures.

use std::collections::{HashMap, HashSet};

use crate::analysis::Analysis;
use crate::note_list::NoteList;
use crate::notes;
use crate::series::saturating_sum;
use crate::units::bounded;
use crate::{Lost, Measure, Node, Remark, Series, Site, Snapshot, Source, losses, opened, units};

/// The number of functions that a note names before it counts the others.
pub const NAMED: usize = 1;

/// Returns the notes, those about the function to look at first at the top, then the most important.
/// Each ends with what to do.
pub fn of(analysis: &Analysis) -> Vec<String> {
    let snapshot = analysis.snapshot;
    let mut advice = NoteList::new(analysis);
    advice.extend(notes::no_call(snapshot));
    advice.extend(notes::no_kernels(snapshot));
    let remarked = |site: &&Site| site.remarks.contains(&Remark::OtherStream);
    let remarked: Vec<&Site> = advice.sites().filter(remarked).collect();
    let remark = |names| format!("{names}: {}", Remark::OtherStream.sentence());
    add(&mut advice, &remarked, remark);
    upper_bounds(snapshot, &mut advice);
    let of_samples = |names, count, remedy| {
        let (plural, count) = (if count == 1 { "" } else { "s" }, units::count(count));
        format!("{names} ({count} sample{plural}): {remedy}")
    };
    let work = "nothing ran between the events: check that the work is on the timed stream";
    let (sites, count) = counted(&advice, |series| series.at_floor);
    add(&mut advice, &sites, |names| of_samples(names, count, work));
    for reason in Lost::ALL {
        let (sites, count) = counted(&advice, |series| series.lost.of(reason));
        let were_lost = losses::were_lost(count, Measure::Sum);
        add(&mut advice, &sites, |names| {
            format!("{names}: {were_lost} because {}", reason.meaning())
        });
    }
    let tracking =
        "cudarc's event tracking is in the times: call `disable_event_tracking` of the context";
    let (sites, count) = counted(&advice, |series| series.tracked);
    add(&mut advice, &sites, |names| of_samples(names, count, tracking));
    advice.extend(notes::without_effect(snapshot));
    if snapshot.has_bias_from(&["floor"]) {
        advice.extend([
            "kernels read about 1 µs longer than in Nsight Systems, because the bias is that of an empty pair: \
             run `gpu-time calibrate`"
                .to_owned(),
        ]);
    }
    advice.into_lines()
}

/// Adds a note about functions, if there are any.
fn add(advice: &mut NoteList, sites: &[&Site], note: impl FnOnce(String) -> String) {
    if let (Some(site), Some(names)) = (sites.first(), names(sites.iter().copied(), NAMED)) {
        advice.add(site, note(names));
    }
}

/// A warning, and what it is about.
struct Shared<'a> {
    warning: String,
    sites: Vec<&'a Site>,
    /// The place, if the warning is about a single series.
    place: Option<String>,
}

/// Returns the warnings, one line each. Functions with the same warning share a line, which names this many of them.
pub fn warnings(analysis: &Analysis, named: usize) -> Vec<String> {
    let lines = shared(analysis).into_iter().filter_map(|Shared { warning, sites, place }| {
        let place = place.map(|place| format!(" on {place}")).unwrap_or_default();
        let names = names(sites.into_iter(), named)?;
        Some(format!("{names}{place}: {warning}"))
    });
    notes::of_devices(analysis).chain(lines).collect()
}

/// Returns the different warnings about functions.
fn shared<'a>(analysis: &Analysis<'a>) -> Vec<Shared<'a>> {
    let mut shared: Vec<Shared> = Vec::new();
    let mut index: HashMap<String, usize> = HashMap::new();
    for site in NoteList::new(analysis).sites() {
        let of_kernels = opened::warnings(analysis.snapshot, site).into_iter();
        let of_kernels = of_kernels.map(|(place, warning)| (Some(place), warning));
        let of_site = notes::of_site(site).map(|warning| (None, warning));
        for (place, warning) in of_site.chain(of_kernels) {
            if let Some(&at) = index.get(&warning) {
                let Shared { sites, place, .. } = &mut shared[at];
                *place = None;
                if sites.last().is_none_or(|last| last.name != site.name) {
                    sites.push(site);
                }
            } else {
                index.insert(warning.clone(), shared.len());
                shared.push(Shared { warning, sites: vec![site], place });
            }
        }
    }
    shared
}

/// Adds a note about the functions without a fed sample, except those that already hold their
/// stream.
fn upper_bounds(snapshot: &Snapshot, advice: &mut NoteList) {
    let is_bound = |site: &&Site| {
        site.series.iter().any(|series| series.upper_bound) && !site.has_gpu_key("sleep")
    };
    let bound: Vec<&Site> = advice.sites().filter(is_bound).collect();
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
    add(advice, &bound, |names| {
        format!(
            "{names}: the GPU may have waited for the CPU in every sample, so the time is an upper bound (≤): {remedy}"
        )
    });
}

/// Returns the longest host time per call of these functions, from their series and their paths with opened
/// calls. A path timed by events has only a mean, which one slow first call may dominate.
fn host_ns(snapshot: &Snapshot, sites: &[&Site]) -> Option<f64> {
    let names: HashSet<&str> = sites.iter().map(|site| site.name.as_str()).collect();
    let of_series = |series: &Series| Some(series.host_ns?.median);
    let is_opened =
        |node: &Node| node.source == Source::Opened && names.contains(node.name.as_str());
    let of_path = |node: &Node| node.per_call.filter(|_| is_opened(node))?.host_ns;
    let series = sites.iter().flat_map(|site| &site.series).filter_map(of_series);
    series.chain(snapshot.tree.iter().filter_map(of_path)).reduce(f64::max)
}

/// Returns the functions for which `count` is not 0, and the sum of the counts.
fn counted<'a>(advice: &NoteList<'a>, count: impl Fn(&Series) -> u64) -> (Vec<&'a Site>, u64) {
    let of_site = |site: &Site| {
        // A function's own series and its launches describe the same calls.
        let heads = site.series.iter().filter(|series| series.launch.is_none()).map(&count);
        let heads = saturating_sum(heads);
        if heads > 0 { heads } else { saturating_sum(site.series.iter().map(&count)) }
    };
    let found = advice.sites().map(|site| (site, of_site(site))).filter(|(_, count)| *count > 0);
    let (sites, counts): (Vec<&Site>, Vec<u64>) = found.unzip();
    (sites, saturating_sum(counts))
}

/// Lists the names of the functions. Returns `None` if there are none.
fn names<'a>(sites: impl Iterator<Item = &'a Site>, most: usize) -> Option<String> {
    let names: Vec<String> = sites.map(|site| site.name.clone()).collect();
    (!names.is_empty()).then(|| bounded(names, most, "more functions").join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Device, fixtures};

    #[test]
    fn calibration_is_advised_only_for_rows_by_events() {
        let is_advised = |mut snapshot: Snapshot| {
            let event_bias_source = Some("floor".to_owned());
            snapshot.devices = vec![Device { event_bias_source, ..fixtures::gpu() }];
            snapshot.analyzed(of).iter().any(|note| note.contains("gpu-time calibrate"))
        };
        assert!(is_advised(fixtures::everything()));
        assert!(!is_advised(fixtures::on_host()));
    }
}
