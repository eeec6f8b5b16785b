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

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_table(Terminal::default(), Detail::Brief))
    }
}

impl Analysis<'_> {
    /// Returns the table, laid out for a terminal.
    pub fn table(&self, to: Terminal, detail: Detail) -> String {
        let snapshot = self.snapshot;
        let process = &snapshot.process;
        let title = format!(
            "gpu-time {}: {}, {} from {}",
            printable(&process.version),
            source(process),
            units::time(process.wall_ns as f64),
            printable(&process.started)
        );
        let mut lines = vec![to.styled(TITLE, &title)];
        for line in devices::lines(self) {
            lines.extend(styled_lines(to, Style::new(), &line));
        }
        lines.extend(self.lead.line().iter().flat_map(|lead| styled_lines(to, TITLE, lead)));
        let off = process.off.as_ref().map(|why| format!("nothing was timed on a GPU: {why}"));
        lines.extend(off.map(|off| to.styled(DOUBTFUL, &printable(&off))));
        let most = to.most_functions.filter(|_| detail == Detail::Brief);
        let printed = Printed::default();
        let (mut functions, mut rows) = (0, 0);
        if to.view == View::Tree && !snapshot.tree.is_empty() {
            lines.push(format!("\n{}", tree::view::text(self, to, &printed).trim_end()));
        } else {
            let grid = Grid::of(self, detail, most, &printed);
            (functions, rows) = (grid.omitted_functions, grid.omitted);
            if !grid.table.rows.is_empty() {
                lines.push(format!("\n{}", grid.table.text(to)));
            }
        }
        let (kernels, left_out) = kernels::lines(self, to, detail, &printed);
        if !kernels.is_empty() {
            lines.push(format!("\n{}", kernels.join("\n")));
        }
        lines.push(String::new());
        let (notes, notes_left_out) = note_lines(self, to, detail);
        lines.extend(notes);
        let explanations = match detail {
            Detail::Brief => vec![printed.brief_explanation(snapshot)],
            Detail::All => printed.explanations(snapshot),
        };
        let explanations = explanations.into_iter();
        let explanations = explanations.map(|line| match detail {
            Detail::Brief => line,
            Detail::All => format!("  {line}"),
        });
        let footer = devices::footer(snapshot, detail);
        let more = more(functions, rows + left_out, notes_left_out);
        for line in explanations.chain(footer).chain([more]) {
            lines.extend(styled_lines(to, DIMMED, &line));
        }
        lines.join("\n") + "\n"
    }
}

/// Returns the notes as lines, and the number of those that are left out. The brief table has only the first warnings and
/// those notes that suggest an action.
fn note_lines(analysis: &Analysis, to: Terminal, detail: Detail) -> (Vec<String>, usize) {
    const WARNING: &str = "warning:";
    let notes = notes::of(analysis);
    let is_shown = |note: &&Note| detail == Detail::All || note.severity != Severity::Fact;
    let (most, named) = match detail {
        Detail::Brief => (NOTES, 1),
        Detail::All => (notes.len(), notes::NAMED),
    };
    let shown: Vec<&Note> = notes.iter().filter(is_shown).take(most).collect();
    let lines = shown.iter().flat_map(|note| match note.severity {
        Severity::Warning => {
            let warning = format!("{WARNING} {}", note.line(named));
            let mut lines = styled_lines(to, Style::new(), &warning);
            lines[0].replace_range(..WARNING.len(), &to.styled(DOUBTFUL, WARNING));
            lines
        }
        _ => styled_lines(to, Style::new(), &note.line(named)),
    });
    (lines.collect(), notes.len() - shown.len())
}

/// Returns a text on as many lines as it needs, or none if it is empty.
fn styled_lines(to: Terminal, style: Style, text: &str) -> Vec<String> {
    wrapped(&printable(text), to.columns).iter().map(|line| to.styled(style, line)).collect()
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
        units::joined(parts, " and ").map(|parts| format!("{parts} with {how}"))
    };
    let parts = [
        with(
            &[count(functions, "function")],
            "`GPU_TIME_REPORT=table:PATH`, `json:PATH` or `html:PATH`",
        ),
        with(&[count(rows, "row"), count(notes, "note")], "`GPU_TIME_NOTES=all`"),
    ];
    units::joined(&parts, "; ").unwrap_or_default()
}

#[cfg(test)]
mod tests;
