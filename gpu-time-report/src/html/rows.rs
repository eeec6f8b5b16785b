//! The page's table: one row group for each function with its launches, sorted by total time.

use maud::{Markup, html};

use super::column::{PageColumn, PageRow, Sheet};
use crate::Snapshot;
use crate::groups::{self, Group};

/// Renders the table and the controls that the script uses.
pub fn table(snapshot: &Snapshot) -> Markup {
    let groups = groups::of(snapshot);
    let (columns, sheet) = (PageColumn::of(snapshot), Sheet::of(snapshot));
    html! {
        h2 { "Functions" }
        @if groups.is_empty() {
            p.soft { "No function was called." }
        } @else {
            div.tools {
                input type="search" placeholder="Filter by function, file, launch, kernel, device… ( / )" aria-label="filter";
                label.sort { "sort by " select {} }
                @if groups.iter().any(|group| !group.launches.is_empty()) {
                    label { input type="checkbox" checked; "launches" }
                }
                output {}
            }
            div.scroll {
                table.rows {
                    thead { tr { @for column in &columns { (column.header(&sheet)) } } }
                    @for group in &groups { (rows(group, &columns, &sheet)) }
                }
            }
        }
    }
}

fn rows(group: &Group, columns: &[PageColumn], sheet: &Sheet) -> Markup {
    let Group { at, site, head, launches, has_calls } = group;
    let series = head.map(|head| head.series);
    let function = PageRow { site, series, calls: has_calls.then_some(site.calls) };
    html! {
        tbody {
            tr.row data-site=(at) data-series=[head.map(|head| head.at)] {
                @for column in columns { (column.cell(&function, sheet)) }
            }
            @for launch in launches {
                @let row = PageRow { site, series: Some(launch.series), calls: None };
                tr.row.launch data-site=(at) data-series=(launch.at) {
                    @for column in columns { (column.cell(&row, sheet)) }
                }
            }
        }
    }
}
