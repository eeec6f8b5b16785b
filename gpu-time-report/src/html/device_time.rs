//! The bar of a device's time: busy by function, not annotated, idle.

use maud::{Markup, html};

use super::colours::{Colours, MAX_FUNCTIONS, NOT_ANNOTATED, NOT_TIMED, OTHERS};
use super::function_shares::{FunctionShare, FunctionShares};
use crate::idle::Idle;
use crate::in_use::in_use_words;
use crate::marks::Printed;
use crate::marks::{ESTIMATE, LOWER_BOUND, UNCERTAIN, UPPER_BOUND};
use crate::own_times::own_times;
use crate::units::{self, percent, printable};
use crate::{Coverage, Device, Node, Snapshot, idle};

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
    share: f64,
    /// The standard error of a share that phases tell.
    error: Option<f64>,
    /// `≤` or `≥` if the share is a bound, `?` if it is uncertain, and `~` if it is an estimate
    /// without a known error.
    mark: &'static str,
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
    pub fn of(
        snapshot: &Snapshot,
        device: &Device,
        colours: &'a Colours,
        printed: &Printed,
    ) -> Bar<'a> {
        let parts = parts(snapshot, device, colours);
        for part in &parts {
            printed.mark(!part.mark.is_empty(), part.mark);
        }
        Bar { parts, of: in_use_words(&snapshot.process, device) }
    }

    pub fn line(&self) -> Markup {
        let text: Vec<String> = self.parts.iter().map(|part| part.text()).collect();
        html! {
            @if !self.parts.is_empty() {
                div.time-bar role="img" aria-label=(printable(&text.join(", "))) {
                    @for part in &self.parts {
                        i class=(part.classes()) style={ "flex-grow:" (format!("{:.5}", part.share)) }
                            title=(printable(&part.text()))
                        {
                            @if part.share >= LABELLED {
                                span.marked[!part.mark.is_empty()] { (part.figure()) }
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
        let place = [NOT_TIMED, NOT_ANNOTATED, IDLE].iter().position(|class| *class == part.class);
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
pub fn hint(snapshot: &Snapshot, devices: &[&Device]) -> Markup {
    html! {
        @if let Some(phases) = snapshot.process.advised_phases()
            && devices.iter().any(|device| device.coverage.is_none())
        {
            p.soft {
                "Set " code { "GPU_TIME_RECORD=" (phases) } " to tell idle time from work that is not annotated."
            }
        }
    }
}

impl<'a> Part<'a> {
    /// Creates the part for a function, or for several together.
    fn of(class: &'a str, name: String, shares: &[FunctionShare]) -> Part<'a> {
        let share = shares.iter().map(|of| of.share).sum();
        let mark = shares.iter().map(|of| of.mark).find(|mark| !mark.is_empty());
        let mark = mark.unwrap_or_default();
        Part { class, name, share, error: None, mark, is_function: true }
    }

    /// Creates a part for time outside of functions.
    fn rest(class: &'a str, name: &str, share: f64, mark: &'static str) -> Part<'a> {
        Part { class, name: name.to_owned(), share, error: None, mark, is_function: false }
    }

    /// Creates a part that phases tell.
    fn estimated(class: &'a str, name: &str, share: f64, error: Option<f64>) -> Part<'a> {
        let mark = if error.is_none() { ESTIMATE } else { "" };
        Part { error, ..Part::rest(class, name, share, mark) }
    }

    fn classes(&self) -> String {
        let is_bound = self.is_function && [UPPER_BOUND, UNCERTAIN].contains(&self.mark);
        format!("{}{}", self.class, if is_bound { " bound" } else { "" })
    }

    fn figure(&self) -> String {
        match self.mark {
            UNCERTAIN => percent(self.share) + UNCERTAIN,
            mark => mark.to_owned() + &percent(self.share),
        }
    }

    /// Returns the figure with its error, which the stylesheet hides if there is little room.
    fn figure_with_error(&self) -> Markup {
        let figure = self.figure();
        match self.error.zip(figure.strip_suffix('%')) {
            Some((error, share)) => html! {
                (share) span.error { (format!(" ±{:.1}", 100.0 * error)) } "%"
            },
            None => html! { (figure) },
        }
    }

    fn text(&self) -> String {
        let error = self.error.map(|error| format!(" ±{}", percent(error))).unwrap_or_default();
        format!("{} {}{error}", self.name, self.figure())
    }
}

fn parts<'a>(snapshot: &Snapshot, device: &Device, colours: &'a Colours) -> Vec<Part<'a>> {
    let times = own_times(snapshot, Some(&device.id));
    let windows = idle::telling_of_all(snapshot, device);
    if windows.is_none() && times.is_empty() {
        return Vec::new();
    }
    let shares = FunctionShares::of(snapshot, device, windows);
    let mut parts = Vec::new();
    match shares.of_each(&times) {
        // One more function takes no more room than a part for "1 more functions".
        Some(each) => {
            let most = MAX_FUNCTIONS + usize::from(each.len() == MAX_FUNCTIONS + 1);
            let (shown, others) = each.split_at(each.len().min(most));
            for (time, share) in times.iter().zip(shown) {
                let (class, name) = (colours.class(time.name), time.name.to_owned());
                parts.push(Part::of(class, name, std::slice::from_ref(share)));
            }
            let name = format!("{} more functions", units::count(others.len() as u64));
            parts.push(Part::of(OTHERS, name, others));
        }
        // It is unknown how to divide the time.
        None => {
            let functions = match windows {
                Some(Coverage { attributed, attributed_error, .. }) => {
                    Part::estimated(OTHERS, ALL, *attributed, *attributed_error)
                }
                None => Part::rest(OTHERS, ALL, 1.0, UPPER_BOUND),
            };
            parts.push(Part { is_function: true, ..functions });
        }
    }
    let functions = parts.iter().map(|part| part.share).sum();
    match windows {
        Some(coverage) => {
            parts.extend(outside(coverage, Idle::of(snapshot, device), functions));
        }
        None => {
            let mark = if shares.is_bound() { LOWER_BOUND } else { "" };
            parts.push(Part::rest(IDLE, "idle or not annotated", 1.0 - functions, mark));
        }
    }
    parts.retain(|part| part.share.is_finite() && part.share > 0.0);
    parts
}

/// Returns the parts that are not functions, as phases found them. They leave room for the time of
/// functions, which may be known better.
fn outside(coverage: &Coverage, idle: Option<Idle>, functions: f64) -> Vec<Part<'static>> {
    let room = 1.0 - functions - idle.as_ref().map_or(0.0, |idle| idle.share);
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
        let part = Part::estimated(IDLE, "idle", idle.share, idle.error);
        parts.push(if idle.is_bound {
            Part { error: None, mark: UPPER_BOUND, ..part }
        } else {
            part
        });
    }
    parts
}
