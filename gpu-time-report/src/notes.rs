//! What a reader of the table must know besides its figures, a line each.

use crate::marks::{ESTIMATE, GB_PER_S, HOST, LOWER_BOUND, RAW, SYNC, UPPER_BOUND};
use crate::units::percent;
use crate::{Budget, CacheState, Clock, Lost, Remark, Series, Site, Snapshot};

/// How many lines of a kind, and names in a line, are shown.
const MOST: usize = 10;

/// The notes: what became of calls without a sample, and what marks mean.
pub fn facts(snapshot: &Snapshot) -> Vec<String> {
    let sites = &snapshot.sites;
    let mut notes = bounded(
        sites.iter().filter_map(untimed).collect(),
        MOST,
        "more functions had calls that were not timed: see the JSON report",
    );
    let gaps = sites.iter().flat_map(|site| site.series.iter().filter_map(|s| gaps(site, s)));
    let more =
        "more rows have samples that are lost, starved or otherwise doubtful: see the JSON report";
    notes.extend(bounded(gaps.collect(), MOST, more));
    for remark in Remark::ALL {
        let remarked = sites.iter().filter(|site| site.remarks.contains(&remark));
        let remarked = remarked.map(|site| format!("{}: {}", site.name, remark.sentence()));
        notes.extend(bounded(remarked.collect(), MOST, "more functions have the same remark"));
    }
    notes.extend(without_effect(snapshot));
    notes.extend(snapshot.process.budget.map(budget));
    let called = sites.iter().any(|site| site.calls > 0);
    match sites.len() {
        0 => {}
        _ if called => {}
        1 => notes.push("the one function with `#[gpu_timed]` was not called".to_owned()),
        all => notes.push(format!("none of the {all} functions with `#[gpu_timed]` was called")),
    }
    let never = sites.iter().filter(|site| site.calls == 0).map(|site| site.name.clone());
    let never = bounded(never.collect(), MOST, "more");
    if !never.is_empty() {
        notes.push(format!("never called: {}", never.join(", ")));
    }
    if sites.is_empty() {
        // There are none in the program, or none was called in a part of it.
        notes.push("no call of a function with `#[gpu_timed]` was timed".to_owned());
    }
    notes.extend(legend(snapshot));
    notes
}

/// The first ones, and how many others there are. One more line is no longer than to say so.
pub fn bounded(mut lines: Vec<String>, most: usize, others: &str) -> Vec<String> {
    if lines.len() > most + 1 {
        let left = lines.split_off(most).len();
        lines.push(format!("{left} {others}"));
    }
    lines
}

/// Notes on options that need a GPU, for functions that only the host clock timed.
fn without_effect(snapshot: &Snapshot) -> Vec<String> {
    let on_host = |site: &&Site| {
        let mut series = site.series.iter();
        site.timed > 0 && series.len() > 0 && series.all(|series| series.clock == Clock::Host)
    };
    let sites: Vec<&Site> = snapshot.sites.iter().filter(on_host).collect();
    let note = |key| {
        let asked = sites.iter().filter(|site| site.has_option(key));
        let names = bounded(asked.map(|site| site.name.clone()).collect(), MOST, "more functions");
        let names = Some(names.join(", ")).filter(|names| !names.is_empty())?;
        Some(format!(
            "`{key}` had no effect on {names}: the host clock timed every call, because none had a stream \
             on a GPU"
        ))
    };
    ["cold", "sleep", "graph"].into_iter().filter_map(note).collect()
}

/// What timing cost of what it may.
fn budget(Budget { share, cost_share, .. }: Budget) -> String {
    let [cost, limit] = [cost_share, share].map(percent);
    format!("budget: timing took {cost} of the wall time lately, of {limit}")
}

/// The calls of a function that were not to be timed.
fn untimed(site: &Site) -> Option<String> {
    let skipped = site.skipped.saturating_sub(site.unsampled);
    let parts =
        [(site.warmup, "to warm up"), (skipped, "skipped"), (site.unsampled, "not sampled")];
    let rate = site.sample_rate;
    let rate = if rate < 1.0 { format!("; {} is timed now", percent(rate)) } else { String::new() };
    listed(&parts).map(|parts| format!("{}: of {} calls {parts}{rate}", site.name, site.calls))
}

/// The brackets of a series that are not in its statistics, and those that held more than the work.
fn gaps(site: &Site, series: &Series) -> Option<String> {
    let lost = series.lost.iter().map(|(reason, count)| (count, reason.name()));
    let lost = listed(&lost.collect::<Vec<_>>()).map(|lost| format!("lost: {lost}"));
    // Where none was fed, the starved ones are what is shown.
    let starved = if series.upper_bound { 0 } else { series.starved };
    let counts = listed(&[
        (series.in_flight, "in flight"),
        (starved, "starved"),
        (series.at_floor, "at the floor"),
        (series.nested, "nested"),
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
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What the words and marks mean that occur in this report.
fn legend(snapshot: &Snapshot) -> Vec<String> {
    let any = |is: fn(&Series) -> bool| snapshot.sites.iter().flat_map(|site| &site.series).any(is);
    let mut lines = Vec::new();
    let mut explain = |word: &str, meaning: &str| lines.push(format!("  {word}: {meaning}"));
    if any(|s| s.upper_bound) {
        explain(
            UPPER_BOUND,
            "no sample was fed, so the GPU may have waited for the CPU inside: an upper bound",
        );
    }
    if any(|s| s.net_ns.is_some() && s.clock == Clock::Events) {
        explain("times", "on a GPU, raw event time less the device's bias, once for each bracket");
    }
    let any_bias = |sources: &[&str]| {
        snapshot.devices.iter().any(|d| d.event_bias_source().is_some_and(|s| sources.contains(&s)))
    };
    if any_bias(&["cupti", "table"]) {
        explain(
            "bias",
            "a held empty kernel less what CUPTI says of one, so that fed kernels read as in CUPTI and Nsight Systems",
        );
    }
    if any_bias(&["floor"]) {
        explain(
            "bias (floor)",
            "an empty pair: a kernel's time is about 1 µs longer than in Nsight Systems; \
             `GPU_TIME_BIAS=cupti:TIME`, what CUPTI says of an empty kernel, removes that",
        );
    }
    if any(|s| s.graph) {
        explain("in graphs", "replays of a node, of which those are missing that nobody looked at");
    }
    if any(Series::is_raw_by_launches) {
        explain(
            RAW,
            "calls made different numbers of launches: the bias is taken off the total only",
        );
    }
    if any(|s| s.clock == Clock::Host) {
        explain(HOST, "wall time on the CPU, by the host clock: not GPU time; shares apart");
    }
    if any(|s| s.clock == Clock::Sync) {
        explain(
            SYNC,
            "wall time from an idle stream to an idle one, launching and waiting included; shares apart",
        );
    }
    if any(|s| s.bytes.is_some() || s.flops.is_some()) {
        explain(
            "rates",
            "a call's work by the median, or where work varies all work by all time, of the samples \
             shown",
        );
    }
    if any(|s| s.bytes.is_some_and(|bytes| bytes.peak_share.is_some())) {
        explain(GB_PER_S, "in brackets the share of the memory's peak, which caches can exceed");
    }
    if any(|s| s.upper_bound && s.has_rate()) {
        explain(LOWER_BOUND, "by times that are upper bounds: a lower bound");
    }
    if any(|s| s.total().is_some()) {
        explain("share", "of all time measured on that device; nested functions count twice");
    }
    if snapshot.sites.iter().any(Site::is_sampled) {
        explain(
            ESTIMATE,
            "of the calls that were sampled: an estimate of what all took, ± its standard error",
        );
    }
    if snapshot.sites.iter().any(|site| site.skipped > site.unsampled) {
        explain("skipped", "switched off, filtered out, or could not be timed");
    }
    if any(|s| s.in_flight > 0) {
        explain("in flight", "had not returned or finished when this was written");
    }
    if any(|s| s.starved > 0 && !s.upper_bound) {
        explain("starved", "the GPU may have waited for the CPU inside; in the total only");
    }
    if any(|s| s.at_floor > 0) {
        explain("at the floor", "nothing ran inside; left out");
    }
    if any(|s| s.cache == CacheState::Partial) {
        explain("partial", "the L2 was flushed, but some of it may have stayed");
    }
    if any(|s| s.nested > 0) {
        explain("nested", "another timed bracket lay inside, which adds about 3 µs");
    }
    if any(|s| s.tracked > 0) {
        explain("tracked", "cudarc's event tracking put waits and records of its own inside");
    }
    for reason in Lost::ALL {
        let count = |series: &Series| series.lost.of(reason);
        if snapshot.sites.iter().flat_map(|site| &site.series).any(|series| count(series) > 0) {
            explain(reason.name(), reason.meaning());
        }
    }
    lines
}

/// The holds of a function that did not do what they are for, unless hardly any did not.
fn expired(site: &Site) -> Option<String> {
    let Site { holds_expired: expired, holds_released: released, .. } = site;
    let all = released.saturating_add(*expired);
    (*expired > 0 && expired.saturating_mul(100) >= all).then(|| {
        format!(
            "{expired} of {all} holds ended by their deadline: what the function does while its stream is held \
             waits for it, or takes much longer than usual"
        )
    })
}

/// What makes the figures doubtful.
pub fn warnings(snapshot: &Snapshot) -> impl Iterator<Item = String> + '_ {
    let process = snapshot.process.warnings.iter().cloned();
    let devices = snapshot.devices.iter().flat_map(|device| {
        device.warnings.iter().map(|warning| format!("{}: {warning}", device.id))
    });
    let sites = snapshot.sites.iter().flat_map(|site| {
        site.warnings
            .iter()
            .cloned()
            .chain(expired(site))
            .map(|warning| format!("{}: {warning}", site.name))
    });
    process.chain(devices).chain(sites)
}
