//! The sentences at the top: how idle the GPU was, which function to look at first, and why.

use maud::{Markup, html};

use crate::Snapshot;
use crate::lead::Lead;
use crate::units::printable;

/// Renders the sentences, or nothing if no GPU time is known.
pub fn lead(snapshot: &Snapshot) -> Markup {
    let Lead { time, first } = Lead::of(snapshot);
    html! {
        @if time.is_some() || first.is_some() {
            p.lead {
                @if let Some(time) = time { b { (printable(&time)) } " " }
                @if let Some([before, name, after]) = first.map(|first| first.parts()) {
                    (before) b { (printable(&name)) } (printable(&after))
                }
            }
        }
    }
}
