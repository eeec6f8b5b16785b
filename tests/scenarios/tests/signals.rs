//! Signals: SIGUSR1 asks for a report, and those that end the process let it report before.

use std::fs::File;
use std::io::Read;
use std::thread;
use std::time::Duration;

use crate::harness::{Run, scenario};

/// So many calls were measured, and none lost.
#[track_caller]
fn assert_calls(run: &Run, calls: u64) {
    assert_eq!(run.row("signals::timed").brackets(), (calls, calls, 0, 0));
}

#[test]
fn a_signal_reports_and_ends_the_process_as_it_would_have() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
        let run = scenario("signals/ended", &[&signal.to_string()]).killed_by(signal).run();
        assert_calls(&run, 10);
    }
}

/// The first one is at work when the second comes.
#[test]
fn two_signals_at_once_make_one_report() {
    let [int, term] = [libc::SIGINT, libc::SIGTERM].map(|signal| signal.to_string());
    for second in [&int, &term] {
        let both = scenario("signals/ended", &[&int, second]);
        assert_calls(&both.killed_by(libc::SIGINT).run(), 10);
    }
}

#[test]
fn a_process_that_is_asked_reports_and_goes_on() {
    assert_calls(&scenario("signals/asked", &[]).reports(2).run(), 30);
}

#[test]
fn a_process_that_is_asked_and_ended_at_once_does_both() {
    let run = scenario("signals/asked_and_ended", &[]).killed_by(libc::SIGTERM).reports(1).run();
    assert_calls(&run, 10);
}

/// A report that nobody takes is neither the process's end nor that of the reports.
#[test]
fn a_report_may_go_to_a_pipe_without_a_reader() {
    assert_calls(&scenario("signals/no_reader", &[]).reports(1).run(), 30);
}

#[test]
fn what_is_in_flight_does_not_keep_the_process() {
    let run = scenario("signals/running", &[]).killed_by(libc::SIGTERM).run();
    assert_eq!(run.row("signals::timed").brackets(), (11, 10, 1, 0));
}

/// That report is written to its end before the next one begins.
#[test]
fn a_signal_may_come_in_the_middle_of_a_report() {
    let dir = tempfile::tempdir().unwrap();
    let [pipe, raised] = ["pipe", "raised"].map(|name| dir.path().join(name));
    let reader = thread::spawn(move || {
        while !raised.exists() {
            thread::sleep(Duration::from_millis(1));
        }
        // Slowly, so that whoever does not wait comes between. It ends when the process does.
        let (mut pipe, mut text) = (File::open(pipe).unwrap(), Vec::new());
        while pipe.by_ref().take(4096).read_to_end(&mut text).unwrap() > 0 {
            thread::sleep(Duration::from_millis(20));
        }
        text
    });
    let run = scenario("signals/in_a_report", &[dir.path().to_str().unwrap()]);
    assert_calls(&run.killed_by(libc::SIGTERM).reports(1).run(), 10);
    let both = reader.join().unwrap();
    let whole = serde_json::Deserializer::from_slice(&both).into_iter::<serde_json::Value>();
    let whole: Result<Vec<_>, _> = whole.collect();
    assert_eq!(whole.unwrap().len(), 2);
}

#[test]
fn a_second_signal_ends_a_process_whose_report_is_stuck() {
    let dir = tempfile::tempdir().unwrap();
    let run = scenario("signals/stuck", &[dir.path().to_str().unwrap()]);
    run.killed_by(libc::SIGTERM).reports_nothing().run();
}

#[test]
fn signals_end_children_as_they_would_have() {
    let run = scenario("signals/child", &[]).killed_by(libc::SIGTERM).run();
    assert_calls(&run, 20);
    assert!(run.others.is_empty(), "{:?}", run.others);
    assert_eq!(run.trace.notes("forked_call").count(), 0);
}

#[test]
fn a_child_that_was_forked_before_reports_when_signals_come() {
    let run = scenario("signals/child_before", &[]).killed_by(libc::SIGINT).reports(2).run();
    assert_calls(&run, 10);
    let [child] = &run.others[..] else { panic!("{:?}", run.others) };
    child.check();
    assert_eq!(child.site("signals::timed").row().brackets(), (10, 10, 0, 0));
}

#[test]
fn a_handler_of_the_program_is_not_overruled() {
    for (name, handled) in [("signals/own_handler_first", 3), ("signals/own_handler_later", 2)] {
        let run = scenario(name, &[]).run();
        assert_calls(&run, 20);
        assert_eq!(run.fact("handled"), handled);
    }
}

#[test]
fn what_is_ignored_stays_ignored() {
    assert_calls(&scenario("signals/ignored", &[]).run(), 20);
}

/// Whoever turns timing off had better not make what asks for a report end the program.
#[test]
fn asking_for_a_report_where_timing_is_off_does_no_harm() {
    let off = scenario("signals/off", &[]).env("GPU_TIME", "off");
    off.reports_nothing()
        .complains("gpu-time: there is no report: timing is off by `GPU_TIME=off`")
        .run();
}

#[test]
fn asking_in_vain_may_go_to_a_pipe_without_a_reader() {
    let off = scenario("signals/off_without_a_reader", &[]).env("GPU_TIME", "off");
    off.reports_nothing().complains("gpu-time: there is no report: ").run();
}

mod simulated {
    use super::*;

    /// It reports, is timed on, and reports all of it at its end. A real driver does not start in a namespace
    /// that has the file system of another.
    #[test]
    fn the_first_process_of_a_namespace_goes_on_after_a_signal() {
        // The process that waits for it has nothing to report.
        let run = scenario("signals/init", &[]).simulated(|sim| sim);
        let run = run.target("table:/dev/null").reports_nothing().run();
        if run.fact("is_allowed") == 0 {
            return eprintln!("left out: this machine allows no namespace of processes");
        }
        let [init] = &run.others[..] else { panic!("{:?}", run.others) };
        init.check();
        assert_eq!(init.process.pid, 1);
        assert_eq!(init.site("signals::timed").row().brackets(), (20, 20, 0, 0));
    }
}
