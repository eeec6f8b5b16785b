//! The largest kernels of the run, below the functions.

use std::collections::HashMap;

use unicode_width::UnicodeWidthStr;

use crate::analysis::Analysis;
use crate::kernel_names;
use crate::marks::Printed;
use crate::run_kernels::RunKernel;
use crate::shorten::shortened;
use crate::style::TITLE;
use crate::units::{self, printable};
use crate::{Detail, Terminal, columns, terminal};

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
    let shown = &all[..most];
    let names: Vec<String> = shown.iter().map(|kernel| printable(kernel.name)).collect();
    let figures: Vec<_> = shown.iter().map(|kernel| kernel.figures(printed)).collect();
    let text = |names: &[String]| {
        let [share, total, calls, median] = RunKernel::TITLES;
        let titles = [share, total, calls, median, "kernel"].map(str::to_owned);
        let rows = shown.iter().zip(&figures).zip(names).map(|((kernel, figures), name)| {
            let [share, total, calls, median] = figures.clone();
            [share, total, calls, median, format!("{name} {}", kernel.remark())]
        });
        let rows: Vec<[String; 5]> = std::iter::once(titles).chain(rows).collect();
        columns::aligned(rows.iter().map(<[String; 5]>::as_slice), |at| at < 4)
    };
    let nameless = text(&vec![String::new(); names.len()]);
    let others = nameless.lines().map(UnicodeWidthStr::width).max().unwrap_or_default();
    let room = terminal::room_for_names(to, others);
    // The first keeps what tells templates apart, and the second cuts what is still too long.
    let short = kernel_names::shortened(names.iter().map(String::as_str), room);
    let names = in_short_form(&names, &short);
    let names = in_short_form(&names, &shortened(names.iter().map(String::as_str), room));
    let mut lines: Vec<String> = text(&names).lines().map(str::to_owned).collect();
    if let Some(titles) = lines.first_mut() {
        *titles = to.styled(TITLE, titles);
    }
    if shown.is_empty() {
        lines.clear();
    } else if most < all.len() {
        lines.push(format!("and {} more", units::count((all.len() - most) as u64)));
    }
    (lines, all.len() - most)
}

/// Returns each name in its short form, if there is one.
fn in_short_form(names: &[String], short: &HashMap<&str, String>) -> Vec<String> {
    names.iter().map(|name| short.get(name.as_str()).unwrap_or(name).clone()).collect()
}
