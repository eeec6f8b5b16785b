//! Runs a CUDA program without a GPU, on the simulated driver and the stand-in for CUPTI: `docs/without-a-gpu.md`.

mod arguments;
mod times;

use std::process::{Command, ExitCode};
use std::{env, io};

use gpu_time_sim_cupti::SimCupti;
use gpu_time_sim_driver::SimDriver;

use arguments::Arguments;

fn main() -> ExitCode {
    let code = Arguments::parse(env::args_os().skip(1)).and_then(|arguments| {
        run(&arguments).map_err(|error| {
            format!("cannot run `{}`: {error}", arguments.program.to_string_lossy())
        })
    });
    code.unwrap_or_else(|line| {
        eprintln!("gpu-time-sim: {line}");
        ExitCode::from(2)
    })
}

/// Runs the program and returns its exit code.
fn run(arguments: &Arguments) -> io::Result<ExitCode> {
    let folder = tempfile::tempdir()?;
    let (driver, cupti) = (folder.path().join("driver"), folder.path().join("cupti"));
    let simulated = SimDriver::install(driver)?.devices(arguments.gpus).model(&arguments.times);
    let mut program = Command::new(&arguments.program);
    simulated.apply(&mut program);
    let record = SimCupti::default();
    record.install(&cupti)?;
    record.apply(&cupti, &mut program).args(&arguments.rest);
    eprintln!("gpu-time-sim: no GPU: all GPU times are invented");
    let status = program.status()?;
    Ok(ExitCode::from(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1)))
}
