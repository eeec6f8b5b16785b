//! The bar of a device's time: busy by function, not annotated, idle.

use maud::{Markup, html};

use super::colours::{self, Colours, MOST, OTHERS};
use crate::units::{self, printable};
use crate::{Device, Node, Snapshot};

/// The most functions in the legend on a phone.
const FEW: usize = 2;
/// The smallest part with a share written on it.
const LABELLED: f64 = 0.05;

/// A part of the bar. The shares of all parts add up to 1.
struct Part<'a> {
    class: &'a str,
    name: String,
    share: f64,
    is_function: bool,
}

/// Renders the bar and its legend. Nothing if the device's time is not known.
pub fn bar(snapshot: &Snapshot, device: &Device, colours: &Colours) -> Markup {
    let parts = parts(snapshot, device, colours);
    let text: Vec<String> = parts.iter().map(|part| part.text()).collect();
    html! {
        @if !parts.is_empty() {
            div.time-bar role="img" aria-label=(printable(&text.join(", "))) {
                @for part in &parts {
                    i class=(part.class) style={ "flex-grow:" (format!("{:.5}", part.share)) }
                        title=(printable(&part.text()))
                    {
                        @if part.share >= LABELLED { (percent(part.share)) }
                    }
                }
            }
            ul.legend {
                @for (at, part) in parts.iter().enumerate() {
                    li.small[at >= FEW && part.is_function] .rest[!part.is_function] {
                        i class=(part.class) {}
                        span.name { (printable(&part.name)) } " " b { (percent(part.share)) }
                    }
                }
            }
            @if device.coverage.is_none() {
                p.soft {
                    "Set " code { "GPU_TIME_WINDOWS=20ms/10s" } " to tell idle time from work that is not annotated."
                }
            }
        }
    }
}

impl Part<'_> {
    fn text(&self) -> String {
        format!("{} {}", self.name, percent(self.share))
    }
}

fn percent(share: f64) -> String {
    units::share(share, 1.0)
}

fn parts<'a>(snapshot: &Snapshot, device: &Device, colours: &'a Colours) -> Vec<Part<'a>> {
    let functions = colours::functions(snapshot, Some(&device.id));
    let measured_ns = functions.iter().fold(0.0, |sum, (_, ns)| sum + ns);
    // The whole, in the same unit as the functions' times, and what the functions do not fill.
    let (whole_ns, rest) = match &device.coverage {
        Some(coverage) => {
            let not_annotated = (coverage.busy - coverage.attributed).max(0.0);
            let rest = vec![
                ("not-annotated", Node::NOT_ANNOTATED.to_owned(), not_annotated),
                ("idle", "idle".to_owned(), coverage.idle),
            ];
            (measured_ns / coverage.attributed, rest)
        }
        None if measured_ns <= 0.0 => return Vec::new(),
        None => {
            let whole_ns = measured_ns.max(snapshot.process.wall_ns as f64);
            (
                whole_ns,
                vec![("idle", "idle or not annotated".to_owned(), 1.0 - measured_ns / whole_ns)],
            )
        }
    };
    // A single other function takes no more room than the sum of several.
    let most = if functions.len() == MOST + 1 { MOST + 1 } else { MOST };
    let (shown, others) = functions.split_at(functions.len().min(most));
    let mut parts: Vec<(&str, String, f64)> = shown
        .iter()
        .map(|&(name, ns)| (colours.class(name), name.to_owned(), ns / whole_ns))
        .collect();
    let others_ns = others.iter().fold(0.0, |sum, (_, ns)| sum + ns);
    parts.push((OTHERS, format!("{} more functions", others.len()), others_ns / whole_ns));
    if measured_ns <= 0.0 {
        let attributed = device.coverage.as_ref().map_or(0.0, |coverage| coverage.attributed);
        parts.push((OTHERS, "annotated functions".to_owned(), attributed));
    }
    let of_functions = parts.len();
    parts.extend(rest);
    let parts = parts.into_iter().enumerate().map(|(at, (class, name, share))| Part {
        class,
        name,
        share,
        is_function: at < of_functions,
    });
    parts.filter(|part| part.share.is_finite() && part.share > 0.0).collect()
}
