//! The command-line tool of gpu-time: `show`, `html`, `demo`, `merge`, `compare`, `ab`, `doctor`,
//! `calibrate`.

mod ab;
mod args;
mod calibrate;
mod compare;
mod demo;
mod doctor;
#[cfg(test)]
#[path = "../tests/fixtures.rs"]
mod fixtures;
mod input;
mod merge;
mod message;
#[cfg(test)]
#[path = "../tests/opened_calls.rs"]
mod opened_calls;
mod output;
mod overlap;
mod series_id;
mod trackers;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Command, ReportFormat};
use gpu_time_report::{Detail, Snapshot, Terminal, View, printable};
use message::{Failure, UNUSABLE};

fn main() -> ExitCode {
    run(Args::parse().command).unwrap_or_else(|failure| {
        message::print(&failure);
        ExitCode::from(UNUSABLE)
    })
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Show { files, format } => show(&files, format)?,
        Command::Html { file, output } => {
            output::write(output.as_deref(), &input::report(&file)?.to_html())?;
        }
        Command::Demo { output: page } => {
            let report = demo::report()?;
            if !output::is_stdout(&page) {
                output::write(None, &table(&report, View::default())?)?;
            }
            output::write(Some(&page), &report.to_html())?;
            message::print(&demo::origin(&report, &page));
        }
        Command::Merge { files, output } => {
            let merged = merge::files(&files)?;
            output::write(output.as_deref(), &(merged.to_json() + "\n"))?;
        }
        Command::Compare { base, new, between_runs, judging, format } => {
            return compare::files(&base, &new, &judging, between_runs, format);
        }
        Command::Ab(options) => return ab::run(&options),
        Command::Doctor => return doctor::run(),
        Command::Calibrate => return calibrate::run(),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "gpu-time", &mut script);
            output::write_bytes(None, &script)?;
        }
        Command::Man { command } => output::write_bytes(None, &man(command.as_deref())?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Renders the manual page of a command or of the tool. The tool's page refers to those of its
/// commands.
fn man(command: Option<&str>) -> Result<Vec<u8>, Failure> {
    let mut tool = Args::command().disable_help_subcommand(true);
    tool.build();
    let command = match command {
        None => &tool,
        Some(name) => tool
            .find_subcommand(name)
            .ok_or_else(|| format!("unknown command `{name}`: see `gpu-time --help`"))?,
    };
    let mut page = Vec::new();
    // Writing to memory cannot fail.
    _ = clap_mangen::Man::new(command.clone()).render(&mut page);
    Ok(page)
}

/// Returns the value of an environment variable that programs read as well, or the default.
fn variable<T: Default>(
    name: &str,
    parse: fn(&str) -> Option<T>,
    expected: &str,
) -> Result<T, Failure> {
    let value = env::var_os(name).unwrap_or_default();
    let text = value.to_string_lossy();
    if text.trim().is_empty() {
        return Ok(T::default());
    }
    parse(text.trim()).ok_or_else(|| {
        let text = text.escape_debug();
        format!("invalid value `{text}` for `{name}`: expected {expected}")
    })
}

/// Renders the table for stdout, with the notes that the environment asks for.
fn table(snapshot: &Snapshot, view: View) -> Result<String, Failure> {
    let detail = variable("GPU_TIME_NOTES", Detail::parse, Detail::EXPECTED)?;
    Ok(snapshot.to_table(Terminal { view, ..Terminal::stdout() }, detail))
}

/// Prints reports. Several become one table after another, the stacks of all reports, JSON Lines,
/// or one CSV table whose first column is the file.
fn show(files: &[PathBuf], format: ReportFormat) -> Result<(), Failure> {
    let takes_one = [ReportFormat::Pprof, ReportFormat::Bmf, ReportFormat::GithubActionBenchmark];
    if files.len() > 1 && takes_one.contains(&format) {
        return Err(
            "this format has room for one report: `gpu-time merge` makes one of several".to_owned()
        );
    }
    for (i, file) in files.iter().enumerate() {
        let snapshot = input::report(file)?;
        let text = match format {
            ReportFormat::Table => {
                table(&snapshot, variable("GPU_TIME_VIEW", View::parse, View::EXPECTED)?)?
            }
            ReportFormat::Tree => table(&snapshot, View::Tree)?,
            ReportFormat::Folded | ReportFormat::Pprof if snapshot.tree.is_empty() => {
                return Err(format!("`{}` has no call tree", file.display()));
            }
            ReportFormat::Folded => snapshot.to_folded(),
            ReportFormat::Pprof => {
                output::write_bytes(None, &snapshot.to_pprof())?;
                continue;
            }
            ReportFormat::Bmf => trackers::bmf(&snapshot),
            ReportFormat::GithubActionBenchmark => trackers::github_action_benchmark(&snapshot),
            ReportFormat::Json if files.len() == 1 => snapshot.to_json() + "\n",
            // JSON strings contain no literal line break, so joining the lines changes only the
            // layout.
            ReportFormat::Json => {
                snapshot.to_json().lines().map(str::trim_start).collect::<String>() + "\n"
            }
            ReportFormat::Csv if files.len() == 1 => snapshot.to_csv(),
            ReportFormat::Csv => {
                let name = printable(&file.to_string_lossy()).replace('"', "\"\"");
                // All reports have the same columns. The new first column is called `report`,
                // because `file` already names the source file.
                let csv = snapshot.to_csv();
                let mut lines = csv.lines();
                let header = lines.next().filter(|_| i == 0).map(|line| format!("report,{line}\n"));
                let rows = lines.map(|line| format!("\"{name}\",{line}\n"));
                header.into_iter().chain(rows).collect()
            }
        };
        output::write(None, &text)?;
    }
    Ok(())
}
