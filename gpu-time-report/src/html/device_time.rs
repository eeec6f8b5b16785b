//! The bar of a device's time: busy by function, not annotated, idle.

use std::ops::Add;

use maud::{Markup, html};

use super::colours::{Colours, HELPERS, MAX_FUNCTIONS, NOT_ANNOTATED, NOT_TIMED, OTHERS};
use super::function_shares::function_shares;
use crate::gpu_time::GpuTime;
use crate::idle::Idle;
use crate::marks::Printed;
use crate::own_times::{Bound, Share};
use crate::units::{self, percent, printable};
use crate::{Coverage, Node, Process};

/// The maximum number of functions in the legend of one device on a phone.
const FEW: usize = 2;
/// The smallest share that is labelled. The stylesheet hides a label that does not fit.
const LABELLED: f64 = 0.03;

/// The name of the part for all functions, if it is unknown how to divide the time.
const ALL: &str = "annotated functions";
/// The stylesheet class of idle time.
const IDLE: &str = "idle";

/// A part of the bar. The shares of all parts add up to 1, within the errors of the phases.
struct Part<'a> {
    class: &'a str,
    name: String,
    /// An estimate only if its error is not known.
    share: Share,
    /// The standard error of a share that phases tell.
    error: Option<f64>,
    is_function: bool,
}

/// A device's time in parts.
pub struct Bar<'a> {
    parts: Vec<Part<'a>>,
    /// The time that the parts add up to, in words.
    of: &'static str,
}

impl<'a> Bar<'a> {
    /// Returns a bar without parts if the device's time is not known.
    pub fn of(gpu: &GpuTime, colours: &'a Colours, printed: &Printed) -> Bar<'a> {
        let parts = parts(gpu, colours);
        for mark in parts.iter().filter_map(|part| part.share.bound.mark()) {
            printed.print(mark);
        }
        Bar { parts, of: gpu.in_use.words }
    }

    pub fn line(&self) -> Markup {
        let text: Vec<String> = self.parts.iter().map(|part| part.text()).collect();
        html! {
            @if !self.parts.is_empty() {
                div.time-bar role="img" aria-label=(printable(&text.join(", "))) {
                    @for part in &self.parts {
                        i class=(part.classes()) style={ "flex-grow:" (format!("{:.5}", part.share.of_all)) }
                            title=(printable(&part.text()))
                        {
                            @if part.share.of_all >= LABELLED {
                                span.marked[part.share.bound != Bound::Exact] { (part.share) }
                            }
                        }
                    }
                }
            }
        }
    }

    pub fn legend(&self) -> Markup {
        let entries = self.parts.iter().map(|part| (part, &*part.name, part.figure_with_error()));
        legend(self.of, &entries.collect::<Vec<_>>(), FEW)
    }
}

/// Renders one legend for several bars, without figures. `of` says what the shares are of. It has all
/// functions on a phone too, as each may be the longest of some device.
pub fn shared_legend(bars: &[Bar], of: &str) -> Markup {
    let mut entries: Vec<(&Part, &str, Markup)> = Vec::new();
    for part in bars.iter().flat_map(|bar| &bar.parts) {
        let is_rest = part.class == OTHERS && part.name != ALL;
        let name = if is_rest { "other functions" } else { &part.name };
        if !entries.iter().any(|(_, known, _)| *known == name) {
            entries.push((part, name, html! {}));
        }
    }
    // In the order of the parts.
    entries.sort_by_key(|(part, ..)| {
        let place =
            [HELPERS, NOT_TIMED, NOT_ANNOTATED, IDLE].iter().position(|class| *class == part.class);
        (place, part.class)
    });
    legend(of, &entries, usize::MAX)
}

/// Renders parts with their names and figures, on a phone only the first functions.
fn legend(of: &str, entries: &[(&Part, &str, Markup)], on_phone: usize) -> Markup {
    html! {
        @if !entries.is_empty() {
            ul.legend {
                li.soft { "share of " (of) ":" }
                @for (at, (part, name, figure)) in entries.iter().enumerate() {
                    li.small[at >= on_phone && part.is_function] .rest[!part.is_function] {
                        i class=(part.classes()) {}
                        span.name title=(printable(name)) { (printable(name)) } " " b { (figure) }
                    }
                }
            }
        }
    }
}

/// Renders the hint to record phases, if a device is without.
pub fn hint(process: &Process, gpus: &[GpuTime]) -> Markup {
    html! {
        @if let Some(phases) = process.advised_phases()
            && gpus.iter().any(|gpu| gpu.device.coverage.is_none())
        {
            p.soft {
                "Set " code { "GPU_TIME_RECORD=" (phases) } " to tell idle time from work that is not annotated."
            }
        }
    }
}

impl<'a> Part<'a> {
    /// Creates the part for a function, or for several together.
    fn of_functions(class: &'a str, name: String, share: Share) -> Part<'a> {
        Part { class, name, share, error: None, is_function: true }
    }

    /// Creates a part for time outside of functions.
    fn rest(class: &'a str, name: &str, of_all: f64, bound: Bound) -> Part<'a> {
        let share = Share { of_all, bound };
        Part { class, name: name.to_owned(), share, error: None, is_function: false }
    }

    /// Creates a part that phases tell.
    fn estimated(class: &'a str, name: &str, of_all: f64, error: Option<f64>) -> Part<'a> {
        let bound = error.map_or(Bound::Estimate, |_| Bound::Exact);
        Part { error, ..Part::rest(class, name, of_all, bound) }
    }

    fn classes(&self) -> String {
        let is_bound = matches!(self.share.bound, Bound::AtMost | Bound::Uncertain);
        format!("{}{}", self.class, if self.is_function && is_bound { " bound" } else { "" })
    }

    /// Returns the figure with its error, which the stylesheet hides if there is little room.
    fn figure_with_error(&self) -> Markup {
        let figure = self.share.to_string();
        match self.error.zip(figure.strip_suffix('%')) {
            Some((error, share)) => html! {
                (share) span.error { (format!(" ±{:.1}", 100.0 * error)) } "%"
            },
            None => html! { (figure) },
        }
    }

    fn text(&self) -> String {
        let error = self.error.map(|error| format!(" ±{}", percent(error))).unwrap_or_default();
        format!("{} {}{error}", self.name, self.share)
    }
}

fn parts<'a>(gpu: &GpuTime, colours: &'a Colours) -> Vec<Part<'a>> {
    let (busy, windows) = (&gpu.busy, gpu.phases_of_all());
    if windows.is_none() && busy.times.is_empty() {
        return Vec::new();
    }
    let mut parts = Vec::new();
    match function_shares(gpu) {
        // One more function takes no more room than a part for "1 more functions".
        Some(shares) => {
            let all = busy.times.iter().zip(shares);
            let (helpers, each): (Vec<_>, Vec<_>) = all.partition(|(time, _)| time.is_of_helpers);
            let most = MAX_FUNCTIONS + usize::from(each.len() == MAX_FUNCTIONS + 1);
            let (shown, others) = each.split_at(each.len().min(most));
            for (time, share) in shown {
                let (class, name) = (colours.class(time.name), time.name.to_owned());
                parts.push(Part::of_functions(class, name, *share));
            }
            let name = format!("{} more functions", units::count(others.len() as u64));
            let others = others.iter().map(|(_, share)| *share).reduce(Share::add);
            parts.extend(others.map(|share| Part::of_functions(OTHERS, name, share)));
            let helpers = helpers.into_iter();
            parts.extend(helpers.map(|(_, Share { of_all, bound })| {
                Part::rest(HELPERS, Node::HELPER_THREADS, of_all, bound)
            }));
        }
        // It is unknown how to divide the time.
        None => {
            let functions = match windows {
                Some(Coverage { attributed, attributed_error, .. }) => {
                    Part::estimated(OTHERS, ALL, *attributed, *attributed_error)
                }
                None => Part::rest(OTHERS, ALL, 1.0, Bound::AtMost),
            };
            parts.push(Part { is_function: true, ..functions });
        }
    }
    let functions = parts.iter().map(|part| part.share.of_all).sum();
    match windows {
        Some(coverage) => {
            parts.extend(outside(coverage, gpu.idle.as_ref(), functions));
        }
        None => {
            let bound = if busy.is_bound { Bound::AtLeast } else { Bound::Exact };
            parts.push(Part::rest(IDLE, "idle or not annotated", 1.0 - functions, bound));
        }
    }
    parts.retain(|part| part.share.of_all.is_finite() && part.share.of_all > 0.0);
    parts
}

/// Returns the parts that are not functions, as phases found them. They leave room for the time of
/// functions, which may be known better.
fn outside(coverage: &Coverage, idle: Option<&Idle>, functions: f64) -> Vec<Part<'static>> {
    let room = 1.0 - functions - idle.map_or(0.0, |idle| idle.share);
    let room = room.max(0.0);
    let not_timed = coverage.not_timed.min(room);
    let not_annotated = coverage.not_annotated().min(room - not_timed);
    let mut parts = vec![
        Part::estimated(NOT_TIMED, Node::NOT_TIMED, not_timed, coverage.not_timed_error),
        Part::estimated(
            NOT_ANNOTATED,
            Node::NOT_ANNOTATED,
            not_annotated,
            coverage.not_annotated_error,
        ),
    ];
    if let Some(idle) = idle {
        parts.push(if idle.is_bound {
            Part::rest(IDLE, "idle", idle.share, Bound::AtMost)
        } else {
            Part::estimated(IDLE, "idle", idle.share, idle.error)
        });
    }
    parts
}
