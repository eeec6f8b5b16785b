//! The bar of a device's time: busy by function, not annotated, idle.

use maud::{Markup, html};

use super::colours::{Colours, MAX_FUNCTIONS, NOT_ANNOTATED, OTHERS};
use crate::marks::{LOWER_BOUND, UNCERTAIN, UPPER_BOUND, bound};
use crate::own_times::{self, BusyTime, OwnTime, own_times};
use crate::printed::Printed;
use crate::units::{percent, printable};
use crate::{Device, Node, Snapshot};

/// The maximum number of functions in the legend on a phone.
const FEW: usize = 2;
/// The smallest share that is labelled. The stylesheet hides a label that does not fit.
const LABELLED: f64 = 0.03;

/// A part of the bar. The shares of all parts add up to 1.
struct Part<'a> {
    class: &'a str,
    name: String,
    share: f64,
    /// `≤` or `≥` if the share is a bound, and `?` if it is uncertain.
    mark: &'static str,
    is_function: bool,
}

/// The whole bar.
#[derive(Clone, Copy)]
struct Whole {
    /// The length in units of the functions' own times, which divides concurrent work among them.
    ns: f64,
    /// The functions' parts are upper bounds, even if their own times are not.
    is_bound: bool,
    /// The functions' parts are uncertain: they divide a known time in proportion to own times of
    /// which some are upper bounds.
    is_uncertain: bool,
}

/// Renders the bar and its legend, or nothing if the device's time is not known.
pub fn bar(snapshot: &Snapshot, device: &Device, colours: &Colours, printed: &Printed) -> Markup {
    let parts = parts(snapshot, device, colours);
    for part in &parts {
        printed.mark(!part.mark.is_empty(), part.mark);
    }
    let text: Vec<String> = parts.iter().map(|part| part.text()).collect();
    html! {
        @if !parts.is_empty() {
            div.time-bar role="img" aria-label=(printable(&text.join(", "))) {
                @for part in &parts {
                    i class=(part.classes()) style={ "flex-grow:" (format!("{:.5}", part.share)) }
                        title=(printable(&part.text()))
                    {
                        @if part.share >= LABELLED { span { (part.figure()) } }
                    }
                }
            }
            ul.legend {
                li.soft { "share of the run:" }
                @for (at, part) in parts.iter().enumerate() {
                    li.small[at >= FEW && part.is_function] .rest[!part.is_function] {
                        i class=(part.classes()) {}
                        span.name title=(printable(&part.name)) { (printable(&part.name)) } " " b { (part.figure()) }
                    }
                }
            }
            @if let Some(windows) = snapshot.process.advised_windows()
                && device.coverage.is_none()
            {
                p.soft {
                    "Set " code { "GPU_TIME_WINDOWS=" (windows) } " to tell idle time from work that is not annotated."
                }
            }
        }
    }
}

impl<'a> Part<'a> {
    /// Creates the part for a group of functions.
    fn of(class: &'a str, name: String, times: &[OwnTime], whole: Whole) -> Part<'a> {
        let mark = match whole.is_uncertain {
            true => UNCERTAIN,
            false => bound(whole.is_bound || times.iter().any(|time| time.is_bound)),
        };
        let share = own_times::sum(times) / whole.ns;
        Part { class, name, share, mark, is_function: true }
    }

    /// Creates a part for time outside of functions.
    fn rest(class: &'a str, name: &str, share: f64, mark: &'static str) -> Part<'a> {
        Part { class, name: name.to_owned(), share, mark, is_function: false }
    }

    fn classes(&self) -> String {
        let is_bound = self.is_function && !self.mark.is_empty();
        format!("{}{}", self.class, if is_bound { " bound" } else { "" })
    }

    fn figure(&self) -> String {
        match self.mark {
            UNCERTAIN => percent(self.share) + UNCERTAIN,
            mark => mark.to_owned() + &percent(self.share),
        }
    }

    fn text(&self) -> String {
        format!("{} {}", self.name, self.figure())
    }
}

fn parts<'a>(snapshot: &Snapshot, device: &Device, colours: &'a Colours) -> Vec<Part<'a>> {
    let times = own_times(snapshot, Some(&device.id));
    let measured_ns = own_times::sum(&times);
    let has_bounds = times.iter().any(|time| time.is_bound);
    // The whole bar, and the parts that are not functions.
    let (whole, rest) = match &device.coverage {
        Some(coverage) => {
            let not_annotated = (coverage.busy - coverage.attributed).max(0.0);
            let rest = vec![
                Part::rest(NOT_ANNOTATED, Node::NOT_ANNOTATED, not_annotated, ""),
                Part::rest("idle", "idle", coverage.idle, ""),
            ];
            let ns = measured_ns / coverage.attributed;
            (Whole { ns, is_bound: false, is_uncertain: has_bounds }, rest)
        }
        None if measured_ns <= 0.0 => return Vec::new(),
        None => {
            let busy = BusyTime::of(snapshot, device, &times);
            let mark = if busy.is_bound { LOWER_BOUND } else { "" };
            let share = busy.share(snapshot);
            let rest = Part::rest("idle", "idle or not annotated", 1.0 - share, mark);
            // The sum of the own times exceeds the whole run.
            let is_uncertain = has_bounds && share >= 1.0;
            let ns = measured_ns / share;
            (Whole { ns, is_bound: busy.is_partial, is_uncertain }, vec![rest])
        }
    };
    // With nothing but bounds, it is unknown how to divide the time.
    let is_divided = !whole.is_uncertain || times.iter().any(|time| time.is_partly_known);
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
        let (share, mark) = match &device.coverage {
            Some(coverage) => (coverage.attributed, ""),
            None => (1.0, UPPER_BOUND),
        };
        let functions = Part::rest(OTHERS, "annotated functions", share, mark);
        parts.push(Part { is_function: true, ..functions });
    }
    parts.extend(rest);
    parts.retain(|part| part.share.is_finite() && part.share > 0.0);
    parts
}
