//! The sentences at the top: what to look at first, and why.

use maud::{Markup, html};

use super::prose::{path, prose};
use super::rows::FIRST;
use crate::lead::Lead;

/// Renders the sentences, or nothing if there are none. The function's name is a link if it has a
/// row.
pub fn lead(lead: &Lead, has_row: bool) -> Markup {
    let Lead { outside, first } = lead;
    html! {
        @if outside.is_some() || first.is_some() {
            p.lead {
                @if let Some(outside) = outside { (prose(outside)) " " }
                @if let Some(first) = first {
                    @let [before, after] = first.around_name();
                    @let name = html! { b { (path(first.name)) } };
                    (before)
                    @if has_row { a href={ "#" (FIRST) } { (name) } } @else { (name) }
                    (prose(&after))
                    @if let Some(remedy) = first.remedy { span.remedy { " " (remedy) "." } }
                }
            }
        }
    }
}
