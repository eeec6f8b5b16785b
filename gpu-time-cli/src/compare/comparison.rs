//! The series of two reports side by side.

use gpu_time_report::judge::{Change, Verdict, correct};
use gpu_time_report::units::{self, bounded};
use gpu_time_report::{Names, Series, Site, Snapshot};
use serde::Serialize;

use super::change::Pair;
use super::devices;
use super::options::Judging;
use super::thresholds::Share;
use crate::series_id::{is_same_series, match_sites};

/// The maximum number of kernels in a table or a note.
const MOST: usize = 10;

/// The result of comparing two reports.
#[derive(Serialize)]
pub struct Comparison<'a> {
    /// Sorted by verdict.
    #[serde(rename = "series")]
    pub rows: Vec<Row<'a>>,
    /// The series that only the base has.
    #[serde(rename = "only_in_base")]
    pub missing: Vec<String>,
    /// The series that only the new report has.
    #[serde(rename = "only_in_new")]
    pub added: Vec<String>,
    /// Reasons why the comparison is less certain, differences between the compared programs and
    /// devices, and the numbers of runs.
    pub notes: Vec<String>,
    /// The kernels of the functions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernels: Option<Box<Comparison<'a>>>,
}

/// A series in both reports, with its change.
#[derive(Serialize)]
pub struct Row<'a> {
    pub name: String,
    #[serde(flatten)]
    pub change: Change,
    #[serde(skip)]
    pub pair: Pair<'a>,
}

impl Row<'_> {
    /// Returns `true` if the variation between runs is assumed, because a side has one run only.
    fn is_by_assumption(&self) -> bool {
        self.change.interval.is_some() && self.change.runs.contains(&1)
    }
}

impl<'a> Comparison<'a> {
    /// Matches the series of two reports and judges each change with `change`, which takes the name
    /// of the series and its threshold. Withdraws verdicts that may be chance.
    pub fn of(
        base: &'a Snapshot,
        new: &'a Snapshot,
        judging: &Judging,
        change: impl Fn(&str, &Pair, Share) -> Change,
    ) -> Comparison<'a> {
        let Matches { pairs, missing, added } = matches(base, new);
        let [base_names, new_names] = [base, new].map(names);
        let named = |names: &Names, all: &[(&Site, &Series)]| {
            all.iter().map(|(site, series)| name(names, site, series)).collect()
        };
        let rows = pairs.into_iter().map(|pair| {
            let name = name(&base_names, pair.site, pair.series[0]);
            let change = change(&name, &pair, judging.threshold(&pair.site.name));
            Row { name, change, pair }
        });
        let mut rows: Vec<Row> = rows.collect();
        let mut notes = devices::provenance(base, new);
        notes.extend(devices::differences(base, new));
        correct(rows.iter_mut().map(|row| &mut row.change));
        rows.sort_by_key(|row| row.change.verdict);
        let (missing, added) = (named(&base_names, &missing), named(&new_names, &added));
        Comparison { rows, missing, added, notes, kernels: None }
    }

    /// Adds a note with the number of runs, and with the assumption that a single run requires, unless it is 0.
    pub fn note_runs(&mut self, Share(between): Share) {
        let most = |side: usize| self.rows.iter().map(|row| row.change.runs[side]).max();
        let count =
            |runs: usize| if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
        let [base, new] = [0, 1].map(|side| count(most(side).unwrap_or_default()));
        let runs = format!("{base} of the base, {new} of the new program");
        let by_assumption = self.rows.iter().any(Row::is_by_assumption);
        if !by_assumption {
            self.notes.push(runs);
        } else if between > 0.0 {
            self.notes.push(format!(
                "{runs}: how much runs differ cannot be known from one, and a standard deviation of {}% is \
                 assumed (--between-runs); merge several runs of each, or use `gpu-time ab`",
                100.0 * between
            ));
        }
    }

    /// Returns the numbers of series by verdict: slower, faster, the same, unknown.
    pub fn counts(&self) -> [usize; 4] {
        let verdicts: Vec<Verdict> = self.rows.iter().map(|row| row.change.verdict).collect();
        counts(&verdicts)
    }

    /// Returns the rows with the verdicts slower and faster, at most ten.
    pub fn changed(&self) -> &[Row<'a>] {
        let changed = self.rows.partition_point(|row| row.change.verdict < Verdict::Unknown);
        self.rows.get(..changed.min(MOST)).unwrap_or_default()
    }

    /// Returns `true` if any series is slower or faster.
    pub fn has_changes(&self) -> bool {
        let [slower, faster, ..] = self.counts();
        slower + faster > 0
    }

    /// Returns the series that only one report has, with a title.
    pub fn unmatched(&self) -> [(&'static str, &[String]); 2] {
        [("only in the base", &self.missing), ("only in the new report", &self.added)]
    }

    /// Returns all notes, and lines about kernels: how many were looked at, and those that only one program has.
    pub fn all_notes(&self) -> Vec<String> {
        let mut notes = self.notes.clone();
        for kernels in self.kernels.iter().filter(|kernels| !kernels.is_empty()) {
            notes.push(format!("{} kernels: {}", kernels.rows.len(), kernels.summary()));
            for (title, names) in kernels.unmatched() {
                let named = bounded(names.to_vec(), MOST, "more").join("; ");
                notes.extend((!names.is_empty()).then(|| format!("kernels {title}: {named}")));
            }
        }
        notes
    }

    /// Returns `true` if neither program has any series.
    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.missing.is_empty() && self.added.is_empty()
    }

    /// Returns the numbers of series by verdict as a sentence.
    pub fn summary(&self) -> String {
        let [slower, faster, same, unknown] = self.counts();
        let mut text =
            format!("{slower} slower, {faster} faster, {same} the same, {unknown} unknown");
        let at_most = self.rows.iter().filter_map(|row| row.change.at_most);
        if let Some(largest) = at_most.clone().reduce(f64::max) {
            let those = match at_most.count() {
                all if all == unknown => String::new(),
                some => format!("{some} with "),
            };
            text += &format!(" ({those}no change larger than {})", units::percent(largest));
        }
        if let missing @ 1.. = self.missing.len() {
            text += &format!(", {missing} only in the base");
        }
        text
    }
}

/// Returns the numbers of verdicts: slower, faster, the same, unknown.
pub fn counts(verdicts: &[Verdict]) -> [usize; 4] {
    [Verdict::Slower, Verdict::Faster, Verdict::Same, Verdict::Unknown]
        .map(|verdict| verdicts.iter().filter(|other| **other == verdict).count())
}

/// The series of two reports.
#[derive(Default)]
pub struct Matches<'a> {
    pub pairs: Vec<Pair<'a>>,
    /// The series that only the base has.
    missing: Vec<(&'a Site, &'a Series)>,
    /// The series that only the new report has.
    added: Vec<(&'a Site, &'a Series)>,
}

/// Matches the series of two reports.
pub fn matches<'a>(base: &'a Snapshot, new: &'a Snapshot) -> Matches<'a> {
    let sites = match_sites(&base.sites, &new.sites);
    let mut matches = Matches::default();
    let mut left: Vec<Vec<&Series>> =
        new.sites.iter().map(|site| site.series.iter().collect()).collect();
    for (i, site) in base.sites.iter().enumerate() {
        for series in &site.series {
            let same = sites.get(&i).and_then(|&new_site| {
                let at = left[new_site].iter().position(|other| is_same(other, series))?;
                Some(left[new_site].remove(at))
            });
            let Some(other) = same else {
                matches.missing.push((site, series));
                continue;
            };
            let devices = [base.device(series), new.device(other)];
            let [old_source, new_source] =
                devices.map(|device| device.and_then(|device| device.event_bias_source.as_deref()));
            let steps_ns = devices.into_iter().flatten().filter_map(|device| device.event_step_ns);
            matches.pairs.push(Pair {
                site,
                series: [series, other],
                same_bias_source: old_source == new_source,
                clock_step_ns: steps_ns.fold(0.0, f64::max),
            });
        }
    }
    for (site, left) in new.sites.iter().zip(left) {
        matches.added.extend(left.into_iter().map(|series| (site, series)));
    }
    matches
}

/// Returns `true` if two series of matching functions match.
fn is_same(one: &Series, other: &Series) -> bool {
    one.device == other.device && is_same_series(one, other)
}

/// Returns the names of the functions of a report.
pub fn names(snapshot: &Snapshot) -> Names<'_> {
    snapshot.sites.iter().map(|site| site.name.as_str()).collect()
}

/// Returns the label of a series.
pub fn name(names: &Names, site: &Site, series: &Series) -> String {
    let label = names.label(&site.name, &site.file, site.line);
    format!("{label} on {}", series.place())
}
