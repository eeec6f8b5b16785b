//! The columns of the table. To add one, add a variant here and an arm in each method.

use comfy_table::CellAlignment;

use crate::scale::Scale;
use crate::units::{self, printable};
use crate::{Clock, Kernel, Series, Site, Snapshot, Stats, marks, opened};

/// The number of digits shown for most times.
const DIGITS: u8 = 4;

/// Precedes the name of a kernel.
pub const KERNEL_INDENT: &str = "    ";

/// A column, in order from left to right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableColumn {
    Function,
    On,
    Cache,
    Calls,
    Samples,
    Median,
    Spread,
    Total,
    Share,
    GbPerS,
    TflopPerS,
}

/// The units for the columns that contain times, chosen so that most rows are readable.
pub struct Units {
    times: Scale,
    totals: Scale,
}

/// The subject of a table row.
pub enum TableRow<'a> {
    /// A series for a function or one of its launches.
    Series { snapshot: &'a Snapshot, site: &'a Site, series: &'a Series, calls: Option<u64> },
    /// A function that has no own series, because every call was captured or none was timed.
    Untimed { site: &'a Site, calls: Option<u64> },
    /// The keys of a function that the table omits, with the number of samples and the total time
    /// of their calls.
    OtherKeys { site: &'a Site, keys: usize, samples: u64, total: f64 },
    /// A sentence about the opened calls of the series above, as wide as the table.
    Opened { line: String },
    /// A kernel of the opened calls. `is_ambiguous` if another one of the series has its name.
    Kernel { kernel: &'a Kernel, is_ambiguous: bool },
    /// The kernels that the table omits, with their share of the series' kernel time.
    OtherKernels { kernels: usize, share: f64 },
}

impl TableColumn {
    /// Returns the columns for a report that contains series. Rates have a column only if any row
    /// has one.
    pub fn of(snapshot: &Snapshot) -> Vec<TableColumn> {
        use TableColumn::*;
        let any = |has: fn(&Series) -> bool| snapshot.all_series().any(has);
        let mut columns = vec![Function, On, Cache, Calls, Samples, Median, Spread, Total, Share];
        columns.extend(any(|series| series.bytes.is_some()).then_some(GbPerS));
        columns.extend(any(|series| series.flops.is_some()).then_some(TflopPerS));
        columns
    }

    pub fn header(self, units: &Units) -> String {
        let [times, totals] = [units.times, units.totals].map(|scale| scale.unit().name());
        match self {
            TableColumn::Function => "function".to_owned(),
            TableColumn::On => "on".to_owned(),
            TableColumn::Cache => "cache".to_owned(),
            TableColumn::Calls => "calls".to_owned(),
            TableColumn::Samples => "samples".to_owned(),
            TableColumn::Median => format!("median {times}"),
            TableColumn::Spread => format!("p5–p95 {times}"),
            TableColumn::Total => format!("total {totals}"),
            TableColumn::Share => "share".to_owned(),
            TableColumn::GbPerS => marks::GB_PER_S.to_owned(),
            TableColumn::TflopPerS => marks::TFLOP_PER_S.to_owned(),
        }
    }

    pub fn alignment(self) -> CellAlignment {
        match self {
            TableColumn::Function | TableColumn::On | TableColumn::Cache => CellAlignment::Left,
            _ => CellAlignment::Right,
        }
    }

    /// Returns the text of a cell. Empty if the column does not apply to the row.
    pub fn cell(self, row: &TableRow, units: &Units) -> String {
        self.text(row, units).unwrap_or_default()
    }

    fn text(self, row: &TableRow, units: &Units) -> Option<String> {
        let series = row.series();
        Some(match self {
            TableColumn::Function => row.label(),
            TableColumn::On => device(series?),
            TableColumn::Cache => series?.cache().to_owned(),
            TableColumn::Calls => row.calls()?,
            TableColumn::Samples => row.samples()?.to_string(),
            TableColumn::Median => {
                let is_bound = series.is_some_and(|series| series.upper_bound);
                let is_raw = series.is_some_and(Series::is_raw_by_launches);
                let mark = if is_bound { marks::UPPER_BOUND } else { "" };
                let median = format!("{mark}{}", units.times.text(row.stats()?.median));
                // The second line of a sum's label leaves space for the mark.
                if is_raw { median + "\n" + marks::RAW } else { median }
            }
            TableColumn::Spread => {
                let stats = row.stats()?;
                let unit = units.times.unit_for(stats.median);
                let is_own = unit != units.times.unit();
                let name = if is_own { format!(" {}", unit.name()) } else { String::new() };
                format!("{}–{}{name}", unit.number(stats.p5), unit.number(stats.p95))
            }
            TableColumn::Total => {
                let total = row.total()?;
                let is_estimate = row.is_estimate();
                let mark = if is_estimate { marks::ESTIMATE } else { "" };
                let error = series.and_then(|series| series.estimated_total_error_ns);
                let error = error.filter(|_| is_estimate);
                let error = error.map(|error| format!("\n±{}", units::share(error, total)));
                let is_unknown = series.is_some_and(|series| series.unknown_error.is_some());
                let error = error.or(is_unknown.then(|| "\n±?".to_owned()));
                format!("{mark}{}{}", units.totals.text(total), error.unwrap_or_default())
            }
            TableColumn::Share => match row {
                // A graph node's time belongs to no function, and not every replay was sampled.
                TableRow::Series { snapshot, series, .. } if !series.graph => {
                    let own = series.shown().and(series.own_total())?;
                    units::share(own, snapshot.total_beside(series))
                }
                TableRow::Kernel { kernel: Kernel { share, .. }, .. }
                | TableRow::OtherKernels { share, .. } => units::share(*share, 1.0),
                _ => return None,
            },
            TableColumn::GbPerS => {
                let bytes = series?.bytes?;
                let peak = bytes.peak_share.map(|share| format!(" ({:.0}%)", 100.0 * share));
                rate(series?, bytes.gb_per_s?) + &peak.unwrap_or_default()
            }
            TableColumn::TflopPerS => rate(series?, series?.flops?.tflop_per_s?),
        })
    }
}

impl Units {
    pub fn of(snapshot: &Snapshot) -> Units {
        let medians = snapshot.all_series().filter_map(|series| Some(series.shown()?.median));
        Units {
            times: Scale::of(medians, DIGITS),
            totals: Scale::of(snapshot.all_series().filter_map(Series::total), DIGITS),
        }
    }
}

impl<'a> TableRow<'a> {
    /// Returns `true` for a row that belongs to the function above it.
    pub fn is_below_function(&self) -> bool {
        match self {
            TableRow::Series { series, .. } => series.launch.is_some(),
            TableRow::Untimed { .. } => false,
            _ => true,
        }
    }

    fn series(&self) -> Option<&'a Series> {
        match self {
            TableRow::Series { series, .. } => Some(series),
            _ => None,
        }
    }

    fn stats(&self) -> Option<&'a Stats> {
        match self {
            TableRow::Series { series, .. } => series.shown(),
            TableRow::Kernel { kernel, .. } => kernel.time_ns(),
            _ => None,
        }
    }

    fn label(&self) -> String {
        match self {
            TableRow::Series { site, series, .. } => label(site, series),
            TableRow::Untimed { site, .. } => printable(&site.name),
            TableRow::OtherKeys { keys, .. } => format!("  … {keys} more keys"),
            TableRow::Opened { .. } => String::new(),
            TableRow::Kernel { kernel, is_ambiguous } => {
                let name = KERNEL_INDENT.to_owned() + &printable(&kernel.name);
                if *is_ambiguous { name + "\n      " + &kernel.configuration() } else { name }
            }
            TableRow::OtherKernels { kernels, .. } => format!("{KERNEL_INDENT}and {kernels} more"),
        }
    }

    fn calls(&self) -> Option<String> {
        match self {
            TableRow::Series { calls, .. } | TableRow::Untimed { calls, .. } => {
                calls.map(|calls| calls.to_string())
            }
            TableRow::Kernel { kernel, .. } => {
                Some(marks::PER_CALL.to_owned() + &opened::decimal(kernel.per_call))
            }
            _ => None,
        }
    }

    fn samples(&self) -> Option<u64> {
        match self {
            TableRow::Series { series, .. } => Some(series.samples()),
            TableRow::OtherKeys { samples, .. } => Some(*samples).filter(|samples| *samples > 0),
            TableRow::Kernel { kernel, .. } => Some(kernel.count),
            _ => None,
        }
    }

    fn total(&self) -> Option<f64> {
        match self {
            TableRow::Series { series, .. } => series.shown().and(series.total()),
            TableRow::OtherKeys { total, .. } => self.samples().map(|_| *total),
            // Kernels are only known for opened calls, and totals are of all calls.
            _ => None,
        }
    }

    /// Returns `true` if the total is extrapolated from a sample of the calls.
    fn is_estimate(&self) -> bool {
        match self {
            TableRow::Series { site, series, .. } => {
                site.is_sampled() && series.estimated_total_ns.is_some()
            }
            TableRow::OtherKeys { site, .. } => site.is_sampled(),
            _ => false,
        }
    }
}

/// Returns the device, followed by the clock if it differs from the one used for most rows on the
/// device.
fn device(series: &Series) -> String {
    match series.clock {
        Clock::Sync => format!("{} {}", printable(&series.device), marks::SYNC),
        Clock::Kernels => format!("{} {}", printable(&series.device), marks::KERNELS),
        Clock::Events => printable(&series.device),
        Clock::Host => marks::HOST.to_owned(),
    }
}

fn label(site: &Site, series: &Series) -> String {
    let key = series.key().map(|key| format!("\n  [{}]", printable(key))).unwrap_or_default();
    match (&series.launch, series.launches) {
        (Some(launch), _) => {
            let graph = if series.graph { "\n    in graphs" } else { "" };
            format!("  {}{key}{graph}", printable(&launch.label()))
        }
        (None, Some(launches)) => format!("{}{key}\n  {}", printable(&site.name), launches.label()),
        (None, None) => printable(&site.name) + &key,
    }
}

fn rate(series: &Series, rate: f64) -> String {
    let mark = if series.upper_bound { marks::LOWER_BOUND } else { "" };
    format!("{mark}{}", units::figure(rate))
}
