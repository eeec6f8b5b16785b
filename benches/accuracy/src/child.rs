//! Runs other programs with a time limit and reads what they print.

use std::env;
use std::ffi::OsString;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde::de::DeserializeOwned;

use crate::cupti::toolkit_folders;
use crate::failure::Failure;

/// Returns a command that runs this program in another role, with the toolkit's libraries on the
/// loader path.
pub fn role(arguments: &[&str]) -> Result<Command, Failure> {
    let mut command = Command::new(env::current_exe()?);
    command.args(arguments).env("LD_LIBRARY_PATH", library_path()?);
    Ok(command)
}

/// Runs a command without the user's gpu-time settings and returns its stdout.
///
/// # Errors
/// The errors of [`output`], or the program fails.
pub fn run(command: &mut Command, limit: Duration) -> Result<String, Failure> {
    let (status, text) = output(command, limit)?;
    if !status.success() {
        let program = command.get_program().to_string_lossy();
        return Err(format!("`{program}` failed with {status}").into());
    }
    Ok(text)
}

/// Runs a command without the user's gpu-time settings and returns how it ended, and its stdout.
///
/// # Errors
/// The program does not start, or exceeds the limit. In that case its whole process group is killed.
pub fn output(command: &mut Command, limit: Duration) -> Result<(ExitStatus, String), Failure> {
    let program = command.get_program().to_string_lossy().into_owned();
    let is_setting =
        |name: &str| name.starts_with("GPU_TIME") && !name.starts_with("GPU_TIME_TEST_");
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(is_setting) {
            command.env_remove(name);
        }
    }
    command.env("GPU_TIME_REPORT", "none");
    // Its own process group, so that the limit also applies to its children.
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped());
    let mut child = command.spawn().map_err(|why| format!("cannot start `{program}`: {why}"))?;
    let mut stdout = child.stdout.take().expect("stdout is piped");
    let reader = std::thread::spawn(move || {
        let mut text = String::new();
        stdout.read_to_string(&mut text).map(|_| text)
    });
    let deadline = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if Instant::now() >= deadline {
            // SAFETY: kills the process group created above. Its leader has not been waited for, so
            // the id has not been reused.
            unsafe { libc::kill(-libc::pid_t::try_from(child.id())?, libc::SIGKILL) };
            child.wait()?;
            return Err(format!("`{program}` took more than {} s", limit.as_secs()).into());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    Ok((status, reader.join().map_err(|_| "the reader panicked")??))
}

/// Parses the last line of a program's output as JSON.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Failure> {
    let line = text.lines().last().ok_or("the output is empty")?;
    serde_json::from_str(line).map_err(|why| format!("invalid output `{line}`: {why}").into())
}

fn library_path() -> Result<OsString, Failure> {
    let user = env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
    let user: Vec<PathBuf> =
        env::split_paths(&user).filter(|folder| !folder.as_os_str().is_empty()).collect();
    Ok(env::join_paths(user.into_iter().chain(toolkit_folders()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Result<String, Failure> {
        run(Command::new("sh").args(["-c", script]), limit)
    }

    #[test]
    fn parse_reads_last_line() {
        let text = shell("echo noise; echo '[1, 2]'", Duration::from_secs(60)).unwrap();
        assert_eq!(parse::<Vec<u32>>(&text).unwrap(), [1, 2]);
        assert!(parse::<Vec<u32>>("").is_err());
    }

    #[test]
    fn run_reports_exit_status() {
        let why = shell("echo '[1]'; exit 3", Duration::from_secs(60)).unwrap_err();
        assert!(why.to_string().contains("exit status: 3"), "{why}");
    }

    #[test]
    fn run_kills_process_group_at_limit() {
        let why = shell("sleep 1000 | cat", Duration::ZERO).unwrap_err();
        assert!(why.to_string().contains("took more than"), "{why}");
    }
}
