use std::ops::{Deref, DerefMut};

use super::*;
use crate::types::activity::{EnqueueCall, GpuWork};
use crate::types::stream_id::StreamId;

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

fn note(correlation: u32) -> Note {
    Note {
        correlation,
        stream_id: StreamId::of(&launched(correlation)),
        is_group: false,
        site: None,
        is_opened: false,
    }
}

fn activity(correlation: u32, start_ns: u64, end_ns: u64) -> Activity {
    let (name, sizes) = ("k", [1; 3]);
    let work =
        GpuWork { name, is_kernel: true, grid: sizes, block: sizes, registers: 0, shared_bytes: 0 };
    let work = Box::leak(Box::new(work));
    Activity { start_ns, end_ns, correlation, device: 0, context: 1, stream: 7, work }
}

/// The windows, and the progress of the GPU.
struct Matching {
    windows: Windows,
    progress: StreamProgress,
}

impl Matching {
    fn new() -> Matching {
        Matching { windows: Windows::new(), progress: StreamProgress::new() }
    }

    fn take(&mut self, activity: &Activity) -> bool {
        self.windows.take(activity, &mut self.progress)
    }

    fn end_round(&mut self, has_dropped: bool, has_flushed: bool, is_last: bool) {
        self.windows.end_round(&mut self.progress, has_dropped, has_flushed, is_last);
    }
}

impl Deref for Matching {
    type Target = Windows;

    fn deref(&self) -> &Windows {
        &self.windows
    }
}

impl DerefMut for Matching {
    fn deref_mut(&mut self) -> &mut Windows {
        &mut self.windows
    }
}

/// Creates windows with one window that has these launches and was closed after 100 ns.
fn closed(notes: impl IntoIterator<Item = Note>) -> Matching {
    let mut windows = Matching::new();
    add_closed(&mut windows, notes);
    windows
}

fn add_closed(windows: &mut Matching, notes: impl IntoIterator<Item = Note>) {
    let mut window = WaitingWindow::new(100, true);
    notes.into_iter().for_each(|note| window.note(note));
    window.closed = Some(Instant::now());
    windows.waiting.push_back(window);
}

/// Returns the number of complete windows, the number of incomplete ones, and the busy share.
fn found(windows: &Windows) -> (u64, u64, f64) {
    let found = windows.sums.report(0, f64::INFINITY);
    found.map_or((0, 0, 0.0), |found| (found.windows, found.incomplete, found.busy))
}

#[test]
fn window_is_complete_with_the_last_record() {
    let mut windows = closed([note(1), note(2)]);
    assert!(windows.take(&activity(2, 20, 30)));
    assert!(!windows.take(&activity(3, 20, 90)), "not of a window");
    windows.end_round(false, true, false);
    assert!(windows.are_waiting());
    assert!(windows.take(&activity(1, 10, 20)));
    windows.end_round(false, true, false);
    assert_eq!((found(&windows), windows.are_waiting()), ((1, 0, 0.2), false));
}

#[test]
fn record_of_an_opened_call_is_left_to_it() {
    let mut windows = closed([Note { is_opened: true, site: Some(1), ..note(1) }]);
    assert!(!windows.take(&activity(1, 10, 20)));
    windows.end_round(false, true, false);
    assert_eq!(windows.sums.report(0, f64::INFINITY).unwrap().attributed, 0.1);
}

#[test]
fn window_with_graphs_waits_for_more_records() {
    let mut windows = closed([Note { is_group: true, ..note(1) }]);
    for node in 0..3 {
        windows.begin_round();
        assert!(windows.take(&activity(1, 20 * node + 5, 20 * node + 15)));
        windows.end_round(false, true, false);
        assert_eq!(found(&windows).0, 0);
    }
    let pass = |windows: &mut Matching| {
        for _ in 0..QUIET {
            windows.begin_round();
            windows.end_round(false, true, false);
        }
        found(windows)
    };
    assert_eq!(pass(&mut windows).0, 0, "the graph may still run");
    add_closed(&mut windows, [note(2)]);
    windows.take(&activity(2, 90, 100));
    assert_eq!(pass(&mut windows), (2, 0, 0.2));
}

/// Creates windows, of which one waits for the records of a graph. The other is complete, and its record shows
/// that the GPU has gone on from the graph.
fn with_graph_without_a_record() -> Matching {
    let mut windows = closed([Note { is_group: true, ..note(1) }]);
    add_closed(&mut windows, [note(2)]);
    windows.take(&activity(2, 90, 100));
    for _ in 0..QUIET {
        windows.begin_round();
        windows.end_round(false, true, false);
    }
    assert_eq!((found(&windows), windows.are_waiting()), ((1, 0, 0.1), true));
    windows
}

/// Makes the windows late, as if they had waited for longer than [`PATIENCE`].
fn wait(windows: &mut Matching) {
    let waited = PATIENCE + Duration::from_secs(1);
    windows.waiting.iter_mut().for_each(|window| {
        window.closed = window.closed.and_then(|closed| closed.checked_sub(waited));
    });
}

/// CUPTI withholds a buffer until all work in it has ended, and may return later buffers first.
#[test]
fn graph_whose_records_are_withheld_is_waited_for() {
    let mut windows = with_graph_without_a_record();
    windows.take(&activity(1, 10, 60));
    for _ in 0..QUIET {
        windows.begin_round();
        windows.end_round(false, true, false);
    }
    assert_eq!((found(&windows), windows.are_waiting()), ((2, 0, 0.3), false));
}

#[test]
fn graph_without_records_is_empty_once_gpu_has_gone_on() {
    let mut windows = with_graph_without_a_record();
    wait(&mut windows);
    windows.end_round(false, true, false);
    assert_eq!((found(&windows), windows.are_waiting()), ((2, 0, 0.05), false));
}

#[test]
fn window_with_last_graph_completes_after_a_while() {
    let mut windows = closed([Note { is_group: true, ..note(1) }]);
    windows.take(&activity(1, 10, 60));
    for _ in 0..QUIET {
        windows.begin_round();
        windows.end_round(false, true, false);
    }
    assert!(windows.are_waiting(), "the graph may still run");
    wait(&mut windows);
    windows.end_round(false, true, false);
    assert_eq!((found(&windows), windows.are_waiting()), ((1, 0, 0.5), false));
}

#[test]
fn graph_is_unknown_without_last_flush() {
    for (has_flushed, expected) in [(true, (2, 0)), (false, (1, 1))] {
        let mut windows = with_graph_without_a_record();
        windows.end_round(false, has_flushed, true);
        let (complete, incomplete, _) = found(&windows);
        assert_eq!((complete, incomplete), expected, "{has_flushed}");
    }
}

#[test]
fn missing_records_make_windows_incomplete() {
    for (record, has_dropped) in [((0, 20), false), ((10, 0), false), ((10, 20), true)] {
        let mut windows = closed([note(1)]);
        windows.take(&activity(1, record.0, record.1));
        windows.end_round(has_dropped, true, false);
        assert_eq!(found(&windows), (0, 1, 0.0), "{record:?}");
    }
}

/// The missing record may be the one that was dropped, so it may never arrive.
#[test]
fn window_with_dropped_records_is_not_waited_for() {
    let mut windows = closed([note(1), note(2)]);
    windows.take(&activity(1, 10, 20));
    windows.end_round(true, true, false);
    assert_eq!((found(&windows), windows.are_waiting()), ((0, 1, 0.0), false));
    assert!(!windows.take(&activity(2, 20, 30)), "late records are left to others");
}

#[test]
fn end_of_the_process_leaves_unfinished_windows_out() {
    let mut windows = closed([note(1), note(2)]);
    add_closed(&mut windows, [note(3)]);
    [activity(1, 10, 20), activity(3, 50, 90)].iter().for_each(|of| _ = windows.take(of));
    windows.end_round(false, true, true);
    assert_eq!(found(&windows), (1, 1, 0.4));
}

#[test]
fn failed_launch_is_not_waited_for() {
    let mut windows = Matching::new();
    windows.open(100, 0, true);
    let Some(window) = windows.waiting.back_mut() else { unreachable!() };
    [1, 2].iter().for_each(|&id| window.note(note(id)));
    [2, 2, 9].iter().for_each(|&id| window.forget(id));
    (window.length_ns, window.closed) = (100, Some(Instant::now()));
    windows.take(&activity(1, 10, 20));
    windows.end_round(false, true, false);
    assert_eq!((found(&windows), windows.are_waiting()), ((1, 0, 0.1), false));
}

#[test]
fn window_that_lacks_a_record_for_long_is_incomplete() {
    let mut windows = closed([note(1), note(2)]);
    windows.take(&activity(1, 10, 20));
    windows.end_round(false, true, false);
    assert_eq!(found(&windows).0, 0);
    let Some(long_ago) = Instant::now().checked_sub(2 * PATIENCE) else { return };
    windows.waiting[0].closed = Some(long_ago);
    windows.end_round(false, true, false);
    assert_eq!(found(&windows), (0, 1, 0.0));
}

/// Whether a window is in the figures must not depend on its work, which those that wait have.
#[test]
fn no_window_opens_while_too_many_wait() {
    let mut windows = Matching::new();
    (0..MOST_WAITING as u32).for_each(|id| {
        assert!(windows.has_room());
        add_closed(&mut windows, [note(id)]);
    });
    windows.end_round(false, true, false);
    assert_eq!((found(&windows).1, windows.has_room()), (0, false));
    windows.miss(100);
    windows.take(&activity(7, 10, 20));
    windows.end_round(false, true, false);
    assert_eq!((found(&windows).0, windows.has_room()), (1, true));
    assert_eq!(windows.sums.report(0, f64::INFINITY).unwrap().missed, 1);
}

#[test]
fn no_window_opens_while_waiting_ones_have_much_work() {
    let mut windows = closed([note(1)]);
    let work = WindowWork { device: 0, start_ns: 10, end_ns: 20, name: "k", site: None };
    windows.waiting[0].records = vec![work; MOST_WAITING_WORK];
    assert!(!windows.has_room());
}

/// Only the first launch was made in a window.
#[test]
fn graph_has_ended_once_any_later_launch_has_a_record() {
    let mut windows = closed([Note { is_group: true, ..note(1) }]);
    windows.take(&activity(1, 10, 60));
    for is_past in [false, true] {
        if is_past {
            windows.progress.note(note(2).stream_id, 2);
        }
        for _ in 0..QUIET {
            windows.begin_round();
            windows.end_round(false, true, false);
        }
        assert_eq!(found(&windows), if is_past { (1, 0, 0.5) } else { (0, 0, 0.0) });
    }
}

#[test]
fn window_that_is_open_at_the_end_is_incomplete() {
    let mut windows = closed([]);
    windows.open(100, 0, true);
    windows.windows.waiting.back_mut().unwrap().note(note(7));
    windows.end_round(false, true, true);
    assert_eq!(found(&windows), (1, 1, 0.0));
    // The thread may be in the middle of it.
    windows.close(100);
    windows.end_round(false, true, true);
    assert_eq!(found(&windows), (1, 1, 0.0));
}

/// The note of a launch and the record of its work may come in either order.
#[test]
fn notes_are_taken_while_the_window_is_open() {
    let mut windows = Matching::new();
    windows.open(100, 0, true);
    notes::open();
    notes::note(&launched(1), false, None);
    // Captured work does not run.
    notes::note(&EnqueueCall { capture: Some(1), ..launched(9) }, false, None);
    windows.begin_round();
    assert!(windows.take(&activity(1, 10, 20)));
    assert!(!windows.take(&activity(2, 20, 50)), "too early");
    notes::note(&launched(2), false, Some(1));
    windows.end_round(false, true, false);
    notes::note(&launched(3), false, Some(1));
    notes::close();
    notes::note(&launched(4), false, None);
    windows.close(100);
    windows.take(&activity(3, 50, 55));
    windows.end_round(false, true, false);
    assert_eq!(found(&windows), (1, 0, 0.45));
    let coverage = windows.sums.report(0, f64::INFINITY).unwrap();
    assert_eq!(
        (
            (100.0 * coverage.attributed).round(),
            coverage.kernels.iter().find(|kernel| !kernel.annotated).unwrap().total_ns
        ),
        (35.0, 10.0)
    );
}

/// As a thread does to which CUPTI does not hand over its records.
#[test]
fn report_does_not_wait_for_windows_lock() {
    std::thread::scope(|scope| {
        let (locked, is_locked) = std::sync::mpsc::channel();
        let (done, is_done) = std::sync::mpsc::channel::<()>();
        scope.spawn(move || {
            let _windows = super::windows();
            locked.send(()).unwrap();
            is_done.recv().unwrap();
        });
        is_locked.recv().unwrap();
        assert!(super::read(|sums| sums.report(0, 1.0)).is_none());
        done.send(()).unwrap();
    });
}

/// The first of two parts of a phase without an end has a kernel that runs into the second.
#[test]
fn adjacent_windows_are_added_in_order() {
    let mut windows = Matching::new();
    for number in [1, 2] {
        add_closed(&mut windows, [note(number)]);
    }
    windows.waiting.iter_mut().for_each(|window| (window.is_drawn, window.end_ns) = (false, 10));
    assert!(windows.take(&activity(2, 40, 80)));
    windows.end_round(false, true, false);
    assert_eq!(found(&windows).0, 0, "the first one has no record yet");
    assert!(windows.take(&activity(1, 20, 60)));
    windows.end_round(false, true, false);
    // 60 of 200 ns.
    assert_eq!(found(&windows), (2, 0, 0.3));
}
