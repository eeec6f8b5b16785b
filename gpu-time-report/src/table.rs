//! The report as a table, for people.

use std::{fmt, iter};

use comfy_table::{CellAlignment, Table, presets};

use crate::units::{self, Unit, printable};
use crate::{Clock, Clocks, Device, Launches, Measure, Process, Series, Site, Snapshot, notes};

/// Columns that every table with times has.
const COLUMNS: usize = 9;

/// Writes the table.
pub fn render(snapshot: &Snapshot, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let process = &snapshot.process;
    writeln!(
        f,
        "gpu-time {}: {}, {} from {}",
        printable(&process.version),
        source(process),
        units::time(process.wall_ns as f64),
        printable(&process.started)
    )?;
    for device in &snapshot.devices {
        writeln!(f, "{}", printable(&device_line(device, has_bytes(snapshot, &device.id))))?;
        if let Some(line) = device.clocks.and_then(|clocks| health_line(device, clocks)) {
            writeln!(f, "  {}", printable(&line))?;
        }
    }
    if let Some(why) = process.off() {
        writeln!(f, "nothing was timed on a GPU: {}", printable(why))?;
    }
    let rows = rows(snapshot);
    if rows.len() > 1 {
        writeln!(f, "\n{}", aligned(rows))?;
    }
    let mut notes = notes::facts(snapshot);
    notes.extend(notes::warnings(snapshot).map(|warning| format!("warning: {warning}")));
    if !notes.is_empty() {
        writeln!(f)?;
    }
    notes.iter().try_for_each(|note| writeln!(f, "{}", printable(note)))
}

/// The process, or how many there are in a merged report.
fn source(process: &Process) -> String {
    let name = printable(&process.name);
    match process.merged.len() {
        0 => format!("{name} (pid {})", process.pid),
        1 => format!("1 report of {name}"),
        count => format!("{count} reports of {name} merged"),
    }
}

/// Whether a rate is to be compared with the device's peak.
fn has_bytes(snapshot: &Snapshot, device: &str) -> bool {
    let mut series = snapshot.sites.iter().flat_map(|site| &site.series);
    series.any(|series| series.device == device && series.bytes.is_some())
}

fn device_line(device: &Device, with_peak: bool) -> String {
    let Device { event_step_ns, event_floor_ns, event_bias_ns, .. } = device;
    let part = |what: &str, ns: &Option<f64>| ns.map(|ns| format!("{what} {}", units::time(ns)));
    let error = device.event_bias_error_ns.map(|ns| format!(", ±{}", units::time(ns)));
    let source = device
        .event_bias_source()
        .map(|source| format!(" ({source}{})", error.unwrap_or_default()));
    let parts = [
        device.driver().map(|version| format!("driver {version}")),
        part("event step", event_step_ns),
        part("empty pair", event_floor_ns),
        part("bias", event_bias_ns).map(|bias| bias + &source.unwrap_or_default()),
        device.peak_gb_per_s.filter(|_| with_peak).map(|peak| format!("peak {peak:.0} GB/s")),
    ];
    let name = format!("{}: {}", device.id, device.name);
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
    let header: [&str; COLUMNS] =
        ["function", "on", "cache", "calls", "samples", "median", "p5–p95", "total", "share"];
    let rates = Rates::of(snapshot);
    let mut rows = vec![header.into_iter().chain(rates.header()).map(str::to_owned).collect()];
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
            let mut row = row(site, series, calls, total(snapshot, series));
            rates.add(series, &mut row);
            rows.push(row);
        }
    }
    rows
}

fn row(site: &Site, series: &Series, calls: String, device_total: f64) -> Vec<String> {
    let mut row = vec![
        label(site, series),
        on(series),
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
        row.push(match series.estimated_total_error_ns.filter(|_| site.is_sampled()) {
            None => units::time(total),
            Some(error) => {
                format!(
                    "{}{}\n±{}",
                    notes::ESTIMATE,
                    units::time(total),
                    units::share(error, total)
                )
            }
        });
        // Nodes are in no function's time, and not every replay was seen.
        if !series.graph {
            row.push(units::share(total, device_total));
        }
    }
    row
}

/// The columns of rates that any row has.
struct Rates {
    bytes: bool,
    flops: bool,
}

impl Rates {
    fn of(snapshot: &Snapshot) -> Rates {
        let any =
            |has: fn(&Series) -> bool| snapshot.sites.iter().flat_map(|site| &site.series).any(has);
        Rates { bytes: any(|s| s.bytes.is_some()), flops: any(|s| s.flops.is_some()) }
    }

    fn header(&self) -> impl Iterator<Item = &'static str> {
        [(self.bytes, notes::GB_PER_S), (self.flops, notes::TFLOP_PER_S)]
            .into_iter()
            .filter_map(|(any, name)| any.then_some(name))
    }

    fn add(&self, series: &Series, row: &mut Vec<String>) {
        let mark = if series.upper_bound { notes::LOWER_BOUND } else { "" };
        let rate = |rate: f64| format!("{mark}{}", units::figure(rate));
        // A row without times ends before its share.
        row.resize(COLUMNS, String::new());
        if self.bytes {
            let bytes = series.bytes.and_then(|bytes| Some((bytes.gb_per_s?, bytes.peak_share)));
            row.push(bytes.map_or_else(String::new, |(gb_per_s, peak_share)| {
                let peak = peak_share.map(|share| format!(" ({:.0}%)", 100.0 * share));
                rate(gb_per_s) + &peak.unwrap_or_default()
            }));
        }
        if self.flops {
            let flops = series.flops.and_then(|flops| flops.tflop_per_s);
            row.push(flops.map_or_else(String::new, rate));
        }
    }
}

/// The device, and how it was timed if not by what times most of its rows.
fn on(series: &Series) -> String {
    match series.clock {
        Clock::Sync => format!("{} {}", printable(&series.device), notes::SYNC),
        Clock::Events | Clock::Host => printable(&series.device),
    }
}

fn label(site: &Site, series: &Series) -> String {
    let key = series.key().map(|key| format!("\n  [{}]", printable(key))).unwrap_or_default();
    match (&series.launch, series.launches) {
        (Some(launch), _) => {
            let graph = if series.graph { "\n    in graphs" } else { "" };
            format!("  {}{key}{graph}", printable(&launch.label()))
        }
        (None, Some(launches)) => {
            format!("{}{key}\n  {}", printable(&site.name), sum_of(launches))
        }
        (None, None) => printable(&site.name) + &key,
    }
}

/// How many launches a call adds up.
pub fn sum_of(Launches { min, max, .. }: Launches) -> String {
    match (min, max) {
        (1, 1) => "sum of 1 launch".to_owned(),
        _ if min == max => format!("sum of {max} launches"),
        _ => format!("sum of {min}–{max} launches"),
    }
}

/// The time of all functions on the device of this row, by the same clock.
pub fn total(snapshot: &Snapshot, row: &Series) -> f64 {
    let series = snapshot.sites.iter().flat_map(|site| &site.series);
    let functions = series.filter(|series| {
        let is_same = series.device == row.device && series.clock == row.clock;
        is_same && series.measure != Measure::Launch
    });
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
