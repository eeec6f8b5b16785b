//! The report as a terminal table.

mod column;
mod grid;
mod keys;
mod layout;
mod style;

use std::fmt;

use anstyle::Style;

use crate::units::{self, printable};
use crate::{Clocks, Coverage, Device, Process, Snapshot, Terminal, notes};
use grid::Grid;
use layout::fitted;
use style::{DIMMED, DOUBTFUL, TITLE};

/// The maximum number of warnings shown.
const WARNINGS: usize = 20;
/// The maximum number of kernels outside of annotated functions that is shown for a device.
const OUTSIDE: usize = 5;

impl Snapshot {
    /// Returns the table, laid out for a terminal: with colours if it supports them, and with names
    /// shortened until each row fits.
    #[doc(hidden)]
    pub fn to_table(&self, to: Terminal) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        _ = render(self, to, &mut text);
        text
    }
}

impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        render(self, Terminal::default(), f)
    }
}

fn render(snapshot: &Snapshot, to: Terminal, f: &mut impl fmt::Write) -> fmt::Result {
    let snapshot = &*snapshot.with_unique_names();
    let process = &snapshot.process;
    let title = format!(
        "gpu-time {}: {}, {} from {}",
        printable(&process.version),
        source(process),
        units::time(process.wall_ns as f64),
        printable(&process.started)
    );
    writeln!(f, "{}", to.styled(TITLE, &title))?;
    for device in &snapshot.devices {
        writeln!(f, "{}", printable(&device_line(device, has_bytes(snapshot, &device.id))))?;
        if let Some(line) = device.clocks.and_then(|clocks| health_line(device, clocks)) {
            writeln!(f, "  {}", printable(&line))?;
        }
        for line in device.coverage.iter().flat_map(coverage_lines) {
            writeln!(f, "  {}", printable(&line))?;
        }
    }
    if let Some(why) = process.off() {
        let line = format!("nothing was timed on a GPU: {}", printable(why));
        writeln!(f, "{}", to.styled(DOUBTFUL, &line))?;
    }
    let grid = Grid::of(snapshot);
    if !grid.rows.is_empty() {
        writeln!(f, "\n{}", fitted(grid, to))?;
    }
    let facts = notes::facts(snapshot);
    let warnings: Vec<String> = notes::warnings(snapshot).collect();
    if !facts.is_empty() || !warnings.is_empty() {
        writeln!(f)?;
    }
    for fact in facts {
        // Explanations of words and marks are indented.
        let style = if fact.starts_with(' ') { DIMMED } else { Style::new() };
        writeln!(f, "{}", to.styled(style, &printable(&fact)))?;
    }
    for warning in notes::bounded(warnings, WARNINGS, "more warnings are in the JSON report") {
        writeln!(f, "{} {}", to.styled(DOUBTFUL, "warning:"), printable(&warning))?;
    }
    Ok(())
}

/// Returns a description of the process, or the number of merged reports.
fn source(process: &Process) -> String {
    let name = printable(&process.name);
    match process.merged.len() {
        0 => format!("{name} (pid {})", process.pid),
        1 => format!("1 report of {name}"),
        count => format!("{count} reports of {name} merged"),
    }
}

/// Returns `true` if the table compares any rate with the device's peak.
fn has_bytes(snapshot: &Snapshot, device: &str) -> bool {
    snapshot.all_series().any(|series| series.device == device && series.bytes.is_some())
}

fn device_line(device: &Device, with_peak: bool) -> String {
    let Device { event_step_ns, event_floor_ns, event_bias_ns, .. } = device;
    let part = |what: &str, ns: &Option<f64>| ns.map(|ns| format!("{what} {}", units::time(ns)));
    let error = device.event_bias_error_ns.map(|ns| format!(", ±{}", units::time(ns)));
    let source = device
        .event_bias_source()
        .map(|source| format!(" ({source}{})", error.unwrap_or_default()));
    let parts = [
        device.driver().map(|version| format!("driver for CUDA {version}")),
        part("event step", event_step_ns),
        part("empty pair", event_floor_ns),
        part("bias", event_bias_ns).map(|bias| bias + &source.unwrap_or_default()),
        device.peak_gb_per_s.filter(|_| with_peak).map(|peak| format!("peak {peak:.0} GB/s")),
    ];
    let name = format!("{}: {}", device.id, device.name);
    parts.into_iter().flatten().fold(name, |line, part| line + ", " + &part)
}

/// Returns how busy the device was, and the largest kernels outside of annotated functions.
fn coverage_lines(coverage: &Coverage) -> Vec<String> {
    let all = &coverage.unattributed;
    let mut lines = vec![coverage.sentence()];
    if !all.is_empty() {
        lines.push("outside of annotated functions:".to_owned());
    }
    lines.extend(all.iter().take(OUTSIDE).map(|kernel| format!("  {}", kernel.sentence())));
    if all.len() > OUTSIDE {
        lines.push(format!("  and {} more", all.len() - OUTSIDE));
    }
    lines
}

/// Returns the clocks at first use and at the time of the report, and other NVML values.
fn health_line(device: &Device, clocks: Clocks) -> Option<String> {
    let Clocks { sm_start_mhz, sm_end_mhz, sm_max_mhz, mem_start_mhz, mem_end_mhz, .. } = clocks;
    let clock = |what: &str, start: Option<u32>, end: Option<u32>| {
        let (start, end) = start.zip(end)?;
        Some(if start == end {
            format!("{what} {end} MHz")
        } else {
            format!("{what} {start} to {end} MHz")
        })
    };
    let most = sm_max_mhz.map(|most| format!(" of {most}")).unwrap_or_default();
    let throttled: Vec<String> = device
        .throttle()
        .filter(|(_, held)| *held != Some(0))
        .map(|(name, held)| match held {
            Some(ns) => format!("{name} {}", units::time(ns as f64)),
            None => name.to_owned(),
        })
        .collect();
    let parts = [
        clock("SM", sm_start_mhz, sm_end_mhz).map(|sm| sm + &most),
        clock("memory", mem_start_mhz, mem_end_mhz),
        device.temperature_c.map(|degrees| format!("{degrees} °C")),
        device.power_w.map(|watts| format!("{watts:.0} W")),
        (!throttled.is_empty()).then(|| format!("clocks lowered by {}", throttled.join(" and "))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests;
