//! What changed between two reports.

mod change;
mod thresholds;

use std::path::Path;
use std::process::ExitCode;

use comfy_table::{CellAlignment, Table, presets};
use gpu_time_report::units;
use gpu_time_report::{Series, Site, Snapshot, printable};

use crate::place::{Place, is_same_site};
use crate::{Failure, input, output};
use change::{Change, Verdict};
pub use thresholds::Share;
use thresholds::Thresholds;

/// The exit code where something is slower.
const SLOWER: u8 = 1;

/// Compares two files, and says how it went by the exit code.
pub fn files(
    base: &Path,
    new: &Path,
    threshold: Option<Share>,
    thresholds: Option<&Path>,
) -> Result<ExitCode, Failure> {
    let mut limits = thresholds.map(Thresholds::read).transpose()?.unwrap_or_default();
    if let Some(share) = threshold {
        limits.default = share;
    }
    let (base, new) = (input::report(base)?, input::report(new)?);
    let mut comparison = Comparison::of(&base, &new, &limits);
    if comparison.rows.is_empty() {
        return Err("the reports have no series in common, so nothing can be compared".to_owned());
    }
    output::write(None, &comparison.render())?;
    let is_slower = comparison.rows.iter().any(|row| row.change.verdict == Verdict::Slower);
    Ok(if is_slower { ExitCode::from(SLOWER) } else { ExitCode::SUCCESS })
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
        for (site, series) in all(base) {
            let name = name(site, series);
            match find(new, site, series) {
                Some(now) => {
                    let step_ns = step_ns(base, series).max(step_ns(new, now));
                    let change = Change::of(series, now, step_ns, limits.of(site.name()));
                    comparison.rows.push(Row { name, change });
                }
                None => comparison.missing.push(name),
            }
        }
        for (site, series) in all(new) {
            if find(base, site, series).is_none() {
                comparison.added.push(name(site, series));
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
            "{} slower, {} faster, {} the same, {} unknown\n",
            count(Verdict::Slower),
            count(Verdict::Faster),
            count(Verdict::Same),
            count(Verdict::Unknown)
        );
        text
    }
}

/// Every series with times, and the function that it is of.
fn all(snapshot: &Snapshot) -> impl Iterator<Item = (&Site, &Series)> {
    snapshot.sites().iter().flat_map(|site| site.series().iter().map(move |series| (site, series)))
}

/// The same series in another report.
fn find<'a>(snapshot: &'a Snapshot, site: &Site, series: &Series) -> Option<&'a Series> {
    let mut series_there = all(snapshot).filter(|(there, _)| is_same_site(there, site));
    series_there
        .find(|(_, there)| {
            there.device() == series.device() && Place::of(there) == Place::of(series)
        })
        .map(|(_, there)| there)
}

fn name(site: &Site, series: &Series) -> String {
    let key = series.key().map(|key| format!(", {key}")).unwrap_or_default();
    format!("{} on {}{key}", site.name(), series.place())
}

/// The step in which the clock of a series advances.
fn step_ns(snapshot: &Snapshot, series: &Series) -> f64 {
    let device = snapshot.devices().iter().find(|device| device.id() == series.device());
    device.and_then(|device| device.event_step_ns()).unwrap_or(0.0)
}

/// Devices of one id that are not the same.
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
            notes.push(format!("the driver of {} was {old} and is {new}", was.id()));
        }
    }
    notes
}
