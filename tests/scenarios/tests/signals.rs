//! Tests for signals: SIGUSR1 requests a report, and signals that end the process first cause a
//! report.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::harness::{Run, scenario};

/// Asserts that this number of calls was measured, and that none were lost.
#[track_caller]
fn assert_calls(run: &Run, calls: u64) {
    assert_eq!(run.row("signals::timed").brackets(), (calls, calls, 0, 0));
}

#[test]
fn ending_signal_reports_first() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
        let run = scenario("signals/ended", &[&signal.to_string()]).killed_by(signal).run();
        assert_calls(&run, 10);
    }
}

/// The second signal arrives while the first one's report is being made.
#[test]
fn two_signals_make_one_report() {
    let [int, term] = [libc::SIGINT, libc::SIGTERM].map(|signal| signal.to_string());
    for second in [&int, &term] {
        let both = scenario("signals/ended", &[&int, second]);
        assert_calls(&both.killed_by(libc::SIGINT).run(), 10);
    }
}

#[test]
fn requested_report_does_not_end_process() {
    assert_calls(&scenario("signals/requested", &[]).reports(2).run(), 30);
}

#[test]
fn request_and_end_at_once() {
    let run =
        scenario("signals/requested_and_ended", &[]).killed_by(libc::SIGTERM).reports(1).run();
    assert_calls(&run, 10);
}

/// Writing a report to a pipe without a reader neither ends the process nor prevents later reports.
#[test]
fn report_to_pipe_without_reader() {
    assert_calls(&scenario("signals/no_reader", &[]).reports(1).run(), 30);
}

#[test]
fn ending_signal_does_not_wait_for_kernel() {
    let run = scenario("signals/running", &[]).killed_by(libc::SIGTERM).run();
    assert_eq!(run.row("signals::timed").brackets(), (11, 10, 1, 0));
}

/// Their handlers must not run inside each other: a thread's alternate stack has room for one or two.
#[test]
fn signals_at_once_end_process() {
    let at_once = |signals: &[i32]| {
        let signals: Vec<_> = signals.iter().map(ToString::to_string).collect();
        scenario("signals/at_once", &signals.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let requests = [libc::SIGUSR1, libc::SIGUSR2];
    let run = at_once(&[requests[0], requests[1], libc::SIGTERM]).killed_by(libc::SIGTERM);
    assert_calls(&run.reports(1).run(), 10);
    // The kernel delivers the one with the lowest number first.
    let ends = [libc::SIGHUP, libc::SIGINT, libc::SIGTERM];
    for signals in [&ends[..], &[&ends[..], &requests].concat()] {
        assert_calls(&at_once(signals).killed_by(libc::SIGHUP).run(), 10);
    }
}

/// The signal that ends the process is not lost, however many requests came before it.
#[test]
fn request_flood_does_not_hide_end() {
    let dir = tempfile::tempdir().unwrap();
    let reader = read_when_raised(dir.path());
    let run = scenario("signals/flood", &[dir.path().to_str().unwrap()]);
    // The requests during the first report get a single answer.
    assert_calls(&run.killed_by(libc::SIGTERM).reports(2).run(), 10);
    assert!(!reader.join().unwrap().is_empty());
}

/// Reads the pipe in this folder slowly to its end, once the program has raised its signals.
fn read_when_raised(dir: &Path) -> JoinHandle<Vec<u8>> {
    let [pipe, raised] = ["pipe", "raised"].map(|name| dir.join(name));
    thread::spawn(move || {
        while !raised.exists() {
            thread::sleep(Duration::from_millis(1));
        }
        // Reads slowly, so that a report that does not wait its turn would be interleaved. The pipe
        // is closed when the process ends.
        let (mut pipe, mut text) = (File::open(pipe).unwrap(), Vec::new());
        while pipe.by_ref().take(4096).read_to_end(&mut text).unwrap() > 0 {
            thread::sleep(Duration::from_millis(20));
        }
        text
    })
}

/// The report in progress is completed before the next one begins.
#[test]
fn signal_during_report() {
    let dir = tempfile::tempdir().unwrap();
    let reader = read_when_raised(dir.path());
    let run = scenario("signals/during_report", &[dir.path().to_str().unwrap()]);
    assert_calls(&run.killed_by(libc::SIGTERM).reports(1).run(), 10);
    let both = reader.join().unwrap();
    let whole = serde_json::Deserializer::from_slice(&both).into_iter::<serde_json::Value>();
    let whole: Result<Vec<_>, _> = whole.collect();
    assert_eq!(whole.unwrap().len(), 2);
}

#[test]
fn second_signal_ends_stuck_report() {
    let dir = tempfile::tempdir().unwrap();
    let run = scenario("signals/stuck", &[dir.path().to_str().unwrap()]);
    run.killed_by(libc::SIGTERM).reports_nothing().run();
}

#[test]
fn signals_end_forked_children() {
    let run = scenario("signals/child", &[]).killed_by(libc::SIGTERM).run();
    assert_calls(&run, 20);
    assert!(run.others.is_empty(), "{:?}", run.others);
    assert_eq!(run.trace.notes("forked_call").count(), 0);
}

#[test]
fn child_forked_before_first_call_reports() {
    let run = scenario("signals/child_before", &[]).killed_by(libc::SIGINT).reports(2).run();
    assert_calls(&run, 10);
    let [child] = &run.others[..] else { panic!("{:?}", run.others) };
    child.check();
    assert_eq!(child.site("signals::timed").row().brackets(), (10, 10, 0, 0));
}

#[test]
fn program_signal_handler_stays_installed() {
    for (name, handled) in [("signals/own_handler_first", 3), ("signals/own_handler_later", 2)] {
        let run = scenario(name, &[]).run();
        assert_calls(&run, 20);
        assert_eq!(run.fact("handled"), handled);
    }
}

#[test]
fn ignored_signal_stays_ignored() {
    assert_calls(&scenario("signals/ignored", &[]).run(), 20);
}

#[test]
fn request_before_first_call_does_not_end_process() {
    let early = scenario("signals/early", &[]);
    let early = early.complains("gpu-time: no report: no annotated function has been called");
    let early = early.complains("gpu-time: no phase: no annotated function has been called");
    assert_calls(&early.reports(1).run(), 20);
}

#[test]
fn killed_process_leaves_its_last_report() {
    let run = scenario("signals/killed", &[]).target("table:/dev/null,every=1s");
    assert_calls(&run.killed_by(libc::SIGKILL).prints_nothing().run(), 10);
}

/// With timing off, the signal that requests a report must not end the program.
#[test]
fn request_while_off_complains() {
    let off = scenario("signals/off", &[]).env("GPU_TIME", "off");
    off.reports_nothing().complains("gpu-time: no report: timing is off (`GPU_TIME=off`)").run();
}

#[test]
fn request_while_off_without_reader() {
    let off = scenario("signals/off_no_reader", &[]).env("GPU_TIME", "off");
    off.reports_nothing().complains("gpu-time: no report: ").run();
}

mod simulated {
    use super::*;

    /// The process reports, calls continue to be timed, and everything is reported at the end. A
    /// real driver does not start in a namespace whose file system belongs to another one.
    #[test]
    fn namespace_init_survives_signals() {
        // The parent process ends without running exit handlers, so it makes no report.
        let run = scenario("signals/init", &[]).simulated(|sim| sim);
        let run = run.target("table:/dev/null").reports_nothing().run();
        if run.fact("is_allowed") == 0 {
            return eprintln!("skipped: this machine does not allow PID namespaces");
        }
        let [init] = &run.others[..] else { panic!("{:?}", run.others) };
        init.check();
        assert_eq!(init.process.pid, 1);
        assert_eq!(init.site("signals::timed").row().brackets(), (20, 20, 0, 0));
    }
}
