//! The tool of gpu-time: `show`, `html`, `merge`, `compare`, `doctor`.

mod args;
mod compare;
mod doctor;
mod input;
mod merge;
mod output;
mod place;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use args::{Args, Command, Format};
use gpu_time_report::{Terminal, printable};

/// What went wrong, in one line.
type Failure = String;

/// The exit code for input that cannot be used; clap's for arguments is the same.
const UNUSABLE: u8 = 2;

fn main() -> ExitCode {
    run(Args::parse().command).unwrap_or_else(|failure| {
        output::complain(&failure);
        ExitCode::from(UNUSABLE)
    })
}

fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Show { files, format } => show(&files, format)?,
        Command::Html { file, output } => {
            output::write(output.as_deref(), &input::report(&file)?.to_html())?;
        }
        Command::Merge { files, output } => {
            let merged = merge::files(&files)?;
            output::write(output.as_deref(), &(merged.to_json() + "\n"))?;
        }
        Command::Compare { base, new, threshold, thresholds, fail_on } => {
            return compare::files(&base, &new, threshold, thresholds.as_deref(), &fail_on);
        }
        Command::Doctor => return doctor::run(),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "gpu-time", &mut script);
            output::write_bytes(None, &script)?;
        }
        Command::Man { command } => output::write_bytes(None, &man(command.as_deref())?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The manual page of the tool, which names those of its commands, or of one of these.
fn man(command: Option<&str>) -> Result<Vec<u8>, Failure> {
    let mut tool = Args::command().disable_help_subcommand(true);
    tool.build();
    let of = match command {
        None => &tool,
        Some(name) => tool
            .find_subcommand(name)
            .ok_or_else(|| format!("`{name}` is no command; `gpu-time --help` lists them"))?,
    };
    let mut page = Vec::new();
    // Writing to memory cannot fail.
    _ = clap_mangen::Man::new(of.clone()).render(&mut page);
    Ok(page)
}

/// Several reports come as several tables; as JSON, each in a line of its own; or as one table in CSV, with
/// the file in front.
fn show(files: &[PathBuf], format: Format) -> Result<(), Failure> {
    for (at, file) in files.iter().enumerate() {
        let snapshot = input::report(file)?;
        let text = match format {
            Format::Table => snapshot.to_table(Terminal::stdout()),
            Format::Json if files.len() == 1 => snapshot.to_json() + "\n",
            // No string in it has a line break, so that only those of the layout go.
            Format::Json => {
                snapshot.to_json().lines().map(str::trim_start).collect::<String>() + "\n"
            }
            Format::Csv if files.len() == 1 => snapshot.to_csv(),
            Format::Csv => {
                let name = printable(&file.to_string_lossy()).replace('"', "\"\"");
                // The same columns in each, of which one is named `file` already.
                let lines = snapshot.to_csv();
                let mut lines = lines.lines();
                let header =
                    lines.next().filter(|_| at == 0).map(|line| format!("report,{line}\n"));
                let rows = lines.map(|line| format!("\"{name}\",{line}\n"));
                header.into_iter().chain(rows).collect()
            }
        };
        output::write(None, &text)?;
    }
    Ok(())
}
