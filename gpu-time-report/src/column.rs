//! The columns of functions in the table, on the page and in CSV. To add one, add a variant to [`Column`], and an arm in each
//! of its methods.

use crate::analysis::Analysis;
use crate::figure::{Bound, Figure};
use crate::kinds::named;
use crate::marks::{Mark, Printed};
use crate::row::Row;
use crate::scale::Scale;
use crate::units::{self, Unit, percent, printable};
use crate::{CacheState, Clock, Series, Site};

named! {
    /// A column, in order from left to right.
    pub enum Column {
        Function = "function",
        Key = "key",
        On = "on",
        Cache = "cache",
        Calls = "calls",
        Samples = "samples",
        Median = "median",
        P5 = "p5",
        P95 = "p95",
        /// From the 5th to the 95th percentile.
        Spread = "p5–p95",
        /// The function's own GPU time, without that of the functions that it calls.
        Own = "self",
        Total = "total",
        /// The standard error of an estimated total.
        Error = "±",
        Share = "share",
        GbPerS = "GB/s",
        TflopPerS = "TFLOP/s",
    }
}

/// The part of a function's total from which on its own time is all of it. The two may come from other samples.
const ALL: f64 = 0.999;

/// Values shared by the cells of all rows.
pub struct Sheet<'t, 'a> {
    pub analysis: &'t Analysis<'a>,
    pub printed: &'t Printed,
    /// The unit for the times of single calls, chosen so that most rows are readable.
    pub times: Scale,
    totals: Scale,
}

/// The content of a cell.
#[derive(Default)]
pub struct Cell {
    pub text: String,
    /// A word that qualifies the text.
    pub chip: Option<&'static str>,
    /// A figure that follows in parentheses or in small letters.
    pub note: Option<String>,
    /// The figure as CSV has it, by which the page sorts.
    pub value: Option<f64>,
}

impl Column {
    /// Returns the columns for a report, without those that would be empty or have the same text in every row.
    pub fn of(analysis: &Analysis) -> impl Iterator<Item = Column> {
        let Analysis { snapshot, shares, .. } = analysis;
        let any = |has: fn(&Series) -> bool| snapshot.all_series().any(has);
        let is_shown = move |column: &Column| match column {
            Column::Key => any(|series| series.key.is_some()),
            Column::On => {
                let mut places = snapshot.all_series().map(|series| (&series.device, series.clock));
                let first = places.next();
                first.is_some_and(|first| {
                    !matches!(first.1, Clock::Events | Clock::Kernels)
                        || places.any(|place| place != first)
                })
            }
            Column::Cache => any(|series| series.cache != CacheState::AsFound),
            Column::Error => {
                let is_estimate = |row: &Row| row.total.is_some_and(Figure::is_estimate);
                snapshot.sites.iter().any(Site::is_sampled)
                    || Row::beside_functions(shares).iter().any(is_estimate)
            }
            Column::Own => {
                let is_part = |function: (usize, &Site), series: &Series| {
                    let row = Row::of_series(function, series, shares, String::new());
                    let times = row.own.zip(row.total);
                    times.is_some_and(|(own, total)| own.value < ALL * total.value)
                };
                let mut sites = snapshot.sites.iter().enumerate();
                sites.any(|(at, site)| site.series.iter().any(|series| is_part((at, site), series)))
            }
            Column::Share => any(Series::is_gpu_time),
            Column::GbPerS => any(|series| series.bytes.is_some()),
            Column::TflopPerS => any(|series| series.flops.is_some()),
            _ => true,
        };
        Column::ALL.into_iter().filter(is_shown)
    }

    /// Returns the unit of most figures, or nothing.
    pub fn unit(self, sheet: &Sheet) -> &'static str {
        match self {
            Column::Median | Column::P5 | Column::P95 | Column::Spread => sheet.times.unit().name(),
            Column::Own | Column::Total => sheet.totals.unit().name(),
            _ => "",
        }
    }

    /// Returns the name of a column with figures in CSV. Times there are in nanoseconds, and shares are fractions.
    pub fn csv(self) -> Option<&'static str> {
        Some(match self {
            Column::Calls => "calls",
            Column::Samples => "samples",
            Column::Median => "median_ns",
            Column::P5 => "p5_ns",
            Column::P95 => "p95_ns",
            Column::Own => "self_ns",
            Column::Total => "total_ns",
            Column::Error => "total_error",
            Column::Share => "share",
            Column::GbPerS => "gb_per_s",
            Column::TflopPerS => "tflop_per_s",
            _ => return None,
        })
    }

    /// Returns `true` if the cells are aligned at the right.
    pub fn is_right(self) -> bool {
        !matches!(self, Column::Function | Column::Key | Column::On | Column::Cache)
    }

    /// Returns a cell, or `None` if the column does not apply to the row.
    pub fn cell(self, row: &Row, sheet: &Sheet) -> Option<Cell> {
        let Sheet { printed, times, .. } = sheet;
        let time = |ns: f64| Cell::time(times.text(ns), ns);
        Some(match self {
            Column::Function => {
                let launches = row.launches.map(|launches| launches.range());
                let launches =
                    launches.map(|all| format!(" {}{all}", printed.print(Mark::PerCall)));
                Cell::text(row.label.clone() + &launches.unwrap_or_default())
            }
            Column::Key => Cell::text(printable(row.series?.key.as_deref()?)),
            Column::On => {
                let place = row.place?;
                let (text, chip) = match place.clock {
                    Clock::Events => (place.shown_device(), None),
                    Clock::Host => (printed.print(Mark::Host).to_owned(), None),
                    Clock::Sync => (place.shown_device(), Some(printed.print(Mark::Sync))),
                    Clock::Kernels => (place.shown_device(), Some(printed.print(Mark::Kernels))),
                };
                Cell { text, chip, ..Cell::default() }
            }
            Column::Cache => Cell::text(row.place?.cache.name().to_owned()),
            // The replays of a graph are not counted.
            Column::Calls if row.series.is_some_and(|series| series.graph) => {
                Cell::text(printed.print(Mark::Graph).to_owned())
            }
            Column::Calls => match row.kernel {
                Some(kernel) => {
                    let per_call = printed.print(Mark::PerCall);
                    Cell::text(per_call.to_owned() + &units::decimal(kernel.per_call))
                }
                None => Cell::count(row.calls?),
            },
            Column::Samples => {
                let mut cell = Cell::count(row.samples?);
                cell.text += printed.mark(row.is_missing_some, Mark::Missing);
                cell
            }
            Column::Median => {
                let median = row.stats?.median;
                let is = |is: fn(&Series) -> bool| row.series.is_some_and(is);
                // Its calls made different numbers of launches.
                let is_raw = |of: &Series| of.net_ns.is_none() && of.net_sum_ns.is_some();
                let chip = is(is_raw).then(|| printed.print(Mark::Raw));
                let figure = Figure::new(median, Bound::at_most(is(Series::is_bound)));
                let (unit, name) = unit_of_row(times, median);
                let text = figure.print(&(unit.number(median) + &name), printed);
                Cell { chip, ..Cell::time(text, median) }
            }
            Column::P5 => time(row.stats?.p5),
            Column::P95 => time(row.stats?.p95),
            Column::Spread => {
                let stats = row.stats?;
                if stats.max <= 0.0 {
                    return Some(Cell::text(units::NOTHING.to_owned()));
                }
                let (unit, name) = unit_of_row(times, stats.median);
                let [p5, p95] = [stats.p5, stats.p95].map(|ns| unit.number(ns));
                Cell::text(format!("{p5}–{p95}{name}"))
            }
            Column::Own => time_of_all(row.own?, sheet),
            Column::Total => time_of_all(row.total?, sheet),
            Column::Error => {
                let total = row.total.filter(|total| total.is_estimate())?;
                match total.error {
                    Some(error) => Cell {
                        value: Some(error / total.value).filter(|of_total| of_total.is_finite()),
                        ..Cell::text(units::share(error, total.value))
                    },
                    None => Cell::text("?".to_owned()),
                }
            }
            Column::Share => match row.share {
                Some(share) => {
                    printed.print(Mark::Share);
                    Cell::number(share.print(&percent(share.value), printed), share.value)
                }
                None => Cell::text(percent(row.kernel_share?)),
            },
            Column::GbPerS => {
                let bytes = row.series?.bytes?;
                let note = bytes.peak_share.map(|share| format!("{:.0}%", 100.0 * share));
                printed.mark(note.is_some(), Mark::GbPerS);
                Cell { note, ..rate(row, bytes.gb_per_s?, printed) }
            }
            Column::TflopPerS => rate(row, row.series?.flops?.tflop_per_s?, printed),
        })
    }
}

impl<'t, 'a> Sheet<'t, 'a> {
    /// Chooses units in which most times have this number of digits.
    pub fn of(analysis: &'t Analysis<'a>, printed: &'t Printed, digits: u8) -> Sheet<'t, 'a> {
        let snapshot = analysis.snapshot;
        let medians = snapshot.all_series().filter_map(|series| Some(series.shown()?.median));
        Sheet {
            printed,
            times: Scale::of(medians, digits),
            totals: Scale::of(snapshot.all_series().filter_map(Series::total), digits),
            analysis,
        }
    }
}

impl Cell {
    fn text(text: String) -> Cell {
        Cell { text, ..Cell::default() }
    }

    fn number(text: String, value: f64) -> Cell {
        Cell { value: Some(value), ..Cell::text(text) }
    }

    /// A time of 0 is that of calls in which nothing ran.
    fn time(text: String, ns: f64) -> Cell {
        Cell::number(if ns > 0.0 { text } else { units::NOTHING.to_owned() }, ns)
    }

    fn count(count: u64) -> Cell {
        Cell::number(units::count(count), count as f64)
    }
}

/// Returns the unit of a row's times, in which each has the same digits, and the name that follows them if it is not that of
/// the column.
fn unit_of_row(times: &Scale, median_ns: f64) -> (Unit, String) {
    let unit = times.unit_for(median_ns);
    let is_own = unit != times.unit();
    (unit, if is_own { format!(" {}", unit.name()) } else { String::new() })
}

/// Returns the time of all calls.
fn time_of_all(time: Figure, sheet: &Sheet) -> Cell {
    Cell::time(time.print(&sheet.totals.text(time.value), sheet.printed), time.value)
}

fn rate(row: &Row, rate: f64, printed: &Printed) -> Cell {
    let is_bound = row.series.is_some_and(Series::is_bound);
    let bound = if is_bound { Bound::AtLeast } else { Bound::Exact };
    Cell::number(Figure::new(rate, bound).print(&units::figure(rate), printed), rate)
}
