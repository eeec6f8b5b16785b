//! The bar of a device's time: busy by function, not annotated, idle.

use maud::{Markup, html};

use super::colours::{Colours, MAX_FUNCTIONS, NOT_ANNOTATED, OTHERS};
use crate::marks::{ESTIMATE, LOWER_BOUND, UNCERTAIN, UPPER_BOUND, bound};
use crate::own_times::{self, BusyTime, OwnTime, own_times};
use crate::printed::Printed;
use crate::units::{percent, printable};
use crate::{Coverage, Device, Node, Snapshot, idle};

/// The maximum number of functions in the legend of one device on a phone.
const FEW: usize = 2;
/// The smallest share that is labelled. The stylesheet hides a label that does not fit.
const LABELLED: f64 = 0.03;

/// The stylesheet class of idle time.
const IDLE: &str = "idle";

/// A part of the bar. The shares of all parts add up to 1.
struct Part<'a> {
    class: &'a str,
    name: String,
    share: f64,
    /// The standard error of a share that windows tell.
    error: Option<f64>,
    /// `≤` or `≥` if the share is a bound, `?` if it is uncertain, and `~` if it is an estimate
    /// without a known error.
    mark: &'static str,
    is_function: bool,
}

/// The whole bar.
#[derive(Clone, Copy)]
struct Whole {
    /// The length in units of the functions' own times, which divides concurrent work among them.
    ns: f64,
    /// The mark of the functions' parts. Without one, they have that of their own times.
    mark: &'static str,
}

/// A device's time in parts.
pub struct Bar<'a>(Vec<Part<'a>>);

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
        Bar(parts)
    }

    pub fn line(&self) -> Markup {
        let text: Vec<String> = self.0.iter().map(|part| part.text()).collect();
        html! {
            @if !self.0.is_empty() {
                div.time-bar role="img" aria-label=(printable(&text.join(", "))) {
                    @for part in &self.0 {
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
        let entries = self.0.iter().map(|part| (part, &*part.name, part.figure_with_error()));
        legend(&entries.collect::<Vec<_>>(), FEW)
    }
}

/// Renders one legend for several bars, without figures. It has all functions on a phone too, as
/// each may be the longest of some device.
pub fn shared_legend(bars: &[Bar]) -> Markup {
    let mut entries: Vec<(&Part, &str, Markup)> = Vec::new();
    for part in bars.iter().flat_map(|bar| &bar.0) {
        let name = if part.class == OTHERS { "other functions" } else { &part.name };
        if !entries.iter().any(|(_, known, _)| *known == name) {
            entries.push((part, name, html! {}));
        }
    }
    // In the order of the parts.
    entries.sort_by_key(|(part, ..)| (part.class == IDLE, part.class == NOT_ANNOTATED, part.class));
    legend(&entries, usize::MAX)
}

/// Renders parts with their names and figures, on a phone only the first functions.
fn legend(entries: &[(&Part, &str, Markup)], on_phone: usize) -> Markup {
    html! {
        @if !entries.is_empty() {
            ul.legend {
                li.soft { "share of the run:" }
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

/// Renders the hint to set windows, if a device is without.
pub fn hint(snapshot: &Snapshot, devices: &[&Device]) -> Markup {
    html! {
        @if let Some(windows) = snapshot.process.advised_windows()
            && devices.iter().any(|device| device.coverage.is_none())
        {
            p.soft {
                "Set " code { "GPU_TIME_WINDOWS=" (windows) } " to tell idle time from work that is not annotated."
            }
        }
    }
}

impl<'a> Part<'a> {
    /// Creates the part for a group of functions.
    fn of(class: &'a str, name: String, times: &[OwnTime], whole: Whole) -> Part<'a> {
        let mark = match whole.mark {
            "" => bound(times.iter().any(|time| time.is_bound)),
            mark => mark,
        };
        let share = own_times::sum(times) / whole.ns;
        Part { class, name, share, error: None, mark, is_function: true }
    }

    /// Creates a part for time outside of functions.
    fn rest(class: &'a str, name: &str, share: f64, mark: &'static str) -> Part<'a> {
        Part { class, name: name.to_owned(), share, error: None, mark, is_function: false }
    }

    /// Creates a part that windows tell.
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
    let measured_ns = own_times::sum(&times);
    let has_bounds = times.iter().any(|time| time.is_bound);
    let busy = BusyTime::of(snapshot, device, &times);
    let share = busy.share(snapshot);
    let measured = Whole { ns: measured_ns / share, mark: bound(busy.is_partial) };
    // The whole bar, and the parts that are not functions.
    let windows = idle::telling(snapshot, device);
    let (whole, rest) = match windows {
        // Windows know better than bounds how long functions kept the device busy.
        Some(coverage) if coverage.attributed > 0.0 && (busy.is_bound || times.is_empty()) => {
            let mark = if has_bounds { UNCERTAIN } else { ESTIMATE };
            (Whole { ns: measured_ns / coverage.attributed, mark }, outside(coverage))
        }
        Some(coverage) => (measured, remaining(coverage, 1.0 - share)),
        None if measured_ns <= 0.0 => return Vec::new(),
        None => {
            let mark = if busy.is_bound { LOWER_BOUND } else { "" };
            let rest = Part::rest(IDLE, "idle or not annotated", 1.0 - share, mark);
            // The sum of the own times exceeds the whole run.
            let is_uncertain = has_bounds && share >= 1.0;
            let mark = if is_uncertain { UNCERTAIN } else { measured.mark };
            (Whole { mark, ..measured }, vec![rest])
        }
    };
    // With nothing but bounds, it is unknown how to divide the time.
    let is_divided = whole.mark != UNCERTAIN || times.iter().any(|time| time.is_partly_known);
    let times = if is_divided { times } else { Vec::new() };
    // One more function takes no more room than a part for "1 more functions".
    let most = if times.len() == MAX_FUNCTIONS + 1 { MAX_FUNCTIONS + 1 } else { MAX_FUNCTIONS };
    let (shown, others) = times.split_at(times.len().min(most));
    let shown = shown.iter().map(|time| {
        let (class, name) = (colours.class(time.name), time.name.to_owned());
        Part::of(class, name, std::slice::from_ref(time), whole)
    });
    let mut parts: Vec<Part> = shown.collect();
    parts.push(Part::of(OTHERS, format!("{} more functions", others.len()), others, whole));
    if times.is_empty() {
        const ALL: &str = "annotated functions";
        let functions = match windows {
            Some(Coverage { attributed, attributed_error, .. }) => {
                Part::estimated(OTHERS, ALL, *attributed, *attributed_error)
            }
            None => Part::rest(OTHERS, ALL, 1.0, UPPER_BOUND),
        };
        parts.push(Part { is_function: true, ..functions });
    }
    parts.extend(rest);
    parts.retain(|part| part.share.is_finite() && part.share > 0.0);
    parts
}

/// Returns the parts that are not functions, as windows found them.
fn outside(coverage: &Coverage) -> Vec<Part<'static>> {
    let Coverage { busy, idle, attributed, .. } = *coverage;
    let errors = coverage.busy_error.zip(coverage.attributed_error);
    let error = errors.map(|(busy, attributed)| busy.hypot(attributed));
    vec![
        Part::estimated(NOT_ANNOTATED, Node::NOT_ANNOTATED, (busy - attributed).max(0.0), error),
        Part::estimated(IDLE, "idle", idle, coverage.idle_error),
    ]
}

/// Returns the parts of the time that functions are known to leave, of which windows know how much
/// was idle.
fn remaining(coverage: &Coverage, share: f64) -> Vec<Part<'static>> {
    let (not_annotated, error) = (share - coverage.idle, coverage.idle_error);
    if not_annotated <= 0.0 {
        return vec![Part::estimated(IDLE, "idle", share, None)];
    }
    vec![
        Part::estimated(NOT_ANNOTATED, Node::NOT_ANNOTATED, not_annotated, error),
        Part::estimated(IDLE, "idle", coverage.idle, error),
    ]
}
