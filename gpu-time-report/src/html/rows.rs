//! The page's table: one row group for each function with its launches. Those of one function are
//! together.
//!
//! Functions are sorted by their own time, because one that only calls others has a long total and no time of its own. If
//! no share is known, they are sorted by total.

use maud::{Markup, html};

use super::column::{columns, name};
use crate::analysis::Analysis;
use crate::column::{Column, Sheet};
use crate::groups::Group;
use crate::row::Row;
use crate::{Series, units};

/// The maximum number of series in the table, which bounds the size of the page. The JSON report
/// contains all of them.
const MAX_SERIES: usize = 600;

/// The id of the row of the function to look at first, and the class of what marks it.
pub const FIRST: &str = "first";

/// The text that the filter compares, and its key.
const FILTER: &str = "Filter by function, file, launch, kernel, device… ( / )";

/// Leaves out the groups for which the page has no room. Returns the number of their rows.
pub fn leave_out(groups: &mut Vec<Group>) -> usize {
    let rows = |group: &Group| usize::from(group.head.is_some()) + group.launches.len();
    let mut series = 0;
    let fits = |group: &&Group| {
        series += rows(group);
        series <= MAX_SERIES
    };
    // A group is shown whole or left out.
    let most = groups.iter().take_while(fits).count().max(1).min(groups.len());
    groups.split_off(most).iter().map(rows).sum()
}

/// Renders the table and the controls that the script uses. `sites` are the indices in the report of the functions that the
/// page has data for, in ascending order.
pub fn table(groups: &[Group], left_out: usize, sites: &[usize], page: &Sheet) -> Markup {
    let Analysis { shares, lead, .. } = page.analysis;
    let sorted_by = if shares.are_known() { Column::Share } else { Column::Total };
    let first = lead.first.as_ref().map(|first| first.site);
    let first = groups.iter().position(|group| Some(group.at) == first);
    let columns = columns(page.analysis);
    let others = Row::beside_functions(shares);
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
                    thead { tr { @for column in &columns { (column.th(*column == sorted_by, page)) } } }
                    @for (at, group) in groups.iter().enumerate() {
                        (rows(group, first == Some(at), sites, &columns, page))
                    }
                    @if !others.is_empty() {
                        tfoot {
                            @for row in &others {
                                tr {
                                    th scope="row" { div.name { (row.label) } }
                                    (cells(row, &columns, page))
                                }
                            }
                        }
                    }
                }
            }
            @if left_out > 0 {
                p.soft { (units::count(left_out as u64)) " rows with shorter times are only in the JSON report." }
            }
        }
    }
}

fn rows(
    group: &Group,
    is_first: bool,
    sites: &[usize],
    columns: &[Column],
    page: &Sheet,
) -> Markup {
    let Group { at, site, head, launches, .. } = group;
    let at = sites.binary_search(at).ok();
    let index = |series: &Series| site.series.iter().position(|other| std::ptr::eq(other, series));
    let row = |launch| group.row(launch, &page.analysis.shares);
    html! {
        tbody {
            tr.row.first[is_first] id=[is_first.then_some(FIRST)]
                data-site=[at] data-series=[head.and_then(index)]
            {
                (name(site, *head)) (cells(&row(None), columns, page))
            }
            @for launch in launches {
                tr.row.launch data-site=[at] data-series=[index(launch)] {
                    (name(site, Some(launch)))
                    (cells(&row(Some(launch)), columns, page))
                }
            }
        }
    }
}

/// Renders the cells behind the name.
fn cells(row: &Row, columns: &[Column], page: &Sheet) -> Markup {
    html! { @for column in &columns[1..] { (column.td(row, page)) } }
}
