//! The series of two reports side by side.

use std::collections::HashSet;

use gpu_time_report::{Names, Series, Site, Snapshot};

use super::change::{Change, Conditions, Verdict};
use super::thresholds::{Share, Thresholds};
use super::{devices, evidence, kernels};
use crate::series_id::{SeriesId, match_sites};

/// The result of comparing two reports.
pub struct Comparison<'a> {
    /// Sorted by verdict.
    pub rows: Vec<Row<'a>>,
    /// The series that only the base has.
    pub missing: Vec<String>,
    /// The series that only the new report has.
    pub added: Vec<String>,
    /// Reasons why the comparison is less certain, differences between the compared programs and
    /// devices, and the numbers of runs.
    pub notes: Vec<String>,
}

/// A series in both reports.
pub struct Row<'a> {
    pub name: String,
    pub change: Change,
    pub series: [&'a Series; 2],
}

impl<'a> Comparison<'a> {
    /// Matches the series of two reports and judges each change with `change`, which takes the name
    /// of the series. Withdraws verdicts that may be chance, because many series are compared at
    /// once.
    pub fn of(
        base: &'a Snapshot,
        new: &'a Snapshot,
        thresholds: &Thresholds,
        between_runs: Share,
        change: impl Fn(&str, [&Series; 2], Conditions) -> Change,
    ) -> Comparison<'a> {
        let mut comparison = Comparison {
            rows: vec![],
            missing: vec![],
            added: vec![],
            notes: devices::provenance(base, new),
        };
        comparison.notes.extend(devices::differences(base, new));
        let [base_names, new_names] = [base, new].map(names);
        let mut matched = HashSet::new();
        let mut other_kernels = Vec::new();
        for Match { site, series, other } in matching_series(base, new) {
            let name = name(&base_names, site, series);
            let Some(NewSeries { at, series: other }) = other else {
                comparison.missing.push(name);
                continue;
            };
            matched.insert(at);
            let under = Conditions {
                same_bias_source: devices::bias_source(base, series)
                    == devices::bias_source(new, other),
                clock_step_ns: devices::step_ns(base, series).max(devices::step_ns(new, other)),
                threshold: thresholds.of(&site.name),
                between_runs,
            };
            other_kernels.extend(kernels::differences(&name, [series, other]));
            let change = change(&name, [series, other], under);
            comparison.rows.push(Row { name, change, series: [series, other] });
        }
        for (new_site, site) in new.sites.iter().enumerate() {
            for (i, series) in site.series.iter().enumerate() {
                if !matched.contains(&(new_site, i)) {
                    comparison.added.push(name(&new_names, site, series));
                }
            }
        }
        comparison.notes.extend(kernels::bounded(other_kernels));
        comparison.correct();
        comparison.rows.sort_by_key(|row| row.change.verdict);
        comparison
    }

    /// Withdraws the verdicts that may be chance.
    fn correct(&mut self) {
        let judged = |row: &&mut Row| row.change.p_value.is_some();
        let p_values: Vec<f64> = self.rows.iter().filter_map(|row| row.change.p_value).collect();
        let is_sound = evidence::rejected(&p_values);
        for (row, is_sound) in self.rows.iter_mut().filter(judged).zip(is_sound) {
            if !is_sound {
                row.change.withdraw();
            }
        }
    }

    /// Adds a note with the number of runs, and with the assumption that a single run requires, unless it is 0.
    pub fn note_runs(&mut self, Share(between): Share) {
        let most = |side: usize| self.rows.iter().map(|row| row.change.runs[side]).max();
        let count =
            |runs: usize| if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
        let [base, new] = [0, 1].map(|side| count(most(side).unwrap_or_default()));
        let runs = format!("{base} of the base, {new} of the new program");
        let by_assumption = self.rows.iter().any(|row| row.change.is_by_assumption());
        if by_assumption && between == 0.0 {
            return;
        }
        self.notes.push(if by_assumption {
            format!(
                "{runs}: how much runs differ cannot be known from one, and a standard deviation of {}% is \
                 assumed (--between-runs); merge several runs of each, or use `gpu-time ab`",
                100.0 * between
            )
        } else {
            runs
        });
    }

    /// Returns the number of series with a verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        self.rows.iter().filter(|row| row.change.verdict == verdict).count()
    }

    /// Returns the numbers of series by verdict as a sentence.
    pub fn summary(&self) -> String {
        format!(
            "{} slower, {} faster, {} the same, {} unknown{}",
            self.count(Verdict::Slower),
            self.count(Verdict::Faster),
            self.count(Verdict::Same),
            self.count(Verdict::Unknown),
            match self.missing.len() {
                0 => String::new(),
                missing => format!(", {missing} only in the base"),
            }
        )
    }
}

/// A series of the base, with the matching series of the new report.
pub struct Match<'a> {
    pub site: &'a Site,
    pub series: &'a Series,
    /// `None` if only the base has the series.
    pub other: Option<NewSeries<'a>>,
}

/// A series of the new report, with the indices of its function and of the series in the function.
pub struct NewSeries<'a> {
    at: (usize, usize),
    pub series: &'a Series,
}

/// Returns each series of the base with the matching series of the new report.
pub fn matching_series<'a>(base: &'a Snapshot, new: &'a Snapshot) -> Vec<Match<'a>> {
    let sites = match_sites(&base.sites, &new.sites);
    let mut all = Vec::new();
    for (i, site) in base.sites.iter().enumerate() {
        let new_site = sites.get(&i).copied();
        for series in &site.series {
            let other = new_site.and_then(|new_site| {
                let candidates = &new.sites[new_site].series;
                let found = candidates.iter().position(|other| is_same(other, series))?;
                Some(NewSeries { at: (new_site, found), series: &candidates[found] })
            });
            all.push(Match { site, series, other });
        }
    }
    all
}

/// Returns `true` if two series of matching functions match.
fn is_same(one: &Series, other: &Series) -> bool {
    one.device == other.device && SeriesId::of(one) == SeriesId::of(other)
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
