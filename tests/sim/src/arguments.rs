//! The command line.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::times;

const USAGE: &str = "usage: gpu-time-sim [--times FILE] [--gpus N] PROGRAM [ARGUMENTS…], where FILE has a line such as \
                     `saxpy = 5us` for each kernel";

/// The program, and the machine to run it on.
pub struct Arguments {
    /// The lengths of kernels, in the form of the simulated driver.
    pub times: String,
    pub gpus: usize,
    pub program: OsString,
    pub rest: Vec<OsString>,
}

impl Arguments {
    /// Parses the command line and reads the file of times.
    ///
    /// # Errors
    ///
    /// One line that says what is expected.
    pub fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Arguments, String> {
        let (mut times, mut gpus) = (String::new(), 1);
        loop {
            let argument = arguments.next().ok_or(USAGE)?;
            let mut value = || arguments.next().ok_or(USAGE);
            match argument.to_str() {
                Some("--times") => times = read(Path::new(&value()?))?,
                Some("--gpus") => {
                    let number = value()?;
                    gpus = number.to_str().and_then(|text| text.parse().ok()).ok_or(USAGE)?;
                }
                Some(option) if option.starts_with('-') => return Err(USAGE.to_owned()),
                _ => {
                    return Ok(Arguments {
                        times,
                        gpus,
                        program: argument,
                        rest: arguments.collect(),
                    });
                }
            }
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    let named = |error: &dyn std::fmt::Display| format!("`{}`: {error}", path.display());
    let text = fs::read_to_string(path).map_err(|error| named(&error))?;
    times::model(&text).map_err(|error| named(&error))
}
