//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

use crate::ab;
use crate::compare::Share;
use crate::compare::options::Judging;
use crate::compare::render::ComparisonFormat as Comparison;

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
    /// GPU_TIME_NOTES and GPU_TIME_VIEW select what the table has, as they do for programs.
    ///
    /// As JSON, each of several reports is printed on a line of its own. As CSV, several reports
    /// become one table, whose first column, `report`, names the file.
    Show {
        /// JSON reports. `-` stands for stdin.
        #[arg(required = true, value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
        /// The output format.
        #[arg(long, value_enum, default_value_t = ReportFormat::Table)]
        format: ReportFormat,
    },
    /// Turns a report into a self-contained HTML page.
    Html {
        /// A JSON report, which may be a merged one, or `-` for stdin.
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The file to write, or `-` for stdout, which is the default.
        #[arg(short, long, value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
    },
    /// Shows a stored report of a program with a GPU: the table, and the HTML page in a file.
    ///
    /// Measures nothing, and needs no GPU. The last line, on stderr, says which program it was, on which GPU and when.
    Demo {
        /// The file for the page, or `-` for stdout, without the table.
        #[arg(short, long, default_value = "gpu-time-demo.html", value_hint = ValueHint::FilePath)]
        output: PathBuf,
    },
    /// Merges the reports of several processes, runs or machines into one.
    ///
    /// Functions are matched by name, file and line. Their series are matched by device, launch,
    /// measure, key, cache state, clock, and whether they were measured in a graph. Devices with
    /// the same UUID are one, whatever their ids. Others with the same id, such as the GPUs of several
    /// ranks or hosts, are kept apart: their ids become cuda:0/1, cuda:0/2, ordered by name, driver
    /// and UUID.
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
    /// The calls and kernels that CUPTI recorded are added up, with their total times. Percentiles of
    /// their times are kept only where a single report has them, because reports have no histograms
    /// of them.
    ///
    /// The median of each run is kept next to the pooled figures, so that `compare` knows how much
    /// runs differ. Of more than 64 runs, 64 are kept at random.
    ///
    /// A report that two of the files contain is refused, because it would be counted twice. If a
    /// process wrote several reports while it ran, merge only the last one: each contains the
    /// samples of those before it.
    Merge {
        /// JSON reports. `-` stands for stdin.
        #[arg(required = true, value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
        /// The file to write, or `-` for stdout, which is the default.
        #[arg(short, long, value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
    },
    /// Compares the medians of two reports; exits with 1 if any series became slower.
    ///
    /// For each series in both reports, prints the change of the median with its 95 % confidence
    /// interval and a verdict. Net medians are compared where both reports have them.
    ///
    /// Two runs of the same program differ, because clocks, addresses and neighbours do. If both
    /// reports are merged from several runs, the medians of the runs are compared, and the interval
    /// is computed from how much they differ (Welch's t-test of their logarithms). With one run on a
    /// side, that cannot be known: the interval then combines those of the two medians (MOVER, Zou
    /// and Donner 2008) with the difference between runs that --between-runs assumes. Neither
    /// median is taken to be known better than the clock's step.
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
    /// Verdicts: slower, faster: changed by more than the threshold, and unlikely to be chance,
    /// taking into account how many series are compared (Holm 1979): without a change, one
    /// comparison in twenty at most has such a verdict on any of its series. same: changed by no
    /// more than the threshold, and known at least that precisely. unknown: anything else, such as
    /// too few runs or samples, or only starved ones, whose times are upper bounds. With one run on a
    /// side, a change within the threshold is unknown too, but the largest possible change is shown.
    ///
    /// Exit codes: 0 if no series is slower, 1 if one is or if a condition of --fail-on holds, 2 if
    /// the reports cannot be compared.
    Compare {
        /// The JSON report to compare with, or `-` for stdin: one run, or several merged.
        #[arg(value_hint = ValueHint::FilePath)]
        base: PathBuf,
        /// The JSON report to judge, or `-` for stdin.
        #[arg(value_hint = ValueHint::FilePath)]
        new: PathBuf,
        /// The standard deviation between runs to assume where a report has one run only.
        #[arg(long, value_name = "PERCENT", default_value = "2%")]
        between_runs: Share,
        #[command(flatten)]
        judging: Judging,
        /// The output format.
        #[arg(long, value_enum, default_value_t = Comparison::Table)]
        format: Comparison,
    },
    /// Runs two programs in turn and compares their times; exits with 1 if any series became
    /// slower.
    ///
    /// Both programs are run once without being measured, then in blocks: in the order old, new,
    /// new, old or its reverse, at random, so that a drift of the machine and the effect of one
    /// program on the next cancel. Each run writes a JSON report to a private temporary folder. The
    /// programs' stdout is discarded; an error message quotes the last line of stderr.
    ///
    /// Each series gives a ratio for each block. The interval of their mean is valid whenever the
    /// experiment stops (a mixture t-test; Lai 1976, Wang and Ramdas 2024), so it stops as soon as
    /// every series has a verdict. An interval takes four blocks or more. Verdicts and exit codes
    /// are those of `compare`, and 2 if a program fails. Ctrl-C ends the programs and prints what is
    /// known.
    ///
    /// Prints the warnings of `doctor` first, such as other processes on a GPU.
    Ab(ab::Options),
    /// Checks the driver, the GPUs, their clocks and modes, other processes and permissions, and
    /// suggests a remedy for anything that makes times unreliable.
    ///
    /// Exits with 0 if GPU time can be measured at all, and with 1 if not.
    Doctor,
    /// Measures CUPTI's time of an empty kernel on every GPU and stores it for programs without CUPTI.
    ///
    /// Net times agree with CUPTI and Nsight Systems only if the time of an empty kernel is known.
    /// Programs that open calls measure it themselves. All others read what this command has stored
    /// in gpu-time/calibration.json in $XDG_CACHE_HOME or ~/.cache, for each GPU, driver and
    /// version of CUPTI. Without that, only an H200 is known. Run it as the user who runs the
    /// programs, while the GPUs are idle, and again after a new driver was installed.
    ///
    /// CUPTI (`libcupti`) is part of the CUDA toolkit and of the Python package nvidia-cuda-cupti.
    /// GPU_TIME_CUPTI may name it or the folder that contains it.
    ///
    /// Exit codes: 0 if all GPUs were measured, 1 if only some were, 2 if nothing could be measured or
    /// stored.
    Calibrate,
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
pub enum ReportFormat {
    /// A table for reading.
    Table,
    /// The same with functions under their callers, as with GPU_TIME_VIEW=tree.
    Tree,
    /// The call tree as stacks with their self time in nanoseconds, which flame graphs are drawn
    /// from.
    Folded,
    /// The call tree of one report as a profile for `go tool pprof`, uncompressed.
    Pprof,
    /// The complete report.
    Json,
    /// One line per series.
    Csv,
    /// The medians of one report, with their 95 % intervals, for Bencher (Bencher Metric Format).
    Bmf,
    /// The medians of one report, for github-action-benchmark (`customSmallerIsBetter`).
    GithubActionBenchmark,
}
