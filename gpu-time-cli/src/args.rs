//! What the command line says.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

use crate::compare::{FailOn, Share};

/// Shows, draws, merges and compares the JSON reports of gpu-time, and looks over what a GPU is like to
/// measure on.
///
/// A report is what a program with `#[gpu_timed]` functions writes with GPU_TIME_REPORT=json:PATH.
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
    /// Several reports as JSON are a line each; as CSV, one table whose first column, `report`, is the file.
    Show {
        /// JSON reports.
        #[arg(required = true, value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
        /// How to show them.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// Makes an HTML page of a report, for a browser: one file that needs no other.
    Html {
        /// A JSON report, a merged one too.
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// Where to write the page; else to stdout.
        #[arg(short, long, value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
    },
    /// Makes one JSON report of many, of one program on many machines or in many runs.
    ///
    /// Functions are the same by name, file and line; their series by device, launch, measure, key,
    /// cache state, clock, and whether in graphs. Devices of one id with different names or drivers
    /// stay apart: their ids become cuda:0/1, cuda:0/2, in the order of names and drivers.
    ///
    /// Counts, sums, shortest and longest times are exact; mean and standard deviation too, but for
    /// rounding. Percentiles and the median's interval come from the merged histograms, to their
    /// resolution, and are never averaged. Net times are each report's raw times less its own bias;
    /// where biases differ, net percentiles have up to twice the resolution's error. A rate of work
    /// that varies from call to call is that of all work in all time, each report's time worked out
    /// from its own rate. What the reports do not agree in is left out. Where a series has fed samples
    /// in any report, its statistics are over fed ones only, as in a report of one process.
    ///
    /// A report that two of the files hold is refused, for it would count twice. Of a process that
    /// reported while it ran, only the last report is to be merged: each holds what the one before did.
    Merge {
        /// JSON reports.
        #[arg(required = true, value_hint = ValueHint::FilePath)]
        files: Vec<PathBuf>,
        /// Where to write the merged report; else to stdout.
        #[arg(short, long, value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
    },
    /// Compares the medians of two reports; exits with 1 if anything became slower.
    ///
    /// For each series in both: the change of the median, net where both are, with its 95 % interval
    /// and a verdict. The interval is made of those of the two medians, on a logarithmic scale, by the
    /// squares of their reaches (MOVER, Zou and Donner 2008); neither is taken to be narrower than the
    /// clock's step. It knows of the samples' spread, not of what differs between two runs, such as
    /// clocks and neighbours: compare merged reports of several runs where that matters. Where the bias
    /// that net times are relieved of differs, because the device's does, which a note says, or because
    /// most samples of the one series were queued and of the other not, what that may have done is no
    /// change: the interval is that much wider. Where it comes from another source, raw medians are compared.
    ///
    /// Functions are the same by name, wherever they moved to; several of one name in a file by the order
    /// of their lines, or by line and file where one report has more of them. Launches are the same by
    /// index and name. What only the base has is not compared: a line on stderr says how many series.
    ///
    /// slower, faster: by more than the threshold, with no change outside of the interval. same: by no
    /// more than the threshold, known at least that well. unknown: anything else, such as too few
    /// samples, or starved ones only, whose times are upper bounds.
    ///
    /// Exits with 0 if nothing is slower, 1 if something is, or is what --fail-on names, 2 if the reports
    /// cannot be compared.
    Compare {
        /// The JSON report to compare with.
        #[arg(value_hint = ValueHint::FilePath)]
        base: PathBuf,
        /// The JSON report of what is new.
        #[arg(value_hint = ValueHint::FilePath)]
        new: PathBuf,
        /// A change of no more than this is none, such as 2%; wins over `threshold` in the file.
        #[arg(long, value_name = "PERCENT")]
        threshold: Option<Share>,
        /// A TOML file: `threshold = "5%"`, and in a table [functions] patterns of names with `*` and
        /// the threshold of each, such as `"*::decode" = "2%"`; the longest pattern that fits counts, and one that
        /// fits no function is named on stderr.
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        thresholds: Option<PathBuf>,
        /// What to exit with 1 for, beside what is slower: a list, or given again for each.
        #[arg(
            long,
            value_name = "WHAT",
            value_enum,
            value_delimiter = ',',
            default_value = "slower"
        )]
        fail_on: Vec<FailOn>,
    },
    /// Looks at the driver, the GPUs, their clocks, modes, neighbours and permissions, and says what to
    /// do about each thing that makes times doubtful.
    ///
    /// Exits with 0 if GPU time can be measured, however well, and with 1 if not.
    Doctor,
    /// Prints a script that completes these commands in a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Prints the manual page, or that of a command.
    Man {
        /// The command, such as `compare`.
        command: Option<String>,
    },
}

/// How a report is shown.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people.
    Table,
    /// Everything.
    Json,
    /// A line for each series.
    Csv,
}
