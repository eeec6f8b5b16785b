//! The page's table: one row group for each function with its launches. Those of one function are
//! together.
//!
//! Functions are sorted by their own time, because one that only calls others has a long total and no time of its own. If
//! no share is known, they are sorted by total.

use maud::{Markup, html};

use super::column::{PageSheet, columns, name};
use crate::analysis::Analysis;
use crate::column::Column;
use crate::groups::{self, Group};
use crate::marks::Printed;
use crate::row::Row;
use crate::{Series, units};

/// The maximum number of series in the table, which bounds the size of the page. The JSON report
/// contains all of them.
const MAX_SERIES: usize = 600;

/// The id of the row of the function to look at first, and the class of what marks it.
pub const FIRST: &str = "first";

/// The text that the filter compares, and its key.
const FILTER: &str = "Filter by function, file, launch, kernel, device… ( / )";

/// The row groups of the page.
pub struct Groups<'a> {
    shown: Vec<Group<'a>>,
    left_out: usize,
    /// The position of the first group of the function to look at first, if the page has it.
    pub first: Option<usize>,
    sorted_by: Column,
    /// The indices in the report of the functions that the page has data for, in ascending order.
    pub sites: Vec<usize>,
}

impl<'a> Groups<'a> {
    pub fn of(analysis: &Analysis<'a>) -> Groups<'a> {
        let Analysis { snapshot, shares, lead, .. } = analysis;
        let mut shown = groups::of(analysis);
        let rows = |group: &Group| usize::from(group.head.is_some()) + group.launches.len();
        let mut series = 0;
        let fits = |group: &&Group| {
            series += rows(group);
            series <= MAX_SERIES
        };
        // A group is shown whole or left out.
        let most = shown.iter().take_while(fits).count().max(1).min(shown.len());
        let left_out = shown.split_off(most).iter().map(rows).sum();
        let has_rows = |at: &usize| left_out == 0 || shown.iter().any(|group| group.at == *at);
        let sites = (0..snapshot.sites.len()).filter(has_rows).collect();
        let sorted_by = if shares.are_known() { Column::Share } else { Column::Total };
        let first = lead.first.as_ref().map(|first| first.site);
        let first = shown.iter().position(|group| Some(group.at) == first);
        Groups { shown, left_out, first, sorted_by, sites }
    }
}

/// Renders the table and the controls that the script uses.
pub fn table(analysis: &Analysis, groups: &Groups, printed: &Printed) -> Markup {
    let Groups { shown: groups, left_out, first, sorted_by, sites } = groups;
    let page = PageSheet::of(analysis, printed);
    let columns = columns(analysis, &page);
    let others = Row::beside_functions(page.shares);
    html! {
        @if groups.is_empty() {
            h2 { "Functions" }
            p.soft { "No function was called." }
        } @else {
            div.section-head {
                h2 { "Functions" }
                div.tools {
                    input type="search" placeholder=(FILTER) title=(FILTER) aria-label="filter";
                    label.sort { "sort by " select {} }
                    @if groups.iter().any(|group| !group.launches.is_empty()) {
                        label { input type="checkbox" checked; "launches" }
                    }
                    output {}
                }
            }
            div.scroll {
                table.rows {
                    thead { tr { @for column in &columns { (column.th(column == sorted_by, &page)) } } }
                    @for (at, group) in groups.iter().enumerate() {
                        (rows(group, *first == Some(at), sites, &columns, &page))
                    }
                    @if !others.is_empty() {
                        tfoot {
                            @for row in &others {
                                tr {
                                    th scope="row" { div.name { (row.label) } }
                                    (cells(row, &columns, &page))
                                }
                            }
                        }
                    }
                }
            }
            @if *left_out > 0 {
                p.soft { (units::count(*left_out as u64)) " rows with shorter times are only in the JSON report." }
            }
        }
    }
}

fn rows(
    group: &Group,
    is_first: bool,
    sites: &[usize],
    columns: &[Column],
    page: &PageSheet,
) -> Markup {
    let Group { at, site, head, launches, has_calls } = group;
    let at = sites.binary_search(at).ok();
    let index = |series: &Series| site.series.iter().position(|other| std::ptr::eq(other, series));
    let calls = has_calls.then_some(site.calls);
    let function = Row { calls, ..row(group, *head, page) };
    html! {
        tbody {
            tr.row.first[is_first] id=[is_first.then_some(FIRST)]
                data-site=[at] data-series=[head.and_then(index)]
            {
                (name(site, *head)) (cells(&function, columns, page))
            }
            @for launch in launches {
                tr.row.launch data-site=[at] data-series=[index(launch)] {
                    (name(site, Some(launch)))
                    (cells(&row(group, Some(launch), page), columns, page))
                }
            }
        }
    }
}

fn row<'a>(group: &Group, series: Option<&'a Series>, page: &PageSheet) -> Row<'a> {
    let function = (group.at, group.site);
    match series {
        Some(series) => Row::of_series(function, series, page.shares, String::new()),
        None => Row::of(group.site, &[], String::new()),
    }
}

/// Renders the cells behind the name.
fn cells(row: &Row, columns: &[Column], page: &PageSheet) -> Markup {
    html! { @for column in &columns[1..] { (column.td(row, page)) } }
}
