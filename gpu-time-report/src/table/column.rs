//! The columns of the table. To add one, add a variant here and an arm in each method.

use crate::marks::Printed;
use crate::own_times::{Share, Shares};
use crate::scale::Scale;
use crate::units::{self, percent, printable};
use crate::{
    CacheState, Clock, Detail, Kernel, Launches, Node, Series, Site, Snapshot, Stats, marks,
    opened, series,
};

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
    /// The standard error of an estimated total.
    Error,
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
    /// A series for a function, one of its keys or one of its launches.
    Series {
        series: &'a Series,
        label: String,
        /// The number of launches per call, which follows the label.
        launches: Option<Launches>,
        is_sampled: bool,
        calls: Option<u64>,
        /// The share of all GPU time.
        share: Option<Share>,
    },
    /// All keys of a function on one device in one cache state.
    Keyed {
        all: Vec<&'a Series>,
        label: String,
        is_sampled: bool,
        calls: Option<u64>,
        share: Option<Share>,
    },
    /// A function that has no own series, because every call was captured or none was timed.
    Untimed { label: String, calls: Option<u64> },
    /// The keys of a function that the table omits, with the number of samples, the total time and
    /// the share of their calls.
    OtherKeys {
        is_sampled: bool,
        is_bound: bool,
        keys: usize,
        samples: u64,
        total: f64,
        share: Option<Share>,
    },
    /// A sentence about the recorded calls of the series above, across the whole table.
    Opened { line: String },
    /// A kernel of the recorded calls. `is_ambiguous` if another one of the series has the same name.
    Kernel { kernel: &'a Kernel, is_ambiguous: bool },
    /// The kernels that the table omits, with their share of the series' kernel time.
    OtherKernels { kernels: usize, share: f64 },
    /// The functions that the table omits, with their share of all GPU time.
    OtherFunctions { functions: usize, share: Option<Share> },
    /// Work that only phases found.
    FromWindows { node: &'a Node, share: Option<Share> },
}

impl TableColumn {
    /// Returns the columns for a report that contains series. Leaves out columns that would be
    /// empty or have the same text in every row.
    pub fn of(snapshot: &Snapshot, detail: Detail) -> Vec<TableColumn> {
        use TableColumn::*;
        let any = |has: fn(&Series) -> bool| snapshot.all_series().any(has);
        let mut places = snapshot.all_series().map(|series| (&series.device, series.clock));
        let is_one_place = places.next().is_none_or(|first| {
            matches!(first.1, Clock::Events | Clock::Kernels) && places.all(|place| place == first)
        });
        let mut columns = vec![Function];
        columns.extend((!is_one_place).then_some(On));
        columns.extend(any(|series| series.cache != CacheState::AsFound).then_some(Cache));
        columns.extend([Calls, Samples, Median, Spread, Total]);
        let is_sampled = snapshot.sites.iter().any(Site::is_sampled);
        columns.extend((is_sampled && detail == Detail::All).then_some(Error));
        // Kernels have shares of their function's time.
        let has_shares = Shares::of(snapshot).are_known() || any(|series| series.opened() > 0);
        columns.extend((any(Series::is_gpu_time) && has_shares).then_some(Share));
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
            TableColumn::Error => marks::ERROR.to_owned(),
            TableColumn::Share => marks::SHARE.to_owned(),
            TableColumn::GbPerS => marks::GB_PER_S.to_owned(),
            TableColumn::TflopPerS => marks::TFLOP_PER_S.to_owned(),
        }
    }

    /// Returns `true` if the cells are aligned at the right.
    pub fn is_right(self) -> bool {
        !matches!(self, TableColumn::Function | TableColumn::On | TableColumn::Cache)
    }

    /// Returns the text of a cell. Empty if the column does not apply to the row.
    pub fn cell(self, row: &TableRow, units: &Units, printed: &Printed) -> String {
        self.text(row, units, printed).unwrap_or_default()
    }

    fn text(self, row: &TableRow, units: &Units, printed: &Printed) -> Option<String> {
        let series = row.series();
        Some(match self {
            TableColumn::Function => row.label(printed),
            TableColumn::On => device(row.first()?, printed),
            TableColumn::Cache => row.first()?.cache.name().to_owned(),
            TableColumn::Calls => row.calls(printed)?,
            TableColumn::Samples => units::count(row.samples()?),
            TableColumn::Median => {
                let median = units.times.text(row.stats()?.median);
                let raw = printed.mark(series.is_some_and(Series::is_raw_by_launches), marks::RAW);
                let space = if raw.is_empty() { "" } else { " " };
                format!(
                    "{raw}{space}{}{median}",
                    printed.bound(series.is_some_and(Series::is_bound))
                )
            }
            TableColumn::Spread => {
                let stats = row.stats()?;
                let unit = units.times.unit_for(stats.median);
                let is_own = unit != units.times.unit();
                let name = if is_own { format!(" {}", unit.name()) } else { String::new() };
                format!("{}–{}{name}", unit.number(stats.p5), unit.number(stats.p95))
            }
            TableColumn::Total => {
                let total = units.totals.text(row.total()?);
                let estimate = printed.mark(row.is_estimate(), marks::ESTIMATE);
                format!("{}{estimate}{total}", printed.bound(row.is_total_bound()))
            }
            TableColumn::Error => {
                if !row.is_estimate() {
                    return None;
                }
                match row.error()? {
                    Some(error) => units::share(error, row.total()?),
                    None => "?".to_owned(),
                }
            }
            TableColumn::Share => match row.share() {
                Some(share) => share.text(printed),
                None => percent(row.kernel_share()?),
            },
            TableColumn::GbPerS => {
                let bytes = series?.bytes?;
                let rate = rate(series?, bytes.gb_per_s?, printed);
                printed.mark(bytes.peak_share.is_some(), marks::GB_PER_S);
                let peak = bytes.peak_share.map(|share| format!(" ({:.0}%)", 100.0 * share));
                rate + &peak.unwrap_or_default()
            }
            TableColumn::TflopPerS => rate(series?, series?.flops?.tflop_per_s?, printed),
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
    /// Returns `true` for a row of a function, and `false` for one with a detail or a sum.
    pub fn is_function(&self) -> bool {
        match self {
            TableRow::Series { label, .. } => !label.starts_with(' '),
            TableRow::Keyed { .. } | TableRow::Untimed { .. } => true,
            _ => false,
        }
    }

    fn series(&self) -> Option<&'a Series> {
        match self {
            TableRow::Series { series, .. } => Some(series),
            _ => None,
        }
    }

    /// Returns any series of the row, which has the row's device and cache state.
    fn first(&self) -> Option<&'a Series> {
        match self {
            TableRow::Series { series, .. } => Some(series),
            TableRow::Keyed { all, .. } => all.first().copied(),
            _ => None,
        }
    }

    fn stats(&self) -> Option<&'a Stats> {
        match self {
            TableRow::Series { series, .. } => series.shown(),
            TableRow::Kernel { kernel, .. } => kernel.time_ns.as_ref(),
            _ => None,
        }
    }

    fn label(&self, printed: &Printed) -> String {
        match self {
            TableRow::Series { label, launches: Some(launches), .. } => {
                let per_call = printed.print(marks::PER_CALL);
                match launches {
                    Launches { min, max, .. } if min == max => format!("{label} {per_call}{max}"),
                    Launches { min, max, .. } => format!("{label} {per_call}{min}–{max}"),
                }
            }
            TableRow::Series { label, .. }
            | TableRow::Keyed { label, .. }
            | TableRow::Untimed { label, .. } => label.clone(),
            TableRow::OtherKeys { keys, .. } => {
                format!("  … {} more keys", units::count(*keys as u64))
            }
            TableRow::Opened { .. } => String::new(),
            TableRow::Kernel { kernel, .. } => {
                let configuration = self.configuration().unwrap_or_default();
                KERNEL_INDENT.to_owned() + &printable(&kernel.name) + &configuration
            }
            TableRow::OtherKernels { kernels, .. } => {
                format!("{KERNEL_INDENT}and {} more", units::count(*kernels as u64))
            }
            TableRow::OtherFunctions { functions, .. } => {
                format!("and {} more functions", units::count(*functions as u64))
            }
            TableRow::FromWindows { node, .. } => node.windows_name().to_owned(),
        }
    }

    /// Returns the launch configuration, which follows the name of an ambiguous kernel.
    pub fn configuration(&self) -> Option<String> {
        match self {
            TableRow::Kernel { kernel, is_ambiguous: true } => {
                let configuration = kernel.configuration();
                (!configuration.is_empty()).then(|| format!(", {configuration}"))
            }
            _ => None,
        }
    }

    fn calls(&self, printed: &Printed) -> Option<String> {
        match self {
            // The replays of a graph are not counted.
            TableRow::Series { series, .. } if series.graph => {
                Some(printed.print(marks::GRAPH).to_owned())
            }
            TableRow::Series { calls, .. }
            | TableRow::Keyed { calls, .. }
            | TableRow::Untimed { calls, .. } => calls.map(units::count),
            TableRow::Kernel { kernel, .. } => {
                let per_call = printed.print(marks::PER_CALL);
                Some(per_call.to_owned() + &opened::decimal(kernel.per_call))
            }
            _ => None,
        }
    }

    fn samples(&self) -> Option<u64> {
        match self {
            TableRow::Series { series, .. } => Some(series.samples()),
            TableRow::Keyed { all, .. } => {
                Some(series::saturating_sum(all.iter().map(|series| series.samples())))
            }
            TableRow::OtherKeys { samples, .. } => Some(*samples).filter(|samples| *samples > 0),
            TableRow::Kernel { kernel, .. } => Some(kernel.count),
            _ => None,
        }
    }

    fn total(&self) -> Option<f64> {
        match self {
            TableRow::Series { series, .. } => series.shown().and(series.total()),
            TableRow::Keyed { all, .. } => Some(series::total(all.iter().copied())),
            TableRow::OtherKeys { total, .. } => self.samples().map(|_| *total),
            TableRow::FromWindows { node, .. } => Some(node.self_ns),
            // Kernels are known only for recorded calls, but totals cover all calls.
            _ => None,
        }
    }

    /// Returns `true` if the total is extrapolated from a sample of the calls.
    fn is_estimate(&self) -> bool {
        match self {
            TableRow::Series { series, is_sampled, .. } => {
                *is_sampled && series.estimated_total_ns.is_some()
            }
            TableRow::Keyed { is_sampled, .. } | TableRow::OtherKeys { is_sampled, .. } => {
                *is_sampled
            }
            TableRow::FromWindows { .. } => true,
            _ => false,
        }
    }

    /// Returns `true` if the row's total is an upper bound.
    fn is_total_bound(&self) -> bool {
        match self {
            TableRow::Series { series, .. } => series.is_total_bound(),
            TableRow::Keyed { all, .. } => all.iter().any(|series| series.is_total_bound()),
            TableRow::OtherKeys { is_bound, .. } => *is_bound,
            TableRow::FromWindows { node, .. } => node.upper_bound,
            _ => false,
        }
    }

    /// Returns the standard error of the total, if the row has one. The inner value is `None` if
    /// the error is unknown.
    fn error(&self) -> Option<Option<f64>> {
        let all = match self {
            TableRow::Series { series, .. } => std::slice::from_ref(series),
            TableRow::Keyed { all, .. } => all,
            TableRow::FromWindows { node, .. } => return Some(node.self_error_ns),
            _ => return None,
        };
        // The samples of different keys are independent.
        let sum = |sum: f64, series: &&Series| Some(sum.hypot(series.total_error()?));
        Some(all.iter().try_fold(0.0, sum))
    }

    /// Returns the share of all GPU time.
    fn share(&self) -> Option<Share> {
        match self {
            TableRow::Series { share, .. }
            | TableRow::Keyed { share, .. }
            | TableRow::OtherKeys { share, .. }
            | TableRow::OtherFunctions { share, .. }
            | TableRow::FromWindows { share, .. } => *share,
            _ => None,
        }
    }

    /// Returns the share of the function's kernel time.
    fn kernel_share(&self) -> Option<f64> {
        match self {
            TableRow::Kernel { kernel: Kernel { share, .. }, .. }
            | TableRow::OtherKernels { share, .. } => Some(*share),
            _ => None,
        }
    }
}

/// Returns the device, followed by the clock unless CUDA events timed the row. For the host clock,
/// returns only the clock.
fn device(series: &Series, printed: &Printed) -> String {
    let with = |mark| format!("{} {}", series.shown_device(), printed.print(mark));
    match series.clock {
        Clock::Sync => with(marks::SYNC),
        Clock::Kernels => with(marks::KERNELS),
        Clock::Events => series.shown_device(),
        Clock::Host => printed.print(marks::HOST).to_owned(),
    }
}

fn rate(series: &Series, rate: f64, printed: &Printed) -> String {
    let mark = printed.mark(series.is_bound(), marks::LOWER_BOUND);
    format!("{mark}{}", units::figure(rate))
}
