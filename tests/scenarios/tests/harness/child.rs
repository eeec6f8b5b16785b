//! Waiting for a child process.

use std::io::Read;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// Waits for the child to end while collecting its output. Returns its status, id, stdout and
/// stderr.
pub fn finish(mut command: Command, limit: Duration) -> (ExitStatus, u32, String, String) {
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let pid = child.id();
    let stdout = collect(child.stdout.take().expect("piped"));
    let stderr = collect(child.stderr.take().expect("piped"));
    let status = wait(&mut child, &command, limit);
    (status, pid, stdout.join().expect("stdout is UTF-8"), stderr.join().expect("stderr is UTF-8"))
}

fn collect(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).expect("the output is UTF-8");
        text
    })
}

fn wait(child: &mut Child, command: &Command, limit: Duration) -> ExitStatus {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().expect("the process is a child") {
            return status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("no end within {limit:?}: {command:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
}
