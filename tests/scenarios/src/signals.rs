//! Signals that request a report, and signals that end the process.

use std::ffi::{CString, c_int};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process;
use std::ptr;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

use crate::child;
use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::handler::{self, raise};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("signals/ended", ended),
    ("signals/requested", requested),
    ("signals/requested_and_ended", requested_and_ended),
    ("signals/running", running),
    ("signals/at_once", at_once),
    ("signals/flood", flood),
    ("signals/during_report", during_report),
    ("signals/stuck", stuck),
    ("signals/no_reader", no_reader),
    ("signals/child", child),
    ("signals/child_before", child_before),
    ("signals/init", init),
    ("signals/own_handler_first", own_handler_first),
    ("signals/own_handler_later", own_handler_later),
    ("signals/ignored", ignored),
    ("signals/early", early),
    ("signals/killed", killed),
    ("signals/off", off),
    ("signals/off_no_reader", off_no_reader),
];

#[gpu_timed]
fn timed(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> LaunchResult {
    ran!();
    spin.launch(stream, ns)
}

/// Makes ten calls and waits for the GPU.
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

fn park_forever() -> ! {
    loop {
        thread::park();
    }
}

/// Raises each signal given as an argument in turn.
fn ended(arguments: &[String]) {
    let _gpu = begin();
    tally::print();
    arguments.iter().for_each(|signal| raise(signal.parse().unwrap()));
    park_forever();
}

/// Returns the path of the JSON report.
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

fn request_report() {
    report_on(libc::SIGUSR1);
}

fn report_on(signal: c_int) {
    raise(signal);
    wait_for(&report_path());
    std::fs::remove_file(report_path()).unwrap();
}

fn requested(_: &[String]) {
    let (gpu, spin) = begin();
    request_report();
    ten(&gpu, &spin);
    request_report();
    ten(&gpu, &spin);
    tally::print();
}

fn requested_and_ended(_: &[String]) {
    let _gpu = begin();
    tally::print();
    raise(libc::SIGUSR1);
    raise(libc::SIGTERM);
    park_forever();
}

/// Raises SIGTERM while the last call's kernel runs for seconds.
fn running(_: &[String]) {
    let (gpu, spin) = begin();
    timed(&gpu.stream, &spin, 3_000_000_000).unwrap();
    tally::print();
    raise(libc::SIGTERM);
    park_forever();
}

/// Adds a report target before the existing ones, which the runtime has not read yet.
fn report_first_to(target: &str) {
    let others = std::env::var("GPU_TIME_REPORT").unwrap();
    // SAFETY: no other thread is running.
    unsafe { std::env::set_var("GPU_TIME_REPORT", format!("{target},{others}")) };
}

/// Creates a named pipe that holds one page, with both ends open.
fn small_pipe(dir: &str) -> (String, File) {
    let path = format!("{dir}/pipe");
    let name = CString::new(path.as_str()).unwrap();
    // SAFETY: the name ends in NUL.
    assert_eq!(unsafe { libc::mkfifo(name.as_ptr(), 0o600) }, 0);
    let pipe = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    // SAFETY: shrinks the buffer of an open pipe.
    assert!(unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETPIPE_SZ, 4096) } >= 4096);
    (path, pipe)
}

/// Returns the number of bytes waiting in a pipe.
fn buffered(pipe: &File) -> c_int {
    let mut bytes = 0;
    // SAFETY: writes one integer.
    assert_eq!(unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &raw mut bytes) }, 0);
    bytes
}

/// Raises a signal while a report is being written to a pipe that is smaller than the report. The
/// test starts reading the pipe only after the signal. The argument is a folder.
fn during_report(arguments: &[String]) {
    let (path, pipe) = small_pipe(&arguments[0]);
    report_first_to(&format!("json:{path}"));
    let _gpu = begin();
    tally::print();
    thread::spawn(gpu_time::report);
    while buffered(&pipe) == 0 {
        thread::yield_now();
    }
    raise(libc::SIGTERM);
    File::create(format!("{}/raised", arguments[0])).unwrap();
    park_forever();
}

/// Sends itself all signals given as arguments, so that they arrive at the main thread at the same moment.
fn at_once(arguments: &[String]) {
    let _gpu = begin();
    tally::print();
    let mut set = MaybeUninit::uninit();
    // SAFETY: initialises the set, and changes the calling thread's mask.
    unsafe {
        libc::sigemptyset(set.as_mut_ptr());
        for signal in arguments {
            libc::sigaddset(set.as_mut_ptr(), signal.parse().unwrap());
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, set.as_ptr(), ptr::null_mut());
        arguments.iter().for_each(|signal| raise(signal.parse().unwrap()));
        libc::pthread_sigmask(libc::SIG_UNBLOCK, set.as_ptr(), ptr::null_mut());
    }
    park_forever();
}

/// Requests thousands of reports, and then asks the process to end, while a report is being written to a pipe. The
/// test reads the pipe afterwards. The argument is a folder.
fn flood(arguments: &[String]) {
    let (path, pipe) = small_pipe(&arguments[0]);
    report_first_to(&format!("json:{path}"));
    let _gpu = begin();
    tally::print();
    raise(libc::SIGUSR1);
    while buffered(&pipe) == 0 {
        thread::yield_now();
    }
    (0..3_000).for_each(|_| raise(libc::SIGUSR1));
    raise(libc::SIGTERM);
    File::create(format!("{}/raised", arguments[0])).unwrap();
    park_forever();
}

/// Reports to a pipe that is read so slowly that no report completes while the test runs.
fn stuck(arguments: &[String]) {
    let (path, mut pipe) = small_pipe(&arguments[0]);
    report_first_to(&format!("json:{path}"));
    let _gpu = begin();
    tally::print();
    thread::spawn(move || {
        while pipe.read_exact(&mut [0; 4096]).is_ok() {
            thread::sleep(Duration::from_millis(500));
        }
    });
    loop {
        raise(libc::SIGTERM);
        thread::sleep(Duration::from_millis(50));
    }
}

/// Runs `work` while stdout and stderr are redirected to a pipe without a reader. Writing to it raises a
/// signal that ends the process, as in a program whose runtime, unlike Rust's, does not ignore SIGPIPE.
fn without_reader(work: impl FnOnce()) {
    let mut pipe = [0; 2];
    // SAFETY: SIGPIPE has a default disposition, and all descriptors are open.
    let before = unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        libc::close(pipe[0]);
        [1, 2].map(|stream| (libc::dup(stream), libc::dup2(pipe[1], stream)))
    };
    work();
    for (before, stream) in before {
        // SAFETY: as above.
        assert_eq!(unsafe { libc::dup2(before, stream) }, stream);
    }
}

/// Writes two of the tables to a pipe without a reader. The file that follows each table must still
/// be written.
fn no_reader(_: &[String]) {
    let (gpu, spin) = begin();
    without_reader(|| {
        request_report();
        request_report();
    });
    ten(&gpu, &spin);
    request_report();
    ten(&gpu, &spin);
    tally::print();
}

/// Forks, and asserts that the child is ended by `signal`, which it raises after running `child`.
fn fork(signal: c_int, child: impl FnOnce()) {
    let pid = child::fork(|| {
        child();
        raise(signal);
        park_forever();
    });
    child::assert_killed(pid, signal);
}

/// Children of a reporting process have nothing to report, so signals end them immediately.
fn child(_: &[String]) {
    let (gpu, spin) = begin();
    for signal in [libc::SIGUSR1, libc::SIGTERM, libc::SIGINT] {
        fork(signal, || {});
    }
    ten(&gpu, &spin);
    tally::print();
    raise(libc::SIGTERM);
    park_forever();
}

/// A child forked before there was anything to report behaves like any other process.
fn child_before(_: &[String]) {
    fork(libc::SIGTERM, || {
        begin();
        request_report();
    });
    begin();
    tally::print();
    raise(libc::SIGINT);
    park_forever();
}

/// Runs a child that is the first process in its namespace, like a program in a container. Signals
/// with the default disposition do not end this process.
fn init(_: &[String]) {
    // SAFETY: no other thread is running; the calls may fail.
    let is_allowed = unsafe {
        libc::unshare(libc::CLONE_NEWPID) == 0
            || libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWPID) == 0
    };
    tally::fact("is_allowed", is_allowed);
    tally::print();
    if is_allowed {
        let pid = child::fork(|| {
            let (gpu, spin) = begin();
            for signal in [libc::SIGTERM, libc::SIGINT] {
                report_on(signal);
                // A signal that follows immediately would not wait for a report.
                thread::sleep(Duration::from_millis(1_100));
            }
            ten(&gpu, &spin);
        });
        child::assert_exits(pid, 0);
    }
    // SAFETY: ends the process.
    unsafe { libc::_exit(0) };
}

fn own_handler_first(_: &[String]) {
    handler::install(libc::SIGUSR1);
    handler::install(libc::SIGTERM);
    let (gpu, spin) = begin();
    [libc::SIGUSR1, libc::SIGTERM, libc::SIGTERM].into_iter().for_each(raise);
    survive(&gpu, &spin);
}

/// The handler forwards to the previously installed one, as signal libraries do.
fn own_handler_later(_: &[String]) {
    let (gpu, spin) = begin();
    handler::install(libc::SIGTERM);
    [libc::SIGTERM, libc::SIGTERM].into_iter().for_each(raise);
    survive(&gpu, &spin);
}

fn ignored(_: &[String]) {
    // SAFETY: ignoring is a valid disposition for the signal.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    let (gpu, spin) = begin();
    raise(libc::SIGHUP);
    survive(&gpu, &spin);
}

/// Requests a report by a signal while timing is off, which must do no harm.
/// Asks for a report and a phase before the first call of an annotated function, and for a report after it.
fn early(_: &[String]) {
    raise(libc::SIGUSR1);
    raise(libc::SIGUSR2);
    let (gpu, spin) = begin();
    request_report();
    ten(&gpu, &spin);
    tally::print();
}

/// Ends by a signal that cannot be handled, once a report has been written after all calls.
fn killed(_: &[String]) {
    let _gpu = begin();
    tally::print();
    wait_for(&report_path());
    std::fs::remove_file(report_path()).unwrap();
    wait_for(&report_path());
    raise(libc::SIGKILL);
    park_forever();
}

fn off(_: &[String]) {
    let (gpu, spin) = begin();
    raise(libc::SIGUSR1);
    survive(&gpu, &spin);
}

/// The first signals arrive while stderr is a pipe without a reader.
fn off_no_reader(_: &[String]) {
    let (gpu, spin) = begin();
    without_reader(|| {
        for _ in 0..10 {
            raise(libc::SIGUSR1);
        }
    });
    raise(libc::SIGUSR1);
    survive(&gpu, &spin);
}

fn survive(gpu: &Gpu, spin: &Spin) {
    // Leaves time for an incorrect reaction to the forwarded signals.
    thread::sleep(Duration::from_millis(50));
    ten(gpu, spin);
    tally::fact("handled", handler::handled());
    tally::print();
}
