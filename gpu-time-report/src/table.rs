//! The report as a table, for people.

use std::fmt;

use anstyle::{AnsiColor, Style};
use comfy_table::{CellAlignment, Table, presets};
use unicode_width::UnicodeWidthStr;

use crate::groups::{self, Group};
use crate::scale::Scale;
use crate::series;
use crate::shorten::shortened;
use crate::units::{self, printable};
use crate::{
    Clock, Clocks, Device, Launches, Measure, Process, Series, Site, Snapshot, Terminal, notes,
};

/// Columns that every table with times has.
const COLUMNS: usize = 9;
/// The digits of most times.
const DIGITS: u8 = 4;
/// How wide a name may be where no terminal has a width, and how wide on the narrowest one.
const NAME: usize = 60;
const NARROW_NAME: usize = 24;
/// How many warnings are shown.
const WARNINGS: usize = 20;

const TITLE: Style = Style::new().bold();
const NAME_OF_FUNCTION: Style = AnsiColor::Cyan.on_default().bold();
const LESS: Style = Style::new().dimmed();
const DOUBTFUL: Style = AnsiColor::Yellow.on_default();

/// Writes the table.
pub fn render(snapshot: &Snapshot, to: Terminal, f: &mut impl fmt::Write) -> fmt::Result {
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
    }
    if let Some(why) = process.off() {
        let line = format!("nothing was timed on a GPU: {}", printable(why));
        writeln!(f, "{}", to.styled(DOUBTFUL, &line))?;
    }
    let lines = lines(snapshot);
    if lines.len() > 1 {
        writeln!(f, "\n{}", fitted(lines, to))?;
    }
    let facts = notes::facts(snapshot);
    let warnings: Vec<String> = notes::warnings(snapshot).collect();
    if !facts.is_empty() || !warnings.is_empty() {
        writeln!(f)?;
    }
    for fact in facts {
        // What a word or a mark means is indented.
        let style = if fact.starts_with(' ') { LESS } else { Style::new() };
        writeln!(f, "{}", to.styled(style, &printable(&fact)))?;
    }
    for warning in notes::bounded(warnings, WARNINGS, "more warnings are in the JSON report") {
        writeln!(f, "{} {}", to.styled(DOUBTFUL, "warning:"), printable(&warning))?;
    }
    Ok(())
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
        device.driver().map(|version| format!("driver for CUDA {version}")),
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

/// A row, of which each cell may take several lines.
struct Line {
    kind: Kind,
    cells: Vec<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Header,
    Function,
    Launch,
}

/// The header, then every function that was called, by what it took, and under it its launches.
fn lines(snapshot: &Snapshot) -> Vec<Line> {
    let mut groups = groups::of(snapshot);
    // What there is of a function stays together, the group with its calls first.
    let totals: Vec<f64> = snapshot.sites.iter().map(of_site).collect();
    groups.sort_by(|a, b| {
        let [ours, theirs] =
            [a, b].map(|group| totals.get(group.site).copied().unwrap_or_default());
        theirs.total_cmp(&ours).then(a.site.cmp(&b.site))
    });
    let mut lines = Vec::new();
    if groups.iter().all(|group| group.head.is_none() && group.launches.is_empty()) {
        lines.push(Line::new(Kind::Header, ["function", "calls"]));
        for site in groups.iter().filter_map(|group| snapshot.sites.get(group.site)) {
            let cells = [printable(&site.name), site.calls.to_string()];
            lines.push(Line::new(Kind::Function, cells));
        }
        return lines;
    }
    let columns = Columns::of(snapshot);
    lines.push(Line { kind: Kind::Header, cells: columns.header() });
    for group in &groups {
        let Some(site) = snapshot.sites.get(group.site) else { continue };
        lines.extend(columns.lines(snapshot, site, group));
    }
    lines
}

/// What all calls of a function took, wherever.
fn of_site(site: &Site) -> f64 {
    let functions = site.series.iter().filter(|series| series.measure != Measure::Launch);
    series::total(functions)
}

impl Line {
    fn new<const N: usize>(kind: Kind, cells: [impl Into<String>; N]) -> Line {
        Line { kind, cells: cells.map(Into::into).into() }
    }
}

/// What all rows share.
struct Columns {
    times: Scale,
    totals: Scale,
    rates: Rates,
}

impl Columns {
    fn of(snapshot: &Snapshot) -> Columns {
        let all = || snapshot.sites.iter().flat_map(|site| &site.series);
        let medians = all().filter_map(|series| Some(series.shown()?.median));
        Columns {
            times: Scale::of(medians, DIGITS),
            totals: Scale::of(all().filter_map(Series::total), DIGITS),
            rates: Rates::of(snapshot),
        }
    }

    fn header(&self) -> Vec<String> {
        let [times, totals] = [self.times, self.totals].map(|scale| scale.unit().name());
        let (median, spread) = (format!("median {times}"), format!("p5–p95 {times}"));
        let total = format!("total {totals}");
        let names: [&str; COLUMNS] =
            ["function", "on", "cache", "calls", "samples", &median, &spread, &total, "share"];
        names.map(str::to_owned).into_iter().chain(self.rates.header().map(str::to_owned)).collect()
    }

    fn lines(&self, snapshot: &Snapshot, site: &Site, group: &Group) -> Vec<Line> {
        let calls = if group.has_calls { site.calls.to_string() } else { String::new() };
        let head = match group.head {
            Some(head) => self.row(snapshot, site, head.series, calls),
            // A function whose calls were all captured, or none timed, has no row of its own.
            None => vec![printable(&site.name), String::new(), String::new(), calls],
        };
        let mut lines = vec![Line { kind: Kind::Function, cells: head }];
        lines.extend(group.launches.iter().map(|row| {
            let cells = self.row(snapshot, site, row.series, String::new());
            Line { kind: Kind::Launch, cells }
        }));
        lines
    }

    fn row(&self, snapshot: &Snapshot, site: &Site, series: &Series, calls: String) -> Vec<String> {
        let mut row = vec![
            label(site, series),
            on(series),
            series.cache().to_owned(),
            calls,
            series.measured.to_string(),
        ];
        if let Some((stats, total)) = series.shown().zip(series.total()) {
            let unit = self.times.unit_for(stats.median);
            let mark = if series.upper_bound { notes::UPPER_BOUND } else { "" };
            // Beside the second line of a sum's label there is room.
            let raw = if series.is_raw_by_launches() {
                format!("\n{}", notes::RAW)
            } else {
                String::new()
            };
            row.push(format!("{mark}{}{raw}", self.times.text(stats.median)));
            row.push(format!("{}–{}", unit.number(stats.p5), unit.number(stats.p95)));
            let text = self.totals.text(total);
            let is_estimate = site.is_sampled() && series.estimated_total_ns.is_some();
            let mark = if is_estimate { notes::ESTIMATE } else { "" };
            let error = series.estimated_total_error_ns.filter(|_| is_estimate);
            let error = error
                .map_or_else(String::new, |error| format!("\n±{}", units::share(error, total)));
            row.push(format!("{mark}{text}{error}"));
            // Nodes are in no function's time, and not every replay was seen.
            if !series.graph {
                row.push(units::share(total, self::total(snapshot, series)));
            }
        }
        self.rates.add(series, &mut row);
        row
    }
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
    let all = snapshot.sites.iter().flat_map(|site| &site.series);
    let functions = all.filter(|series| {
        let is_same = series.device == row.device && series.clock == row.clock;
        is_same && series.measure != Measure::Launch
    });
    series::total(functions)
}

/// The table, with names that are as wide as they may be.
fn fitted(mut lines: Vec<Line>, to: Terminal) -> String {
    let width = |text: &str| text.lines().map(UnicodeWidthStr::width).max().unwrap_or_default();
    let mut text = aligned(&lines);
    let names: Vec<String> = lines.iter().filter_map(|line| line.cells.first().cloned()).collect();
    let widest = names.iter().map(|name| width(name)).max().unwrap_or_default();
    let room = to
        .columns
        .map_or(NAME, |columns| (widest + columns).saturating_sub(width(&text)).max(NARROW_NAME));
    if widest > room {
        let short = shortened(names.iter().flat_map(|name| name.lines()), room);
        for (line, name) in lines.iter_mut().zip(&names) {
            let parts: Vec<&str> =
                name.lines().filter_map(|part| short.get(part).map(String::as_str)).collect();
            if let Some(cell) = line.cells.first_mut() {
                *cell = parts.join("\n");
            }
        }
        text = aligned(&lines);
    }
    if to.colours { coloured(&lines, &text) } else { text }
}

fn aligned(lines: &[Line]) -> String {
    let (header, rows) =
        lines.split_first().map_or((None, lines), |(first, rest)| (Some(first), rest));
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_header(header.map(|line| line.cells.clone()).unwrap_or_default())
        .add_rows(rows.iter().map(|line| line.cells.clone()));
    let texts = if table.column_count() > 2 { 3 } else { 1 };
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if i >= texts {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table.trim_fmt()
}

/// The lines of the table, which they were laid out as, in colours.
fn coloured(lines: &[Line], text: &str) -> String {
    let paint = |style: Style, text: &str| format!("{style}{text}{style:#}");
    let mut shown = text.lines();
    let mut coloured = Vec::new();
    for Line { kind, cells } in lines {
        let height = cells.iter().map(|cell| cell.lines().count()).max().unwrap_or_default();
        let label = cells.first().and_then(|cell| cell.lines().next()).unwrap_or_default();
        for (i, line) in shown.by_ref().take(height).enumerate() {
            coloured.push(match (kind, i) {
                (Kind::Header, _) => paint(TITLE, line),
                (_, 1..) => paint(LESS, line),
                (kind, 0) => {
                    let (label, figures) = line.split_at_checked(label.len()).unwrap_or((line, ""));
                    let is_function = *kind == Kind::Function;
                    let label =
                        if is_function { paint(NAME_OF_FUNCTION, label) } else { label.to_owned() };
                    // The mark stands before the median alone.
                    let bound = cells.get(5).and_then(|cell| cell.lines().next());
                    let bound = bound.filter(|cell| cell.starts_with(notes::UPPER_BOUND));
                    label
                        + &match bound {
                            Some(cell) => figures.replacen(cell, &paint(DOUBTFUL, cell), 1),
                            None => figures.to_owned(),
                        }
                }
            });
        }
    }
    coloured.join("\n")
}

impl Terminal {
    fn styled(self, style: Style, text: &str) -> String {
        if self.colours { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}
