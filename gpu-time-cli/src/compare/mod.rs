//! What changed between two reports.

mod change;
mod thresholds;

use std::collections::HashSet;
use std::path::Path;
use std::process::ExitCode;

use clap::ValueEnum;
use comfy_table::{CellAlignment, Table, presets};
use gpu_time_report::units;
use gpu_time_report::{Device, Names, Series, Site, Snapshot, printable};

use crate::place::{Place, same_sites};
use crate::{Failure, input, output};
use change::{Change, Verdict};
pub use thresholds::Share;
use thresholds::Thresholds;

/// The exit code where something is slower, or what the user names is so.
const FAILED: u8 = 1;

/// Compares two files, and says how it went by the exit code.
pub fn files(
    base: &Path,
    new: &Path,
    threshold: Option<Share>,
    thresholds: Option<&Path>,
    fail_on: &[FailOn],
) -> Result<ExitCode, Failure> {
    let mut limits = thresholds.map(Thresholds::read).transpose()?.unwrap_or_default();
    if let Some(share) = threshold {
        limits.default = share;
    }
    let (base, new) = (input::report(base)?, input::report(new)?);
    if let Some(file) = thresholds {
        let unused = limits.unused(&base, &new);
        if !unused.is_empty() {
            output::complain(&format!(
                "`{}`: no function fits {}",
                file.display(),
                unused.join(", ")
            ));
        }
    }
    let mut comparison = Comparison::of(&base, &new, &limits);
    if comparison.rows.is_empty() {
        return Err("the reports have no series in common, so nothing can be compared".to_owned());
    }
    output::write(None, &comparison.render())?;
    if let missing @ 1.. = comparison.missing.len() {
        // Whoever looks at the exit code alone would take them for no slower.
        output::complain(&format!("{missing} series only in the base: not compared"));
    }
    let any = |verdict| comparison.rows.iter().any(|row| row.change.verdict == verdict);
    let fails = any(Verdict::Slower)
        || fail_on.contains(&FailOn::Unknown) && any(Verdict::Unknown)
        || fail_on.contains(&FailOn::Missing) && !comparison.missing.is_empty();
    Ok(if fails { ExitCode::from(FAILED) } else { ExitCode::SUCCESS })
}

/// What a comparison is to fail for.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A series that became slower; always.
    Slower,
    /// A series of which nothing can be said.
    Unknown,
    /// A series that only the base has.
    Missing,
}

/// All series of two reports.
struct Comparison {
    rows: Vec<Row>,
    /// Only in the first.
    missing: Vec<String>,
    /// Only in the second.
    added: Vec<String>,
    /// What makes the comparison doubtful.
    notes: Vec<String>,
}

/// A series that both have.
struct Row {
    name: String,
    change: Change,
}

impl Comparison {
    fn of(base: &Snapshot, new: &Snapshot, limits: &Thresholds) -> Comparison {
        let mut comparison = Comparison {
            rows: vec![],
            missing: vec![],
            added: vec![],
            notes: other_devices(base, new),
        };
        let same = same_sites(base.sites(), new.sites());
        let [names, new_names] =
            [base, new].map(|snapshot| snapshot.sites().iter().map(Site::name).collect::<Names>());
        let mut known = HashSet::new();
        for (at, site) in base.sites().iter().enumerate() {
            let now = same.get(&at).copied();
            let there = now.map(|now| new.sites()[now].series()).unwrap_or_default();
            for series in site.series() {
                let name = name(&names, site, series);
                let Some(found) = there.iter().position(|there| is_same(there, series)) else {
                    comparison.missing.push(name);
                    continue;
                };
                let step_ns = step_ns(base, series).max(step_ns(new, &there[found]));
                let alike = bias_source(base, series) == bias_source(new, &there[found]);
                let limit = limits.of(site.name());
                let change = Change::of(series, &there[found], alike, step_ns, limit);
                comparison.rows.push(Row { name, change });
                known.extend(now.map(|now| (now, found)));
            }
        }
        for (at, site) in new.sites().iter().enumerate() {
            for (i, series) in site.series().iter().enumerate() {
                if !known.contains(&(at, i)) {
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
        for (what, names) in [("only in the base", &self.missing), ("only in the new", &self.added)]
        {
            for name in names {
                text += &format!("{what}: {}\n", printable(name));
            }
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

/// Whether two series of a function are the same.
fn is_same(one: &Series, other: &Series) -> bool {
    one.device() == other.device() && Place::of(one) == Place::of(other)
}

fn name(names: &Names, site: &Site, series: &Series) -> String {
    let label = names.label(site.name(), site.file(), site.line());
    format!("{label} on {}", series.place())
}

/// The step in which the clock of a series advances.
fn step_ns(snapshot: &Snapshot, series: &Series) -> f64 {
    device(snapshot, series).and_then(Device::event_step_ns).unwrap_or(0.0)
}

/// Where the bias of a series comes from.
fn bias_source<'a>(snapshot: &'a Snapshot, series: &Series) -> Option<&'a str> {
    device(snapshot, series).and_then(Device::event_bias_source)
}

fn device<'a>(snapshot: &'a Snapshot, series: &Series) -> Option<&'a Device> {
    snapshot.devices().iter().find(|device| device.id() == series.device())
}

/// Devices of one id that are not the same, or whose bias is not.
fn other_devices(base: &Snapshot, new: &Snapshot) -> Vec<String> {
    let pairs = base.devices().iter().filter_map(|was| {
        let is = new.devices().iter().find(|is| is.id() == was.id())?;
        Some((was, is))
    });
    let mut notes = Vec::new();
    for (was, is) in pairs {
        if was.name() != is.name() {
            notes.push(format!("{} was {} and is {}", was.id(), was.name(), is.name()));
        }
        if let (Some(old), Some(new)) = (was.driver(), is.driver())
            && old != new
        {
            notes.push(format!(
                "the driver of {} was for CUDA {old} and is for CUDA {new}",
                was.id()
            ));
        }
        let [old, new] = [was, is].map(|device| {
            let bias = device.event_bias_ns().map_or("unknown".to_owned(), units::time);
            format!("{bias} ({})", device.event_bias_source().unwrap_or("unknown"))
        });
        if old != new {
            let so = if was.event_bias_source() == is.event_bias_source() {
                "a change within that is none"
            } else {
                "raw times are compared"
            };
            notes.push(format!("the bias of {} was {old} and is {new}: {so}", was.id()));
        }
    }
    notes
}
