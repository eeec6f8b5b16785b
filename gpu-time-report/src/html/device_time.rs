//! The bar of a device's time: busy by function, not annotated, idle.

use std::ops::Add;

use maud::{Markup, html};

use super::colours::{MAX_FUNCTIONS, OTHERS, colour};
use super::function_shares::function_shares;
use crate::coverage::FAR;
use crate::figure::{Bound, Figure};
use crate::gpu_time::GpuTime;
use crate::marks::Printed;
use crate::own_times::OwnTime;
use crate::tree::Owner;
use crate::units::{self, printable};
use crate::{Coverage, Node};

/// The maximum number of functions in the legend of one device on a phone.
const FEW: usize = 2;
/// The functions without a colour of their own, in a legend for several bars.
const OTHER_FUNCTIONS: &str = "other functions";
/// The smallest share that is labelled. The stylesheet hides a label that does not fit.
const LABELLED: f64 = 0.03;

/// A part of the bar. The shares of all parts add up to 1, within the errors of the phases.
pub struct Part {
    /// `None` for several functions together.
    owner: Option<Owner>,
    name: String,
    /// The name in a legend for several bars, if it differs.
    shared_name: Option<&'static str>,
    class: &'static str,
    share: Figure,
}

/// Renders the parts beside each other.
pub fn line(parts: &[Part]) -> Markup {
    let text: Vec<String> = parts.iter().map(Part::text).collect();
    html! {
        @if !parts.is_empty() {
            div.time-bar role="img" aria-label=(printable(&text.join(", "))) {
                @for part in parts {
                    i class=(part.classes()) style={ "flex-grow:" (format!("{:.5}", part.share.value)) }
                        title=(printable(&part.text()))
                    {
                        @if part.share.value >= LABELLED {
                            @let share = part.share.without_error();
                            span.marked[share.marks().next().is_some()] { (share) }
                        }
                    }
                }
            }
        }
    }
}

/// Renders the legend of one bar, on a phone only the first functions. `of` says what the shares are of.
pub fn legend(of: &str, parts: &[Part]) -> Markup {
    let entries = parts.iter().map(|part| (part, &*part.name, part.figure_with_error()));
    entries_of(of, &entries.collect::<Vec<_>>(), FEW)
}

/// Renders one legend for several bars, without figures. It has all functions on a phone too, as each may be the longest
/// of some device.
pub fn shared_legend(bars: &[Vec<Part>], of: &str) -> Markup {
    let mut entries: Vec<(&Part, &str, Markup)> = Vec::new();
    for part in bars.iter().flatten() {
        let name = part.shared_name.unwrap_or(&part.name);
        if !entries.iter().any(|(_, known, _)| *known == name) {
            entries.push((part, name, html! {}));
        }
    }
    // In the order of the parts.
    entries.sort_by_key(|(part, ..)| (part.owner.filter(|_| !part.is_function()), part.class));
    entries_of(of, &entries, usize::MAX)
}

fn entries_of(of: &str, entries: &[(&Part, &str, Markup)], on_phone: usize) -> Markup {
    html! {
        @if !entries.is_empty() {
            ul.legend {
                li.soft { "share of " (of) ":" }
                @for (at, (part, name, figure)) in entries.iter().enumerate() {
                    @let is_function = part.is_function();
                    li.small[at >= on_phone && is_function] .rest[!is_function] {
                        i class=(part.classes()) {}
                        span.name title=(printable(name)) { (printable(name)) } " " b { (figure) }
                    }
                }
            }
        }
    }
}

impl Part {
    fn is_function(&self) -> bool {
        matches!(self.owner, None | Some(Owner::Function(_)))
    }

    fn classes(&self) -> String {
        let is_bound = self.is_function() && self.share.is_bound();
        format!("{}{}", self.class, if is_bound { " bound" } else { "" })
    }

    /// Returns the figure with its error, which the stylesheet hides if there is little room.
    fn figure_with_error(&self) -> Markup {
        match self.share.error.filter(|error| *error > 0.0) {
            Some(error) => html! {
                (format!("{:.1}", 100.0 * self.share.value))
                span.error { (format!(" ±{:.1}", 100.0 * error)) } "%"
            },
            None => html! { (self.share) },
        }
    }

    fn text(&self) -> String {
        format!("{} {}", self.name, self.share)
    }
}

/// Returns the parts of a device's time, whose marks count as printed. There are none if it is not known. `own` are the
/// own times on all devices.
pub fn parts(gpu: &GpuTime, own: &[OwnTime], printed: &Printed) -> Vec<Part> {
    let windows = gpu.phases_of_all();
    if windows.is_none() && gpu.times.is_empty() {
        return Vec::new();
    }
    let part = |owner: Owner, name: &str, share: Figure| Part {
        owner: Some(owner),
        name: name.to_owned(),
        shared_name: colour(own, owner).is_none().then_some(OTHER_FUNCTIONS),
        class: colour(own, owner).unwrap_or(OTHERS),
        share,
    };
    let several = |name: String, share: Figure| Part {
        owner: None,
        name,
        shared_name: None,
        class: OTHERS,
        share,
    };
    let mut parts = Vec::new();
    match function_shares(gpu) {
        // One more function takes no more room than a part for "1 more functions".
        Some(shares) => {
            let all = gpu.times.iter().zip(shares);
            let (each, helpers): (Vec<_>, Vec<_>) =
                all.partition(|(time, _)| matches!(time.owner, Owner::Function(_)));
            let most = MAX_FUNCTIONS + usize::from(each.len() == MAX_FUNCTIONS + 1);
            let (shown, others) = each.split_at(each.len().min(most));
            parts.extend(shown.iter().map(|(time, share)| part(time.owner, time.name, *share)));
            let name = format!("{} more functions", units::count(others.len() as u64));
            let others = others.iter().map(|(_, share)| *share).reduce(Figure::add);
            parts.extend(
                others.map(|share| Part {
                    shared_name: Some(OTHER_FUNCTIONS),
                    ..several(name, share)
                }),
            );
            parts.extend(helpers.iter().map(|(time, share)| part(time.owner, time.name, *share)));
        }
        // It is unknown how to divide the time.
        None => {
            let share = match windows {
                Some(Coverage { attributed, attributed_error, .. }) => {
                    Figure::estimate(*attributed, *attributed_error)
                }
                None => Figure::new(1.0, Bound::AtMost),
            };
            parts.push(several("annotated functions".to_owned(), share));
        }
    }
    let functions: f64 = parts.iter().map(|part| part.share.value).sum();
    match windows {
        Some(phases) => {
            // They leave room for the time of functions, which may be known better.
            let known = parts.iter().filter(|part| !part.share.is_bound());
            let most_idle = (1.0 - known.map(|part| part.share.value).sum::<f64>()).max(0.0);
            let room = (1.0 - functions - gpu.idle.map_or(0.0, |idle| idle.value)).max(0.0);
            let not_timed = phases.not_timed.min(room);
            let not_annotated = phases.not_annotated().min(room - not_timed);
            let not_timed = Figure::estimate(not_timed, phases.not_timed_error);
            let not_annotated = Figure::estimate(not_annotated, phases.not_annotated_error);
            parts.push(part(Owner::NotTimed, Node::NOT_TIMED, not_timed));
            parts.push(part(Owner::NotAnnotated, Node::NOT_ANNOTATED, not_annotated));
            let is_above = |idle: Figure| idle.value > most_idle + FAR * idle.error.unwrap_or(0.0);
            let most_idle = Figure::new(most_idle, Bound::AtMost);
            let idle = gpu.idle.map(|idle| if is_above(idle) { most_idle } else { idle });
            parts.extend(idle.map(|idle| part(Owner::Nobody, "idle", idle)));
        }
        None => {
            let bound = if gpu.busy.is_bound() { Bound::AtLeast } else { Bound::Exact };
            let rest = Figure::new(1.0 - functions, bound);
            parts.push(part(Owner::Nobody, "idle or not annotated", rest));
        }
    }
    parts.retain(|part| part.share.value.is_finite() && part.share.value > 0.0);
    for mark in parts.iter().flat_map(|part| part.share.without_error().marks()) {
        printed.print(mark);
    }
    parts
}
