//! A child process, until its end.

use std::io::Read;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// Waits for the end, and takes what the process says meanwhile.
pub fn finish(mut command: Command, limit: Duration) -> (ExitStatus, u32, String, String) {
    let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let pid = child.id();
    let stdout = collect(child.stdout.take().expect("piped"));
    let stderr = collect(child.stderr.take().expect("piped"));
    let status = wait(&mut child, &command, limit);
    (status, pid, stdout.join().expect("it is text"), stderr.join().expect("it is text"))
}

fn collect(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut text = String::new();
        pipe.read_to_string(&mut text).expect("it is text");
        text
    })
}

fn wait(child: &mut Child, command: &Command, limit: Duration) -> ExitStatus {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait().expect("it is a child") {
            return status;
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            panic!("it hangs: {command:?}");
        }
        thread::sleep(Duration::from_millis(2));
    }
}
