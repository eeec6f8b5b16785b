//! Signals that ask for a report, and those that end the process.

use std::ffi::{CString, c_int};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cudarc::driver::{CudaStream, DriverError};
use gpu_time::gpu_timed;

use crate::Scenario;
use crate::gpu::{Gpu, Spin};
use crate::handler::{self, raise};
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("signals/ended", ended),
    ("signals/asked", asked),
    ("signals/asked_and_ended", asked_and_ended),
    ("signals/running", running),
    ("signals/in_a_report", in_a_report),
    ("signals/stuck", stuck),
    ("signals/no_reader", no_reader),
    ("signals/child", child),
    ("signals/child_before", child_before),
    ("signals/init", init),
    ("signals/own_handler_first", own_handler_first),
    ("signals/own_handler_later", own_handler_later),
    ("signals/ignored", ignored),
    ("signals/off", off),
    ("signals/off_without_a_reader", off_without_a_reader),
];

#[gpu_timed]
fn timed(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> Result<(), DriverError> {
    ran!();
    spin.launch(stream, ns)
}

/// Ten calls, that the GPU has done.
fn ten(gpu: &Gpu, spin: &Spin) {
    for _ in 0..10 {
        timed(&gpu.stream, spin, 20_000).unwrap();
    }
    gpu.synchronize();
}

fn begin() -> (Gpu, Spin) {
    let gpu = Gpu::new();
    let spin = gpu.spin("signals::timed");
    ten(&gpu, &spin);
    (gpu, spin)
}

fn wait_for_the_end() -> ! {
    loop {
        thread::park();
    }
}

/// Raises each of its arguments in turn.
fn ended(arguments: &[String]) {
    let _gpu = begin();
    tally::print();
    arguments.iter().for_each(|signal| raise(signal.parse().unwrap()));
    wait_for_the_end();
}

/// The path of the JSON report.
fn report_path() -> PathBuf {
    let targets = std::env::var("GPU_TIME_REPORT").unwrap();
    let path = targets.split(',').find_map(|target| target.strip_prefix("json:")).unwrap();
    path.replace("%p", &process::id().to_string()).into()
}

fn wait_for(path: &Path) {
    while !path.exists() {
        thread::sleep(Duration::from_millis(1));
    }
}

fn ask() {
    report_on(libc::SIGUSR1);
}

fn report_on(signal: c_int) {
    raise(signal);
    wait_for(&report_path());
    std::fs::remove_file(report_path()).unwrap();
}

fn asked(_: &[String]) {
    let (gpu, spin) = begin();
    ask();
    ten(&gpu, &spin);
    ask();
    ten(&gpu, &spin);
    tally::print();
}

fn asked_and_ended(_: &[String]) {
    let _gpu = begin();
    tally::print();
    raise(libc::SIGUSR1);
    raise(libc::SIGTERM);
    wait_for_the_end();
}

/// The last call's kernel runs for seconds.
fn running(_: &[String]) {
    let (gpu, spin) = begin();
    timed(&gpu.stream, &spin, 3_000_000_000).unwrap();
    tally::print();
    raise(libc::SIGTERM);
    wait_for_the_end();
}

/// Puts one more target before those that there are. Nothing has read them yet.
fn report_first_to(target: &str) {
    let others = std::env::var("GPU_TIME_REPORT").unwrap();
    // SAFETY: there is no other thread.
    unsafe { std::env::set_var("GPU_TIME_REPORT", format!("{target},{others}")) };
}

/// A pipe with a name that holds a page, and whose both ends are open.
fn small_pipe(dir: &str) -> (String, File) {
    let path = format!("{dir}/pipe");
    let name = CString::new(path.as_str()).unwrap();
    // SAFETY: the name ends in NUL.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let pipe = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    // SAFETY: makes a pipe that is open smaller.
    assert!(unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, 4096) } >= 4096);
    (path, pipe)
}

/// How many bytes a pipe has for its reader.
fn held(pipe: &File) -> c_int {
    let mut bytes = 0;
    // SAFETY: writes one integer.
    assert_eq!(unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &raw mut bytes) }, 0);
    bytes
}

/// The signal comes while a report is being written to a pipe that holds less, and that the test reads
/// only then. The argument is a folder.
fn in_a_report(arguments: &[String]) {
    let (path, pipe) = small_pipe(&arguments[0]);
    report_first_to(&format!("json:{path}"));
    let _gpu = begin();
    tally::print();
    thread::spawn(gpu_time::report);
    while held(&pipe) == 0 {
        thread::yield_now();
    }
    raise(libc::SIGTERM);
    File::create(format!("{}/raised", arguments[0])).unwrap();
    wait_for_the_end();
}

/// What is written to stdout is not taken any more, so that no report comes to its end.
fn stuck(arguments: &[String]) {
    let (_, pipe) = small_pipe(&arguments[0]);
    report_first_to("json:-");
    let _gpu = begin();
    tally::print();
    // SAFETY: both are open.
    assert_eq!(unsafe { libc::dup2(pipe.as_raw_fd(), 1) }, 1);
    loop {
        raise(libc::SIGTERM);
        thread::sleep(Duration::from_millis(50));
    }
}

/// Does something while stderr is a pipe that nobody reads, and a write to it raises a signal that ends the
/// process, as it does in a program that is not Rust's.
fn without_a_reader(work: impl FnOnce()) {
    let mut pipe = [0; 2];
    // SAFETY: what is raised has a default, and all of these are open.
    let stderr = unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        libc::close(pipe[0]);
        let stderr = libc::dup(2);
        assert_eq!(libc::dup2(pipe[1], 2), 2);
        stderr
    };
    work();
    // SAFETY: as above.
    assert_eq!(unsafe { libc::dup2(stderr, 2) }, 2);
}

/// Nobody reads two of the tables. The file that comes after each is written.
fn no_reader(_: &[String]) {
    let (gpu, spin) = begin();
    without_a_reader(|| {
        ask();
        ask();
    });
    ten(&gpu, &spin);
    ask();
    ten(&gpu, &spin);
    tally::print();
}

/// Forks. The parent waits for the child, which a signal must end.
fn fork(signal: c_int, child: impl FnOnce()) {
    // SAFETY: the child makes no call that needs another thread's lock.
    match unsafe { libc::fork() } {
        -1 => panic!("no fork: {}", std::io::Error::last_os_error()),
        0 => {
            child();
            raise(signal);
            wait_for_the_end();
        }
        pid => {
            let mut status = 0;
            // SAFETY: writes one integer.
            assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
            assert!(libc::WIFSIGNALED(status) && libc::WTERMSIG(status) == signal, "{status:#x}");
        }
    }
}

/// Children of a process that reports have nothing to report: signals end them.
fn child(_: &[String]) {
    let (gpu, spin) = begin();
    for signal in [libc::SIGUSR1, libc::SIGTERM, libc::SIGINT] {
        fork(signal, || {});
    }
    ten(&gpu, &spin);
    tally::print();
    raise(libc::SIGTERM);
    wait_for_the_end();
}

/// A child that was forked before there was anything to report is a process like any other.
fn child_before(_: &[String]) {
    fork(libc::SIGTERM, || {
        begin();
        ask();
    });
    begin();
    tally::print();
    raise(libc::SIGINT);
    wait_for_the_end();
}

/// A child that is the first process of a namespace, as a program in a container may be. No signal ends it
/// whose disposition is the default.
fn init(_: &[String]) {
    // SAFETY: there is no other thread, and the last of it may fail.
    let is_allowed = unsafe {
        libc::unshare(libc::CLONE_NEWPID) == 0
            || libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWPID) == 0
    };
    tally::fact("is_allowed", is_allowed);
    tally::print();
    // SAFETY: as above.
    match is_allowed.then(|| unsafe { libc::fork() }) {
        None => {}
        Some(0) => {
            let (gpu, spin) = begin();
            for signal in [libc::SIGTERM, libc::SIGINT] {
                report_on(signal);
                // The next one does not come at once, so that it would not wait for a report.
                thread::sleep(Duration::from_millis(1_100));
            }
            ten(&gpu, &spin);
        }
        Some(pid) => {
            let mut status = 0;
            // SAFETY: writes one integer.
            assert_eq!(unsafe { libc::waitpid(pid, &raw mut status, 0) }, pid);
            assert_eq!(status, 0);
        }
    }
}

fn own_handler_first(_: &[String]) {
    handler::install(libc::SIGUSR1);
    handler::install(libc::SIGTERM);
    let (gpu, spin) = begin();
    [libc::SIGUSR1, libc::SIGTERM, libc::SIGTERM].into_iter().for_each(raise);
    survive(&gpu, &spin);
}

/// It hands on to what was there before, as libraries for signals do.
fn own_handler_later(_: &[String]) {
    let (gpu, spin) = begin();
    handler::install(libc::SIGTERM);
    [libc::SIGTERM, libc::SIGTERM].into_iter().for_each(raise);
    survive(&gpu, &spin);
}

fn ignored(_: &[String]) {
    // SAFETY: ignoring is a disposition of it.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    let (gpu, spin) = begin();
    raise(libc::SIGHUP);
    survive(&gpu, &spin);
}

/// What is asked for is not to be had, and does no harm.
fn off(_: &[String]) {
    let (gpu, spin) = begin();
    raise(libc::SIGUSR1);
    survive(&gpu, &spin);
}

/// Nobody reads the first answer.
fn off_without_a_reader(_: &[String]) {
    let (gpu, spin) = begin();
    without_a_reader(|| {
        for _ in 0..10 {
            raise(libc::SIGUSR1);
        }
    });
    raise(libc::SIGUSR1);
    survive(&gpu, &spin);
}

fn survive(gpu: &Gpu, spin: &Spin) {
    // Whoever listens for what a handler handed on has the time to be wrong.
    thread::sleep(Duration::from_millis(50));
    ten(gpu, spin);
    tally::fact("handled", handler::handled());
    tally::print();
}
