//! The sentences at the top: how idle the GPU was, which function to look at first, and why.

use maud::{Markup, html};

use super::prose::{path, prose};
use crate::Snapshot;
use crate::lead::Lead;
use crate::units::printable;

/// Renders the sentences, or nothing if no time is known.
pub fn lead(snapshot: &Snapshot) -> Markup {
    let Lead { time, outside, first } = Lead::of(snapshot);
    html! {
        @if time.is_some() || first.is_some() {
            p.lead {
                @if let Some(time) = time { b { (printable(&time)) } " " }
                @if let Some(outside) = outside { (outside) " " }
                @if let Some(first) = first {
                    @let [before, after] = first.around_name();
                    (before) b { (path(first.name)) } (prose(&after))
                }
            }
        }
    }
}
