//! The largest kernels of the run, below the functions.

use crate::analysis::Analysis;
use crate::marks::Printed;
use crate::run_kernels::RunKernel;
use crate::text_table::{TextRow, TextTable};
use crate::units::{self, printable};
use crate::{Detail, Terminal};

/// The maximum number of kernels in a brief table.
const BRIEF: usize = 5;

/// Returns the kernels as lines of text, and the number of those that are left out.
pub fn lines(
    analysis: &Analysis,
    to: Terminal,
    detail: Detail,
    printed: &Printed,
) -> (Vec<String>, usize) {
    let all = &analysis.kernels;
    // A line about one more kernel would be no shorter than the kernel's own.
    let most = if detail == Detail::Brief && all.len() > BRIEF + 1 { BRIEF } else { all.len() };
    let rows: Vec<TextRow> = all[..most].iter().map(|kernel| row(kernel, printed)).collect();
    if rows.is_empty() {
        return (Vec::new(), 0);
    }
    let titles = RunKernel::TITLES.map(|title| (title.to_owned(), true));
    let titles = titles.into_iter().chain([("kernel".to_owned(), false)]).collect();
    let table = TextTable { titles, name_at: RunKernel::TITLES.len(), rows };
    let mut lines = vec![table.text(to)];
    if most < all.len() {
        lines.push(format!("and {} more", units::count((all.len() - most) as u64)));
    }
    (lines, all.len() - most)
}

fn row(kernel: &RunKernel, printed: &Printed) -> TextRow {
    let remark = kernel.remark();
    let space = if remark.is_empty() { "" } else { " " };
    TextRow {
        name: printable(&kernel.name),
        after: format!("{space}{remark}"),
        is_kernel: true,
        cells: kernel.figures(printed).into_iter().chain([String::new()]).collect(),
        ..TextRow::default()
    }
}
