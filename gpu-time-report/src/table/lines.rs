//! The lines of the table: what stands in their cells.

use super::keys::Hidden;
use crate::groups::{self, Group};
use crate::scale::Scale;
use crate::series;
use crate::units::{self, printable};
use crate::{Clock, Launches, Measure, Series, Site, Snapshot, notes};

/// Columns that every table with times has.
const COLUMNS: usize = 9;
/// The digits of most times.
const DIGITS: u8 = 4;

/// A row, of which each cell may take several lines.
pub struct Line {
    pub kind: Kind,
    pub cells: Vec<String>,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Header,
    Function,
    Launch,
}

impl Line {
    fn new<const N: usize>(kind: Kind, cells: [impl Into<String>; N]) -> Line {
        Line { kind, cells: cells.map(Into::into).into() }
    }
}

/// The header, then every function that was called, by what it took, and under it its launches.
pub fn lines(snapshot: &Snapshot) -> Vec<Line> {
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
    for groups in groups.chunk_by(|a, b| a.site == b.site) {
        let site = groups.first().and_then(|group| snapshot.sites.get(group.site));
        let Some(site) = site else { continue };
        let hidden = Hidden::of(groups);
        for group in groups {
            lines.extend(columns.lines(snapshot, site, group, &hidden));
        }
        if hidden.len() > 0 {
            lines.push(columns.rest(site, groups, &hidden));
        }
    }
    lines
}

/// What all calls of a function took, wherever.
fn of_site(site: &Site) -> f64 {
    let functions = site.series.iter().filter(|series| series.measure != Measure::Launch);
    series::total(functions)
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

    fn lines(&self, snapshot: &Snapshot, site: &Site, group: &Group, hidden: &Hidden) -> Vec<Line> {
        if group.head.is_some_and(|head| hidden.has(head.series)) {
            return Vec::new();
        }
        let calls = if group.has_calls { site.calls.to_string() } else { String::new() };
        let head = match group.head {
            Some(head) => self.row(snapshot, site, head.series, calls),
            // A function whose calls were all captured, or none timed, has no row of its own.
            None => vec![printable(&site.name), String::new(), String::new(), calls],
        };
        let mut lines = vec![Line { kind: Kind::Function, cells: head }];
        let launches = group.launches.iter().filter(|row| !hidden.has(row.series));
        lines.extend(launches.map(|row| {
            let cells = self.row(snapshot, site, row.series, String::new());
            Line { kind: Kind::Launch, cells }
        }));
        lines
    }

    /// What is not shown of a function.
    fn rest(&self, site: &Site, groups: &[Group], hidden: &Hidden) -> Line {
        let label = format!("  … {} more keys", hidden.len());
        let (samples, total) = hidden.sum(groups);
        if samples == 0 {
            return Line::new(Kind::Launch, [label]);
        }
        let mark = if site.is_sampled() { notes::ESTIMATE } else { "" };
        let total = format!("{mark}{}", self.totals.text(total));
        let samples = samples.to_string();
        Line::new(Kind::Launch, [&*label, "", "", "", &samples, "", "", &total])
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
            let is_own = unit != self.times.unit();
            let own = if is_own { format!(" {}", unit.name()) } else { String::new() };
            row.push(format!("{}–{}{own}", unit.number(stats.p5), unit.number(stats.p95)));
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
