//! The report as a terminal table.

mod devices;
mod function;
mod grid;
mod kernels;

use std::fmt;

use anstyle::Style;

use crate::analysis::Analysis;
use crate::marks::Printed;
use crate::notes::{self, Note, Severity};
use crate::style::{DIMMED, DOUBTFUL, TITLE};
use crate::units::{self, printable};
use crate::wrap::wrapped;
use crate::{Detail, Process, Snapshot, Terminal, terminal::View, tree};
use grid::Grid;

/// The maximum number of warnings and of notes shown in the brief table.
const NOTES: usize = 5;

impl Snapshot {
    /// Returns the table, laid out for a terminal: with colours if it supports them, and with names
    /// shortened until each row fits.
    #[doc(hidden)]
    pub fn to_table(&self, to: Terminal, detail: Detail) -> String {
        self.analyzed(|analysis| analysis.table(to, detail))
    }
}

impl Analysis<'_> {
    /// Returns the table, laid out for a terminal.
    pub fn table(&self, to: Terminal, detail: Detail) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        _ = render(self, to, detail, &mut text);
        text
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_table(Terminal::default(), Detail::Brief))
    }
}

fn render(
    analysis: &Analysis,
    to: Terminal,
    detail: Detail,
    f: &mut impl fmt::Write,
) -> fmt::Result {
    let snapshot = analysis.snapshot;
    let process = &snapshot.process;
    let title = format!(
        "gpu-time {}: {}, {} from {}",
        printable(&process.version),
        source(process),
        units::time(process.wall_ns as f64),
        printable(&process.started)
    );
    writeln!(f, "{}", to.styled(TITLE, &title))?;
    for line in devices::lines(analysis) {
        write_wrapped(f, to, Style::new(), &printable(&line))?;
    }
    if let Some(lead) = analysis.lead.line() {
        write_wrapped(f, to, TITLE, &printable(&lead))?;
    }
    if let Some(why) = process.off.as_deref() {
        let line = format!("nothing was timed on a GPU: {}", printable(why));
        writeln!(f, "{}", to.styled(DOUBTFUL, &line))?;
    }
    let most = to.most_functions.filter(|_| detail == Detail::Brief);
    let printed = Printed::default();
    let (mut functions, mut rows) = (0, 0);

    if to.view == View::Tree && !snapshot.tree.is_empty() {
        writeln!(f, "\n{}", tree::view::text(analysis, to, &printed).trim_end())?;
    } else {
        let grid = Grid::of(analysis, detail, most, &printed);
        (functions, rows) = (grid.omitted_functions, grid.omitted);
        if !grid.table.rows.is_empty() {
            writeln!(f, "\n{}", grid.table.text(to))?;
        }
    }
    let (kernels, left_out) = kernels::lines(analysis, to, detail, &printed);
    rows += left_out;
    if !kernels.is_empty() {
        writeln!(f, "\n{}", kernels.join("\n"))?;
    }
    writeln!(f)?;
    let left = write_notes(analysis, to, detail, &printed, f)?;
    let has_bytes = |device: &str| {
        snapshot.all_series().any(|series| series.device == device && series.bytes.is_some())
    };
    for line in devices::footer(snapshot, has_bytes, detail) {
        write_wrapped(f, to, DIMMED, &printable(&line))?;
    }
    write_wrapped(f, to, DIMMED, &more(functions, rows, left))
}

/// Writes the notes, and what the marks mean. The brief table has only the first warnings and those notes that suggest an
/// action. Returns the number of notes that are left out.
fn write_notes(
    analysis: &Analysis,
    to: Terminal,
    detail: Detail,
    printed: &Printed,
    f: &mut impl fmt::Write,
) -> Result<usize, fmt::Error> {
    let notes = notes::of(analysis);
    let is_shown = |note: &&Note| detail == Detail::All || note.severity != Severity::Fact;
    let (most, named) = match detail {
        Detail::Brief => (NOTES, 1),
        Detail::All => (notes.len(), notes::NAMED),
    };
    let shown: Vec<&Note> = notes.iter().filter(is_shown).take(most).collect();
    for note in &shown {
        let line = note.line(named);
        match note.severity {
            Severity::Warning => write_warning(f, to, &line)?,
            _ => write_wrapped(f, to, Style::new(), &printable(&line))?,
        }
    }
    match detail {
        Detail::Brief => {
            let line = printed.brief_explanation(analysis.snapshot);
            write_wrapped(f, to, DIMMED, &line)?;
        }
        Detail::All => {
            for line in printed.explanations(analysis.snapshot) {
                write_wrapped(f, to, DIMMED, &format!("  {line}"))?;
            }
        }
    }
    Ok(notes.len() - shown.len())
}

fn write_warning(f: &mut impl fmt::Write, to: Terminal, warning: &str) -> fmt::Result {
    const WARNING: &str = "warning:";
    let lines = wrapped(&format!("{WARNING} {}", printable(warning)), to.columns);
    for line in &lines {
        match line.strip_prefix(WARNING) {
            Some(rest) => writeln!(f, "{}{rest}", to.styled(DOUBTFUL, WARNING))?,
            None => writeln!(f, "{line}")?,
        }
    }
    Ok(())
}

/// Writes a text on as many lines as it needs, or nothing if it is empty.
fn write_wrapped(f: &mut impl fmt::Write, to: Terminal, style: Style, text: &str) -> fmt::Result {
    wrapped(text, to.columns).iter().try_for_each(|line| writeln!(f, "{}", to.styled(style, line)))
}

/// Returns a description of the process, or the number of merged reports.
fn source(process: &Process) -> String {
    let name = printable(&process.name);
    match process.merged.len() {
        0 => format!("{name} (pid {})", process.pid),
        1 => format!("1 report of {name}"),
        count => format!("{count} reports of {name} merged"),
    }
}

/// Returns a line on how to see the functions, rows and notes that the table omits.
fn more(functions: usize, rows: usize, notes: usize) -> String {
    let count = |count: usize, one: &str| {
        let end = if count == 1 { "" } else { "s" };
        (count > 0).then(|| format!("{} more {one}{end}", units::count(count as u64)))
    };
    let with = |parts: &[Option<String>], how: &str| {
        let parts: Vec<&str> = parts.iter().flatten().map(String::as_str).collect();
        (!parts.is_empty()).then(|| format!("{} with {how}", parts.join(" and ")))
    };
    let parts = [
        with(
            &[count(functions, "function")],
            "`GPU_TIME_REPORT=table:PATH`, `json:PATH` or `html:PATH`",
        ),
        with(&[count(rows, "row"), count(notes, "note")], "`GPU_TIME_NOTES=all`"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests;
