//! The `compare` command: how the medians of two reports differ.

mod change;
mod thresholds;

use std::collections::HashSet;
use std::path::Path;
use std::process::ExitCode;

use clap::ValueEnum;
use comfy_table::{CellAlignment, Table, presets};
use gpu_time_report::units;
use gpu_time_report::{Device, Names, Series, Site, Snapshot, printable};

use crate::message::{self, Failure};
use crate::series_id::{SeriesId, match_sites};
use crate::{input, output};
use change::{Change, Verdict};
pub use thresholds::Share;
use thresholds::Thresholds;

/// The exit code if a series is slower or a condition of `--fail-on` holds.
const FAILED: u8 = 1;

/// Compares two files, prints the result and returns the exit code.
pub fn files(
    base: &Path,
    new: &Path,
    threshold: Option<Share>,
    thresholds: Option<&Path>,
    fail_on: &[FailOn],
) -> Result<ExitCode, Failure> {
    let thresholds_file = thresholds;
    let mut thresholds = thresholds_file.map(Thresholds::read).transpose()?.unwrap_or_default();
    if let Some(share) = threshold {
        thresholds.default = share;
    }
    let (base, new) = (input::report(base)?, input::report(new)?);
    if let Some(file) = thresholds_file {
        let unused = thresholds.unused(&base, &new);
        if !unused.is_empty() {
            message::print(&format!(
                "`{}`: no function matches {}",
                file.display(),
                unused.join(", ")
            ));
        }
    }
    let mut comparison = Comparison::of(&base, &new, &thresholds);
    if comparison.rows.is_empty() {
        return Err("cannot compare: the reports have no series in common".to_owned());
    }
    output::write(None, &comparison.render())?;
    if let missing @ 1.. = comparison.missing.len() {
        // The exit code alone does not show that these series were not compared.
        message::print(&format!("{missing} series only in the base: not compared"));
    }
    let any = |verdict| comparison.rows.iter().any(|row| row.change.verdict == verdict);
    let fails = any(Verdict::Slower)
        || fail_on.contains(&FailOn::Unknown) && any(Verdict::Unknown)
        || fail_on.contains(&FailOn::Missing) && !comparison.missing.is_empty();
    Ok(if fails { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// A condition for exit code 1.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A series became slower; always in effect.
    Slower,
    /// The verdict on a series is unknown.
    Unknown,
    /// A series is only in the base.
    Missing,
}

/// The result of comparing two reports.
struct Comparison {
    rows: Vec<Row>,
    /// The series that only the base has.
    missing: Vec<String>,
    /// The series that only the new report has.
    added: Vec<String>,
    /// Differences between the devices, which make the comparison less certain.
    notes: Vec<String>,
}

/// A series in both reports.
struct Row {
    name: String,
    change: Change,
}

impl Comparison {
    fn of(base: &Snapshot, new: &Snapshot, thresholds: &Thresholds) -> Comparison {
        let mut comparison = Comparison {
            rows: vec![],
            missing: vec![],
            added: vec![],
            notes: device_differences(base, new),
        };
        let matches = match_sites(base.sites(), new.sites());
        let [base_names, new_names] =
            [base, new].map(|snapshot| snapshot.sites().iter().map(Site::name).collect::<Names>());
        let mut matched = HashSet::new();
        for (i, site) in base.sites().iter().enumerate() {
            let new_site = matches.get(&i).copied();
            let candidates = new_site.map(|i| new.sites()[i].series()).unwrap_or_default();
            for series in site.series() {
                let name = name(&base_names, site, series);
                let Some(found) = candidates.iter().position(|other| is_same(other, series)) else {
                    comparison.missing.push(name);
                    continue;
                };
                let other = &candidates[found];
                let step_ns = step_ns(base, series).max(step_ns(new, other));
                let same_bias_source = bias_source(base, series) == bias_source(new, other);
                let threshold = thresholds.of(site.name());
                let change = Change::of(series, other, same_bias_source, step_ns, threshold);
                comparison.rows.push(Row { name, change });
                matched.extend(new_site.map(|new_site| (new_site, found)));
            }
        }
        for (new_site, site) in new.sites().iter().enumerate() {
            for (i, series) in site.series().iter().enumerate() {
                if !matched.contains(&(new_site, i)) {
                    comparison.added.push(name(&new_names, site, series));
                }
            }
        }
        comparison
    }

    fn render(&mut self) -> String {
        self.rows.sort_by_key(|row| row.change.verdict);
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_header([
            "function",
            "base",
            "new",
            "change",
            "95 % interval",
            "verdict",
        ]);
        for Row { name, change } in &self.rows {
            let [base, new] = change.medians_ns.map(units::time);
            let percent = |share: f64| format!("{:+.1}%", 100.0 * share);
            let interval =
                change.interval.map(|[low, high]| format!("{} to {}", percent(low), percent(high)));
            table.add_row([
                printable(name),
                base,
                new,
                change.share.map(percent).unwrap_or_default(),
                interval.unwrap_or_default(),
                change.to_string(),
            ]);
        }
        for (i, column) in table.column_iter_mut().enumerate() {
            column.set_padding((0, 2));
            if (1..=4).contains(&i) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        let mut text = table.trim_fmt() + "\n\n";
        for name in &self.missing {
            text += &format!("only in the base: {}\n", printable(name));
        }
        for name in &self.added {
            text += &format!("only in the new report: {}\n", printable(name));
        }
        for note in &self.notes {
            text += &format!("note: {}\n", printable(note));
        }
        let count = |verdict| self.rows.iter().filter(|row| row.change.verdict == verdict).count();
        text += &format!(
            "{} slower, {} faster, {} the same, {} unknown{}\n",
            count(Verdict::Slower),
            count(Verdict::Faster),
            count(Verdict::Same),
            count(Verdict::Unknown),
            match self.missing.len() {
                0 => String::new(),
                missing => format!(", {missing} only in the base"),
            }
        );
        text
    }
}

/// Returns `true` if two series of matching functions are the same.
fn is_same(one: &Series, other: &Series) -> bool {
    one.device() == other.device() && SeriesId::of(one) == SeriesId::of(other)
}

fn name(names: &Names, site: &Site, series: &Series) -> String {
    let label = names.label(site.name(), site.file(), site.line());
    format!("{label} on {}", series.place())
}

/// Returns the step of the clock that timed a series; 0 if unknown.
fn step_ns(snapshot: &Snapshot, series: &Series) -> f64 {
    device(snapshot, series).and_then(Device::event_step_ns).unwrap_or(0.0)
}

/// Returns the source of a series' bias.
fn bias_source<'a>(snapshot: &'a Snapshot, series: &Series) -> Option<&'a str> {
    device(snapshot, series).and_then(Device::event_bias_source)
}

fn device<'a>(snapshot: &'a Snapshot, series: &Series) -> Option<&'a Device> {
    snapshot.devices().iter().find(|device| device.id() == series.device())
}

/// Describes differences between devices with the same id: name, driver, bias.
fn device_differences(base: &Snapshot, new: &Snapshot) -> Vec<String> {
    let pairs = base.devices().iter().filter_map(|before| {
        let after = new.devices().iter().find(|after| after.id() == before.id())?;
        Some((before, after))
    });
    let mut notes = Vec::new();
    for (before, after) in pairs {
        let id = before.id();
        if before.name() != after.name() {
            notes.push(format!("{id} changed from {} to {}", before.name(), after.name()));
        }
        if let (Some(old), Some(new)) = (before.driver(), after.driver())
            && old != new
        {
            notes.push(format!("the driver of {id} changed from CUDA {old} to CUDA {new}"));
        }
        let [old, new] = [before, after].map(|device| {
            let bias = device.event_bias_ns().map_or("unknown".to_owned(), units::time);
            format!("{bias} ({})", device.event_bias_source().unwrap_or("unknown"))
        });
        if old != new {
            let consequence = if before.event_bias_source() == after.event_bias_source() {
                "changes within that difference are ignored"
            } else {
                "comparing raw times"
            };
            notes.push(format!("the bias of {id} changed from {old} to {new}: {consequence}"));
        }
    }
    notes
}
