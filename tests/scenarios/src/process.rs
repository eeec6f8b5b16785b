//! State of the whole process: its rights, descriptors and signals.

use std::ffi::{CString, c_int};
use std::fs::File;
use std::process;
use std::thread;

use gpu_time::gpu_timed;

use crate::handler::raise;
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("process/returns", returns),
    ("process/reports", reports),
    ("process/prints", prints),
    ("process/terminated", terminated),
    ("process/no_reader", no_reader),
    ("process/size_limit", size_limit),
    ("process/stderr_reused", stderr_reused),
    ("process/streams_reused", streams_reused),
    ("process/stderr_closed", stderr_closed),
    ("process/no_descriptors", no_descriptors),
    ("process/secure", secure),
];

#[gpu_timed(clock = "host")]
fn timed() {
    ran!();
}

/// Calls a function, and prints nothing of its own.
fn returns(_: &[String]) {
    timed();
}

/// Calls a function, and asks for a report.
fn reports(_: &[String]) {
    timed();
    gpu_time::report();
    tally::print();
}

/// Calls a function, and prints to stdout.
fn prints(_: &[String]) {
    timed();
    tally::print();
}

/// Ends by a signal instead of exiting.
fn terminated(_: &[String]) {
    timed();
    raise(libc::SIGTERM);
    loop {
        thread::park();
    }
}

/// Ends like a program whose runtime, unlike Rust's, does not ignore SIGPIPE.
fn no_reader(_: &[String]) {
    // SAFETY: the signal has a default disposition.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
    timed();
    process::exit(7);
}

fn limit(resource: libc::__rlimit_resource_t, most: u64) {
    let limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: reads the limit.
    assert_eq!(unsafe { libc::setrlimit(resource, &raw const limit) }, 0);
}

/// Limits every file to 100 bytes.
fn size_limit(_: &[String]) {
    limit(libc::RLIMIT_FSIZE, 100);
    timed();
    tally::print();
    process::exit(7);
}

fn close_stderr() {
    // SAFETY: the descriptor is open.
    assert_eq!(unsafe { libc::close(2) }, 0);
}

/// Opens the file given as the argument, which takes stderr's old descriptor.
fn stderr_reused(arguments: &[String]) {
    timed();
    close_stderr();
    assert_eq!(open(&arguments[0]), 2);
    tally::print();
}

/// Opens a file for reading and writing.
fn open(path: &str) -> c_int {
    let path = CString::new(path).unwrap();
    // SAFETY: the path ends in NUL.
    unsafe { libc::open(path.as_ptr(), libc::O_CREAT | libc::O_RDWR, 0o600) }
}

/// Opens the file given as the argument twice, which takes the old descriptors of both streams.
fn streams_reused(arguments: &[String]) {
    timed();
    for stream in [1, 2] {
        // SAFETY: the descriptor is open.
        assert_eq!(unsafe { libc::close(stream) }, 0);
    }
    assert_eq!([(); 2].map(|()| open(&arguments[0])), [1, 2]);
    print!("data");
}

/// Closes stderr before the first call. The runtime must leave its descriptor free.
fn stderr_closed(_: &[String]) {
    close_stderr();
    timed();
    // SAFETY: reads the flags of a descriptor.
    tally::fact("is_taken", unsafe { libc::fcntl(2, libc::F_GETFD) } != -1);
    tally::print();
}

/// Opens as many files as the limit allows.
fn no_descriptors(_: &[String]) {
    timed();
    limit(libc::RLIMIT_NOFILE, 64);
    let files: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    tally::fact("files", files.len());
    tally::print();
    std::mem::forget(files);
}

/// Runs as another user, because the test has made the program's file set-user-ID.
fn secure(_: &[String]) {
    timed();
    // SAFETY: reads a value that the kernel passed to the program.
    tally::fact("is_secure", unsafe { libc::getauxval(libc::AT_SECURE) } != 0);
    tally::print();
}
