//! A comparison as a table for the terminal.

use anstyle::{AnsiColor, Style};
use gpu_time_report::judge::Verdict;
use gpu_time_report::{Terminal, printable, text_table};

use super::figures::{COLUMNS, CONTROL, KERNEL_COLUMNS, figures};
use crate::compare::comparison::{Comparison, Row};

/// Renders a comparison, and its control below it.
pub fn text(comparison: &Comparison, control: Option<&Comparison>, to: Terminal) -> String {
    let mut text = one(comparison, to);
    if let Some(control) = control {
        let title = to.styled(Style::new().bold(), CONTROL);
        text += &format!("\n{title}\n{}", one(control, to));
    }
    text
}

fn one(comparison: &Comparison, to: Terminal) -> String {
    let mut text = grid(COLUMNS, &comparison.rows, to);
    if let Some(kernels) = comparison.kernels.as_ref().filter(|kernels| kernels.has_changes()) {
        text += &grid(KERNEL_COLUMNS, kernels.changed(), to);
    }
    for (title, names) in comparison.unmatched() {
        names.iter().for_each(|name| text += &format!("{title}: {}\n", printable(name)));
    }
    for note in comparison.all_notes() {
        text += &format!("note: {}\n", printable(&note));
    }
    text + &comparison.summary() + "\n"
}

/// Returns a table of changes, and an empty line.
fn grid(columns: [&str; 6], of: &[Row], to: Terminal) -> String {
    let mut rows = vec![columns.map(str::to_owned)];
    for row in of {
        let [base, new, share, interval, verdict] = figures(&row.change);
        // The verdict is the last column, so escape sequences do not disturb the layout.
        let verdict = to.styled(style(row.change.verdict), &verdict);
        rows.push([printable(&row.name), base, new, share, interval, verdict]);
    }
    let is_right = |at| (1..=4).contains(&at);
    text_table::aligned(rows.iter().map(<[String; 6]>::as_slice), is_right) + "\n\n"
}

fn style(verdict: Verdict) -> Style {
    match verdict {
        Verdict::Slower => AnsiColor::Red.on_default().bold(),
        Verdict::Faster => AnsiColor::Green.on_default(),
        Verdict::Unknown => AnsiColor::Yellow.on_default(),
        Verdict::Same => Style::new().dimmed(),
    }
}
