//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

use crate::compare::{FailOn, Share};

/// Shows, merges and compares the JSON reports of gpu-time, and checks whether a machine is ready
/// for measuring.
///
/// A program with `#[gpu_timed]` functions writes such a report if GPU_TIME_REPORT=json:PATH is
/// set.
#[derive(Parser)]
#[command(name = "gpu-time", version)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand)]
pub enum Command {
    /// Shows reports as the table that the program would have printed.
    ///
    /// As JSON, each of several reports is printed on a line of its own. As CSV, several reports
    /// become one table, whose first column, `report`, names the file.
    Show {
        /// JSON reports.
        #[arg(required = true, value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
        /// The output format.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// Turns a report into a self-contained HTML page.
    Html {
        /// A JSON report, which may be a merged one.
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The file to write, or `-` for stdout, which is the default.
        #[arg(short, long, value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
    },
    /// Merges the reports of several processes, runs or machines into one.
    ///
    /// Functions are matched by name, file and line. Their series are matched by device, launch,
    /// measure, key, cache state, clock, and whether they were measured in a graph. Devices with
    /// the same id but different names or drivers are kept apart: their ids become cuda:0/1,
    /// cuda:0/2, ordered by name and driver.
    ///
    /// Counts, sums, minima and maxima are exact. Means and standard deviations are exact except
    /// for rounding. Percentiles and the confidence interval of the median are computed from the
    /// merged histograms, at their resolution; they are never averaged. Net times are the raw times
    /// of each report minus that report's bias; where biases differ, the error of net percentiles
    /// is up to twice the histogram resolution. If the work per call varies, the rate is total work
    /// over total time, where each report's time is derived from its own rate. Values on which the
    /// reports disagree are left out. If any report has fed samples of a series, the statistics of
    /// that series cover fed samples only, as in the report of a single process.
    ///
    /// A report that two of the files contain is refused, because it would be counted twice. If a
    /// process wrote several reports while it ran, merge only the last one: each contains the
    /// samples of those before it.
    Merge {
        /// JSON reports.
        #[arg(required = true, value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
        /// The file to write, or `-` for stdout, which is the default.
        #[arg(short, long, value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
    },
    /// Compares the medians of two reports; exits with 1 if any series became slower.
    ///
    /// For each series in both reports, prints the change of the median with its 95 % confidence
    /// interval and a verdict. Net medians are compared where both reports have them. The interval
    /// is computed from the intervals of the two medians on a logarithmic scale (MOVER, Zou and
    /// Donner 2008); neither is taken to be narrower than the clock's step. It covers the spread of
    /// the samples, not differences between the two runs, such as GPU clocks or other processes;
    /// where those matter, compare merged reports of several runs.
    ///
    /// Net times are raw times minus a bias. If the bias differs, because the device's bias differs
    /// (which a note reports) or because most samples of only one of the two series were queued,
    /// the interval is widened by the difference. If the biases come from different sources, raw
    /// medians are compared.
    ///
    /// Functions are matched by name, even if they moved to another line or file. Functions with
    /// the same name in one file are matched in the order of their lines, or by line if one report
    /// has more of them. Launches are matched by index and name. Series that only the base has are
    /// not compared; a line on stderr gives their number.
    ///
    /// Verdicts: slower, faster: changed by more than the threshold, and the interval excludes
    /// zero. same: changed by no more than the threshold, and known at least that precisely.
    /// unknown: anything else, such as too few samples, or only starved ones, whose times are upper
    /// bounds.
    ///
    /// Exit codes: 0 if no series is slower, 1 if one is or if a condition of --fail-on holds, 2 if
    /// the reports cannot be compared.
    Compare {
        /// The JSON report to compare with.
        #[arg(value_hint = ValueHint::FilePath)]
        base: PathBuf,
        /// The JSON report to judge.
        #[arg(value_hint = ValueHint::FilePath)]
        new: PathBuf,
        /// The largest change to ignore, such as 2%; overrides `threshold` in the file. [default:
        /// 5%]
        #[arg(long, value_name = "PERCENT")]
        threshold: Option<Share>,
        /// A TOML file with `threshold = "5%"` and a table [functions] that maps name patterns with
        /// `*` to thresholds, such as `"*::decode" = "2%"`. The longest matching pattern wins;
        /// patterns that match no function are reported on stderr.
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        thresholds: Option<PathBuf>,
        /// The conditions for exit code 1, in addition to `slower`; separated by commas or given
        /// repeatedly.
        #[arg(
            long,
            value_name = "CONDITION",
            value_enum,
            value_delimiter = ',',
            default_value = "slower"
        )]
        fail_on: Vec<FailOn>,
    },
    /// Checks the driver, the GPUs, their clocks and modes, other processes and permissions, and
    /// suggests a remedy for anything that makes times unreliable.
    ///
    /// Exits with 0 if GPU time can be measured at all, and with 1 if not.
    Doctor,
    /// Prints a completion script for a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Prints the manual page of the tool or of a command.
    Man {
        /// The command, such as `compare`.
        command: Option<String>,
    },
}

/// An output format of `show`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for reading.
    Table,
    /// The complete report.
    Json,
    /// One line per series.
    Csv,
}
