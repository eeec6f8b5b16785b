use std::time::Duration;

use super::*;
use crate::cupti::{DrainKind, DrainOutcome};
use crate::record::awaited::{PATIENCE, QUIET};
use crate::record::collector::records;
use crate::record::launches::{LaunchOwner, NotedLaunch};
use crate::record::phase::{controller, window};
use crate::record::records::Records;
use crate::types::activity::{EnqueueCall, GpuWork};

fn launched(correlation: u32) -> EnqueueCall {
    EnqueueCall {
        correlation,
        context: 1,
        stream: Some(0x70),
        capture: None,
        is_graph: false,
        graph: None,
        is_group: false,
        lacks_records: false,
    }
}

fn launch(correlation: u32) -> NotedLaunch {
    NotedLaunch { is_in_window: true, ..NotedLaunch::new(&launched(correlation), None, None) }
}

fn graph(correlation: u32) -> NotedLaunch {
    NotedLaunch { is_group: true, ..launch(correlation) }
}

fn activity(correlation: u32, start_ns: u64, end_ns: u64) -> Activity {
    let (name, sizes) = ("k", [1; 3]);
    let work =
        GpuWork { name, is_kernel: true, grid: sizes, block: sizes, registers: 0, shared_bytes: 0 };
    let work = Box::leak(Box::new(work));
    Activity { start_ns, end_ns, correlation, device: 0, context: 1, stream: 7, work }
}

/// Returns records with one window that has these launches and was closed after 100 ns.
fn closed(launches: impl IntoIterator<Item = NotedLaunch>) -> Records {
    let mut records = Records::default();
    add_closed(&mut records, true, launches);
    records
}

fn add_closed(
    records: &mut Records,
    is_drawn: bool,
    launches: impl IntoIterator<Item = NotedLaunch>,
) {
    records.windows.open(100, 0, is_drawn);
    launches.into_iter().for_each(|launch| records.add(launch));
    records.windows.close(100);
}

/// Returns the number of complete windows, the number of incomplete ones, and the busy share.
fn found(records: &Records) -> (u64, u64, f64) {
    let found = records.windows.sums.report(0, f64::INFINITY);
    found.map_or((0, 0, 0.0), |found| (found.windows, found.incomplete, found.busy))
}

/// Lets rounds pass without a record.
fn rounds(records: &mut Records) -> (u64, u64, f64) {
    (0..QUIET).for_each(|_| records.begin_round());
    records.finish_windows(false, false);
    found(records)
}

#[test]
fn window_is_complete_with_the_last_record() {
    let mut records = closed([launch(1), launch(2)]);
    assert!(records.take(&activity(2, 20, 30)));
    assert!(!records.take(&activity(3, 20, 90)), "not of a window");
    records.finish_windows(false, false);
    assert!(records.windows.are_waiting());
    assert!(records.take(&activity(1, 10, 20)));
    records.finish_windows(false, false);
    assert_eq!((found(&records), records.windows.are_waiting()), ((1, 0, 0.2), false));
    assert!(!records.take(&activity(1, 10, 20)), "nothing needs it any more");
}

#[test]
fn record_of_an_opened_call_counts_in_its_window() {
    let owner =
        LaunchOwner { call: 1, nth: 0, enqueued_ns: 0, is_by_helper: false, is_after_stop: false };
    let of_call = NotedLaunch { owner: Some(owner), site: Some(1), ..launch(1) };
    let mut records = closed([of_call]);
    records.take(&activity(1, 10, 20));
    records.finish_windows(false, false);
    assert_eq!(records.windows.sums.report(0, f64::INFINITY).unwrap().attributed, 0.1);
    assert!(records.take(&activity(1, 20, 30)), "the call still needs it");
}

/// A graph has any number of records.
#[test]
fn window_with_a_graph_waits_until_gpu_has_gone_on() {
    let mut records = closed([graph(1)]);
    records.take(&activity(1, 10, 60));
    assert_eq!(rounds(&mut records).0, 0, "the graph may still run");
    // Made in no window.
    let later = NotedLaunch { is_in_window: false, ..launch(2) };
    let owner =
        LaunchOwner { call: 1, nth: 0, enqueued_ns: 0, is_by_helper: false, is_after_stop: false };
    records.add(NotedLaunch { owner: Some(owner), ..later });
    records.take(&activity(2, 90, 100));
    assert_eq!(rounds(&mut records), (1, 0, 0.5));
}

#[test]
fn window_with_last_graph_completes_after_a_while() {
    let mut records = closed([graph(1)]);
    records.take(&activity(1, 10, 60));
    records.wait(PATIENCE + Duration::from_secs(1));
    records.finish_windows(false, false);
    assert_eq!(found(&records), (1, 0, 0.5));
}

#[test]
fn graph_is_unknown_without_last_flush() {
    for (has_all, expected) in [(true, (1, 0)), (false, (0, 1))] {
        let mut records = closed([graph(1)]);
        records.finish_windows(has_all, true);
        let (complete, incomplete, _) = found(&records);
        assert_eq!((complete, incomplete), expected, "{has_all}");
    }
}

#[test]
fn missing_records_make_windows_incomplete() {
    for (record, dropped) in [((0, 20), 0), ((10, 0), 0), ((10, 20), 1)] {
        let mut records = closed([launch(1)]);
        records.take(&activity(1, record.0, record.1));
        records.note_dropped(dropped);
        records.finish_windows(false, false);
        assert_eq!(found(&records), (0, 1, 0.0), "{record:?}");
    }
}

/// The missing record may be the one that was dropped, so it may never arrive.
#[test]
fn window_with_dropped_records_is_not_waited_for() {
    let mut records = closed([launch(1), launch(2)]);
    records.take(&activity(1, 10, 20));
    records.note_dropped(1);
    records.finish_windows(false, false);
    assert_eq!((found(&records), records.windows.are_waiting()), ((0, 1, 0.0), false));
    assert!(!records.take(&activity(2, 20, 30)), "late records are left to others");
}

#[test]
fn end_of_the_process_leaves_unfinished_windows_out() {
    let mut records = closed([launch(1), launch(2)]);
    add_closed(&mut records, true, [launch(3)]);
    [activity(1, 10, 20), activity(3, 50, 90)].iter().for_each(|of| _ = records.take(of));
    records.finish_windows(true, true);
    assert_eq!(found(&records), (1, 1, 0.4));
}

#[test]
fn failed_launch_is_not_waited_for() {
    let mut records = closed([launch(1), launch(2)]);
    [2, 2, 9].iter().for_each(|&id| records.forget(id));
    records.take(&activity(1, 10, 20));
    records.finish_windows(false, false);
    assert_eq!((found(&records), records.windows.are_waiting()), ((1, 0, 0.1), false));
}

#[test]
fn window_that_lacks_a_record_for_long_is_incomplete() {
    let mut records = closed([launch(1), launch(2)]);
    records.take(&activity(1, 10, 20));
    records.finish_windows(false, false);
    assert!(records.windows.are_waiting());
    records.wait(2 * PATIENCE);
    records.finish_windows(false, false);
    assert_eq!(found(&records), (0, 1, 0.0));
}

/// Whether a window is in the figures must not depend on its work, which those that wait have.
#[test]
fn no_window_opens_while_too_many_wait() {
    let mut records = Records::default();
    (0..MOST_WAITING as u32).for_each(|id| {
        assert!(records.windows.has_room());
        add_closed(&mut records, true, [launch(id)]);
    });
    records.finish_windows(false, false);
    assert_eq!((found(&records).1, records.windows.has_room()), (0, false));
    records.windows.sums.add_missed(100);
    records.take(&activity(7, 10, 20));
    records.finish_windows(false, false);
    assert_eq!((found(&records).0, records.windows.has_room()), (1, true));
    assert_eq!(records.windows.sums.report(0, f64::INFINITY).unwrap().missed, 1);
}

#[test]
fn no_window_opens_while_waiting_ones_have_much_work() {
    let mut records = closed([launch(1)]);
    let work = WindowWork { device: 0, start_ns: 10, end_ns: 20, name: "k", site: None };
    records.windows.waiting.get_mut(&0).unwrap().records = vec![work; MOST_WAITING_WORK];
    assert!(!records.windows.has_room());
}

#[test]
fn window_that_is_open_at_the_end_is_incomplete() {
    let mut records = closed([]);
    records.windows.open(100, 0, true);
    records.add(launch(7));
    records.finish_windows(true, true);
    assert_eq!(found(&records), (1, 1, 0.0));
    // The thread may be in the middle of it.
    records.windows.close(100);
    records.finish_windows(true, true);
    assert_eq!(found(&records), (1, 1, 0.0));
}

/// Held by tests that change whether launches are in a window.
static HAS_WINDOW: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// The records are locked, as by a thread that opens the window.
#[test]
fn window_is_not_open_before_launches_are_in_it() {
    let _has_window = HAS_WINDOW.lock().unwrap();
    std::thread::scope(|scope| {
        let locked = records();
        scope.spawn(|| window::open(window::LENGTH, false));
        std::thread::sleep(Duration::from_millis(20));
        assert!(!window::is_open());
        drop(locked);
    });
    assert!(window::is_open());
    launches::set_window(false);
    records().close_window(0);
    window::note_closed();
}

#[test]
fn launches_are_in_the_window_while_it_is_open() {
    let _has_window = HAS_WINDOW.lock().unwrap();
    let mut records = Records::default();
    launches::prepare();
    records.windows.open(100, 0, true);
    launches::set_window(true);
    launches::add(&launched(1), None, None);
    // Captured work does not run.
    launches::add(&EnqueueCall { capture: Some(1), ..launched(9) }, None, None);
    assert_eq!(records.take_launches(), 1);
    assert!(records.take(&activity(1, 10, 20)));
    assert!(!records.take(&activity(2, 20, 50)), "too early");
    launches::add(&launched(2), None, Some(1));
    records.take_launches();
    records.take(&activity(2, 20, 50));
    records.collect_from(DrainKind::Completed, |_, each| {
        // Another thread launches meanwhile.
        launches::add(&launched(3), None, Some(1));
        each(&activity(3, 50, 55));
        DrainOutcome::default()
    });
    launches::set_window(false);
    launches::add(&launched(4), None, None);
    records.close_window(100);
    records.finish_windows(false, false);
    assert_eq!(found(&records), (1, 0, 0.45));
    let coverage = records.windows.sums.report(0, f64::INFINITY).unwrap();
    let outside = coverage.kernels.iter().find(|kernel| !kernel.annotated).unwrap().total_ns;
    assert_eq!(((100.0 * coverage.attributed).round(), outside), (35.0, 10.0));
}

/// As a thread does to which CUPTI does not hand over its records.
#[test]
fn report_does_not_wait_for_records_lock() {
    std::thread::scope(|scope| {
        let (locked, is_locked) = std::sync::mpsc::channel();
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            let _records = records();
            locked.send(()).unwrap();
            is_done.recv().unwrap();
        });
        is_locked.recv().unwrap();
        assert!(controller::coverage(0).is_none());
        done.send(()).unwrap();
    });
}

/// The first of two parts of a phase without an end has a kernel that runs into the second.
#[test]
fn adjacent_windows_are_added_in_order() {
    let mut records = Records::default();
    records.windows.open(100, 0, false);
    records.add(launch(1));
    records.windows.close(10);
    records.windows.open(100, 10, false);
    records.add(launch(2));
    records.windows.close(210);
    assert!(records.take(&activity(2, 40, 80)));
    records.finish_windows(false, false);
    assert_eq!(found(&records).0, 0, "the first one has no record yet");
    assert!(records.take(&activity(1, 20, 60)));
    records.finish_windows(false, false);
    // 60 of 210 ns.
    assert_eq!(found(&records), (2, 0, 60.0 / 210.0));
}
