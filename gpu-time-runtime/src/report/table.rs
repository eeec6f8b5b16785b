//! The report as a table, for people.

use std::{fmt, iter};

use comfy_table::{CellAlignment, Table, presets};

use super::units::{self, Unit};
use super::{Clocks, Device, Launches, Series, Site, Snapshot, notes};
use crate::sample::Measure;

/// Writes the table.
pub fn render(snapshot: &Snapshot, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let process = &snapshot.process;
    writeln!(
        f,
        "gpu-time {}: {} (pid {}), {} from {}",
        process.version,
        printable(&process.name),
        process.pid,
        units::time(process.wall_ns as f64),
        process.started
    )?;
    for device in &snapshot.devices {
        writeln!(f, "{}", device_line(device))?;
        if let Some(line) = device.clocks.and_then(|clocks| health_line(device, clocks)) {
            writeln!(f, "  {line}")?;
        }
    }
    if let Some(why) = process.off() {
        writeln!(f, "nothing was timed on a GPU: {}", printable(why))?;
    }
    let rows = rows(snapshot);
    if rows.len() > 1 {
        writeln!(f, "\n{}", aligned(rows))?;
    }
    let notes = notes::of(snapshot);
    if !notes.is_empty() {
        writeln!(f)?;
    }
    notes.iter().try_for_each(|note| writeln!(f, "{}", printable(note)))
}

fn device_line(device: &Device) -> String {
    let Device { event_step_ns, event_floor_ns, event_bias_ns, .. } = device;
    let part = |what: &str, ns: &Option<f64>| ns.map(|ns| format!("{what} {}", units::time(ns)));
    let error = device.event_bias_error_ns.map(|ns| format!(", ±{}", units::time(ns)));
    let source =
        device.event_bias_source.map(|source| format!(" ({source}{})", error.unwrap_or_default()));
    let parts = [
        device.driver().map(|version| format!("driver {}", printable(version))),
        part("event step", event_step_ns),
        part("empty pair", event_floor_ns),
        part("bias", event_bias_ns).map(|bias| bias + &source.unwrap_or_default()),
    ];
    let name = format!("{}: {}", device.id, printable(&device.name));
    parts.into_iter().flatten().fold(name, |line, part| line + ", " + &part)
}

/// The clocks at first use and at the report, and what else NVML says.
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

/// The header, then every function that was called, and under it its launches.
fn rows(snapshot: &Snapshot) -> Vec<Vec<String>> {
    let called = || snapshot.sites.iter().filter(|site| site.calls > 0 || !site.series.is_empty());
    if called().all(|site| site.series.is_empty()) {
        let counts = called().map(|site| vec![printable(&site.name), site.calls.to_string()]);
        return iter::once(vec!["function".to_owned(), "calls".to_owned()]).chain(counts).collect();
    }
    let header =
        ["function", "on", "cache", "calls", "samples", "median", "p5–p95", "total", "share"];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for site in called() {
        // A function whose calls were all captured has no row of its own.
        let is_headless = site.series.first().is_none_or(|series| series.launch.is_some());
        if is_headless {
            rows.push(vec![
                printable(&site.name),
                String::new(),
                String::new(),
                site.calls.to_string(),
            ]);
        }
        for (i, series) in site.series.iter().enumerate() {
            // Calls are counted by function, so they stand once.
            let is_first = i == 0 && !is_headless;
            let calls = if is_first { site.calls.to_string() } else { String::new() };
            rows.push(row(site, series, calls, total(snapshot, &series.device)));
        }
    }
    rows
}

fn row(site: &Site, series: &Series, calls: String, device_total: f64) -> Vec<String> {
    let mut row = vec![
        label(site, series),
        series.device.clone(),
        series.cache().to_owned(),
        calls,
        series.measured.to_string(),
    ];
    if let Some((stats, total)) = series.shown().zip(series.total()) {
        let unit = Unit::of(stats.median);
        let mark = if series.upper_bound { notes::UPPER_BOUND } else { "" };
        // Beside the second line of a sum's label there is room.
        let raw =
            if series.is_raw_by_launches() { format!("\n{}", notes::RAW) } else { String::new() };
        row.push(format!("{mark}{}{raw}", units::time(stats.median)));
        row.push(format!("{}–{}", unit.number(stats.p5), unit.number(stats.p95)));
        row.push(units::time(total));
        // Nodes are in no function's time, and not every replay was seen.
        if !series.graph {
            row.push(units::share(total, device_total));
        }
    }
    row
}

fn label(site: &Site, series: &Series) -> String {
    match (&series.launch, series.launches) {
        (Some(launch), _) => {
            let graph = if series.graph { "\n    in graphs" } else { "" };
            format!("  {}{graph}", printable(&launch.label()))
        }
        (None, Some(launches)) => format!("{}\n  {}", printable(&site.name), sum_of(launches)),
        (None, None) => printable(&site.name),
    }
}

fn sum_of(Launches { min, max, .. }: Launches) -> String {
    match (min, max) {
        (1, 1) => "sum of 1 launch".to_owned(),
        _ if min == max => format!("sum of {max} launches"),
        _ => format!("sum of {min}–{max} launches"),
    }
}

/// The time of all functions on a device.
fn total(snapshot: &Snapshot, device: &str) -> f64 {
    let series = snapshot.sites.iter().flat_map(|site| &site.series);
    let functions =
        series.filter(|series| series.measure != Measure::Launch && series.device == device);
    functions.filter_map(Series::total).sum()
}

fn aligned(rows: Vec<Vec<String>>) -> String {
    let mut rows = rows.into_iter();
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(rows.next().unwrap_or_default()).add_rows(rows);
    let texts = if table.column_count() > 2 { 3 } else { 1 };
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if i >= texts {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// The text without what would move a terminal's cursor or change its colours.
fn printable(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { c.escape_default().to_string() } else { c.to_string() })
        .collect()
}
