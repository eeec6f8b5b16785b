//! The panel of devices: for each, the bar of its time, its clocks and the parameters of the
//! measurement.

use maud::{Markup, html};

use super::device_time::{self, Part};
use super::prose::prose;
use crate::analysis::Analysis;
use crate::gpu_time::{GpuTime, RUN};
use crate::marks::Printed;
use crate::units::{self, printable};
use crate::{Device, Eviction, Process};

/// A label and its value.
type Fact = (&'static str, String);

/// The minimum number of devices that share a card and a legend.
const MANY: usize = 4;

/// Renders each device except the host, which has no such values.
pub fn panel(analysis: &Analysis, printed: &Printed) -> Markup {
    let (gpus, process) = (&analysis.gpus, &analysis.snapshot.process);
    let parts = gpus.iter().map(|gpu| device_time::parts(gpu, &analysis.own, printed));
    let bars: Vec<Vec<Part>> = parts.collect();
    html! {
        div.devices {
            @if gpus.len() >= MANY {
                (lines(process, gpus, &bars))
            } @else {
                @for (gpu, bar) in gpus.iter().zip(&bars) {
                    section.card {
                        h3 { span.chip { (printable(&gpu.device.id)) } " " (printable(&name(process, gpu))) }
                        (device_time::line(bar))
                        (device_time::legend(gpu.of, bar))
                        // The parts of the bar are those of phases, if these tell.
                        @let sentences = sentences(process, gpu);
                        @if gpu.phases_of_all().is_none() { (sentences) (details(gpu.device, html! {})) }
                        @else { (details(gpu.device, sentences)) }
                    }
                }
            }
        }
    }
}

/// Renders devices as one card, with a line for each that expands to show the rest.
fn lines(process: &Process, gpus: &[GpuTime], bars: &[Vec<Part>]) -> Markup {
    // Devices may have been in use for different times.
    let of = gpus.iter().map(|gpu| gpu.of);
    let of = of.reduce(|one, other| if one == other { one } else { "each GPU's time in use" });
    html! {
        section.card {
            h3 { (printable(&kinds(gpus))) }
            div.lines {
                @for (gpu, bar) in gpus.iter().zip(bars) {
                    details {
                        summary { span.chip { (printable(&gpu.device.id)) } (device_time::line(bar)) }
                        p { (printable(&name(process, gpu))) }
                        p { (printable(&state(gpu.device))) }
                        (sentences(process, gpu))
                        (list(&properties(gpu.device)))
                    }
                }
            }
            (device_time::shared_legend(bars, of.unwrap_or(RUN)))
        }
    }
}

/// Returns the name of a GPU and, in a merged report, where it is.
fn name(process: &Process, gpu: &GpuTime) -> String {
    let parts = [Some(gpu.device.name.clone()), process.origin(gpu.device)];
    units::joined(&parts, ", ").unwrap_or_default()
}

/// Counts the devices of each kind, in the order of the devices.
fn kinds(gpus: &[GpuTime]) -> String {
    let mut kinds: Vec<(&str, usize)> = Vec::new();
    for GpuTime { device, .. } in gpus {
        match kinds.iter_mut().find(|(name, _)| *name == device.name) {
            Some((_, count)) => *count += 1,
            None => kinds.push((&device.name, 1)),
        }
    }
    let kinds: Vec<String> = match kinds[..] {
        [(name, _)] => vec![name.to_owned()],
        _ => kinds.iter().map(|(name, count)| format!("{count} × {name}")).collect(),
    };
    format!("{} GPUs: {}", gpus.len(), kinds.join(", "))
}

/// Renders the state of the device as a line that expands to show the rest.
fn details(device: &Device, sentences: Markup) -> Markup {
    let now = state(device);
    html! {
        @if !now.is_empty() || !sentences.0.is_empty() || !properties(device).is_empty() {
            details {
                @if now.is_empty() {
                    summary { "details" }
                } @else {
                    @let now = printable(&now);
                    summary title=(now) { (now) }
                }
                (sentences)
                (list(&properties(device)))
            }
        }
    }
}

fn sentences(process: &Process, gpu: &GpuTime) -> Markup {
    html! {
        @for sentence in gpu.sentences(process.advised_phases()) { p.soft { (prose(&sentence)) } }
    }
}

fn list(facts: &[Fact]) -> Markup {
    html! {
        @if !facts.is_empty() {
            dl.facts {
                @for (name, value) in facts { div { dt { (name) } dd { (printable(value)) } } }
            }
        }
    }
}

/// Returns the state of the device during the run as a line, which is empty if it is unknown.
fn state(device: &Device) -> String {
    let is_steady = device.throttle.is_some() && device.throttled().is_empty();
    let others = device.other_processes.map(|others| format!("other processes {others}"));
    let steady = is_steady.then(|| "clocks lowered by nothing".to_owned());
    let parts = device.health().into_iter().chain(steady).chain(others);
    parts.collect::<Vec<_>>().join(" · ")
}

/// Returns the device properties that affect measurements.
fn properties(device: &Device) -> Vec<Fact> {
    let time = |ns: Option<f64>| ns.map(units::time);
    let proof = device.flush_proof.as_ref();
    let on_or_off = |is: bool| if is { "on" } else { "off" }.to_owned();
    let facts = [
        ("UUID", device.uuid.clone()),
        ("driver", device.driver_release.clone()),
        ("driver for CUDA", device.driver.clone()),
        ("L2", device.l2_bytes.map(mib)),
        ("peak bandwidth", device.peak_gb_per_s.map(|peak| format!("{peak:.0} GB/s"))),
        ("event step", time(device.event_step_ns)),
        ("empty pair", time(device.event_floor_ns)),
        ("bias removed", device.bias_words()),
        ("fed margin", time(device.fed_margin_ns)),
        ("flush", device.flush_bytes.map(mib)),
        ("clean flush evicts", proof.and_then(|proof| proof.clean.as_ref()).map(eviction)),
        ("dirty flush evicts", proof.and_then(|proof| proof.dirty.as_ref()).map(eviction)),
        ("persistence mode", device.persistence.map(on_or_off)),
        ("MIG", device.mig.map(on_or_off)),
        ("MPS", device.mps.map(on_or_off)),
    ];
    facts.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// Returns the fraction of lines that a flush evicted, in the worse of the two cases.
fn eviction(seen: &Eviction) -> String {
    let missed = seen.missed_after_read.min(seen.missed_after_write);
    let proved = if seen.proved { "" } else { ", not proved" };
    format!("{:.1}%{proved}", 100.0 * missed)
}
