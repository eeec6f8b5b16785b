use std::time::{Duration, SystemTime};

use crate::collect::trace::chrome::*;
use crate::collect::trace::tracks::in_order;
use crate::gpu::fake::site;
use crate::record::stream_state::{NestingMark, StreamKey, StreamState};
use crate::record::timeline::CallId;
use crate::site::series_id::SeriesIdentity;
use crate::stats::clock_fit::Moment;
use crate::types::activity::GpuWork;
use crate::types::sample::{CacheState, Sample};
use crate::types::{handles::Stream, key::SeriesKey};

fn stream_state() -> &'static StreamState {
    Box::leak(Box::new(StreamState::new(StreamKey::new(Stream(64), &()))))
}

fn open(stream_state: &StreamState) -> NestingMark {
    stream_state.open(StreamKey::new(Stream(64), &())).unwrap()
}

/// Returns a slice between two host times, with an error of 10 ns.
fn slice(stream_state: &'static StreamState, marks: [NestingMark; 2], times: [f64; 2]) -> Slice {
    let site = site();
    Slice {
        site,
        series: site.series_id(SeriesIdentity::function(
            DeviceId::Cuda(0),
            CacheState::AsFound,
            SeriesKey::NONE,
        )),
        stream: Stream(64),
        stream_state,
        thread_id: None,
        call: CallId::default(),
        sample: Sample::new(times[1] - times[0]).unwrap(),
        prepared: None,
        passed: times.map(|host_ns| Moment { host_ns, error_ns: 10.0 }),
        marks,
        enqueued_ns: 0,
    }
}

const HOSTILE: &str = "a\",\n\u{1b}[31m<script>\\ü";

/// Returns a kernel with a hostile name between two host times, on the stream that CUPTI calls
/// `stream_id`.
fn work(stream: Option<Stream>, stream_id: u32, [begin_ns, end_ns]: [u64; 2]) -> StreamWork {
    let work = GpuWork {
        name: HOSTILE,
        is_kernel: true,
        grid: [4, 2, 1],
        block: [128, 1, 1],
        registers: 0,
        shared_bytes: 0,
    };
    StreamWork {
        site: site(),
        call: CallId(1),
        device: 0,
        context: 1,
        stream_id,
        stream,
        elsewhere: false,
        begin_ns,
        end_ns,
        error_ns: 40,
        work: Box::leak(Box::new(work)),
    }
}

fn placed(slices: Vec<Slice>) -> Vec<(u64, u64)> {
    let numbered: Vec<(u64, Slice)> = (0..).zip(slices).collect();
    let numbered = numbered.iter().map(|(number, slice)| (*number, slice)).collect();
    let interval = |(at, _): &TimedItem<'_, Slice>| (at.begin_ns, at.end_ns);
    in_order(numbered).iter().map(interval).collect()
}

#[test]
fn consecutive_slices_do_not_overlap() {
    let stream_state = stream_state();
    let marks: Vec<_> = (0..3).map(|_| [open(stream_state), stream_state.close()]).collect();
    let times = [[100.0, 200.0], [190.0, 195.0], [200.0, 300.0]];
    let slices = marks.iter().zip(times).map(|(marks, times)| slice(stream_state, *marks, times));
    // The second slice would end before the first, so it is cut to 1 ns.
    assert_eq!(placed(slices.collect()), [(100, 200), (200, 201), (201, 300)]);
}

#[test]
fn nested_slice_stays_nested() {
    let stream_state = stream_state();
    let outer = open(stream_state);
    let inner = [open(stream_state), stream_state.close()];
    let outer = [outer, stream_state.close()];
    // Slices are recorded in the order of their stops.
    let slices = vec![
        slice(stream_state, inner, [120.0, 150.0]),
        slice(stream_state, outer, [100.0, 200.0]),
    ];
    assert_eq!(placed(slices), [(120, 150), (100, 200)]);
}

/// A preparation begins after the preceding bracket ends, and is left out if there is no gap
/// between the two brackets.
#[test]
fn preparations_fill_gaps() {
    let stream_state = stream_state();
    let prepared = |began_ns, flushes, holds| Some(BracketPreparation { began_ns, flushes, holds });
    let of = [
        ([100.0, 200.0], prepared(40, true, false)),
        ([260.0, 300.0], prepared(150, true, true)),
        ([300.0, 400.0], prepared(250, false, true)),
        ([500.0, 600.0], None),
    ];
    let slices = of.map(|(times, prepared)| {
        let marks = [open(stream_state), stream_state.close()];
        Slice { prepared, ..slice(stream_state, marks, times) }
    });
    let warmup =
        TracedCall { site: site(), thread: 7, began_ns: 20, ended_ns: None, is_warmup: true };
    let recorded = TraceRecords {
        calls: vec![(0, warmup)],
        slices: (0..).zip(slices).collect(),
        ..TraceRecords::default()
    };
    let process = process();
    let (_, events) = events(&recorded, &about(&process));
    let found: Vec<_> = events
        .iter()
        .filter(|event| event["cat"] == "preparation")
        .map(|event| {
            let ns = |name: &str| (event[name].as_f64().unwrap() * 1e3).round() as u64;
            (event["name"].as_str().unwrap(), 20 + ns("ts"), ns("dur"))
        })
        .collect();
    assert_eq!(found, [("flush", 40, 60), ("flush and hold", 200, 60)]);
    let rows = events.iter().filter(|event| event["ph"] == "X").map(|event| &event["tid"]);
    assert!(rows.clone().all(|row| Some(row) == rows.clone().next()), "{events:?}");
    let warmups: Vec<_> = events.iter().filter(|event| event["ph"] == "i").collect();
    let [warmup] = warmups[..] else { panic!("{warmups:?}") };
    assert_eq!((&warmup["ts"], &warmup["s"]), (&0.0.into(), &"t".into()));
    assert_eq!((&warmup["cat"], &warmup["name"]), (&"warm-up".into(), &site().name().into()));
}

fn process() -> Process {
    Process::new("app".to_owned(), 1, SystemTime::UNIX_EPOCH, Duration::ZERO, None)
}

fn about(process: &Process) -> About<'_> {
    About { process, devices: Vec::new(), biases: Biases::new(None), now_ns: 500 }
}

fn events(recorded: &TraceRecords, about: &About<'_>) -> (Value, Vec<Value>) {
    let mut trace: Value = serde_json::from_str(&render(recorded, about)).unwrap();
    let events = trace["traceEvents"].take().as_array().unwrap().clone();
    (trace["otherData"].take(), events)
}

#[test]
fn empty_trace_is_valid() {
    let process = process();
    let (other, events) = events(&TraceRecords::default(), &about(&process));
    assert_eq!(other["origin_ns"], 0);
    assert!(events.iter().all(|event| event["ph"] == "M"), "{events:?}");
}

#[test]
fn hostile_names_are_escaped() {
    let process = process();
    let stream_state = stream_state();
    let marks = [open(stream_state), stream_state.close()];
    let call =
        TracedCall { site: site(), thread: 7, began_ns: 90, ended_ns: None, is_warmup: false };
    let bracket = Slice { call: CallId(1), ..slice(stream_state, marks, [100.0, 200.5]) };
    let recorded = TraceRecords {
        calls: vec![(0, call)],
        slices: vec![(3, bracket)],
        works: vec![(0, work(Some(Stream(64)), 7, [300, 310]))],
        threads: vec![(7, HOSTILE.to_owned())],
        brackets: 4,
        activities: 6,
        unplaced: 1,
    };
    let about = About { devices: vec![(DeviceId::Cuda(0), HOSTILE.to_owned())], ..about(&process) };
    let (other, events) = events(&recorded, &about);
    let names: Vec<_> = events.iter().filter_map(|event| event["args"]["name"].as_str()).collect();
    assert_eq!(names[1..], [HOSTILE, &format!("cuda:0 {HOSTILE}"), "stream 0x40"]);
    assert_eq!((&other["origin_ns"], &other["dropped"]), (&90.into(), &3.into()));
    let shown: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
    assert_eq!((&shown[0]["ts"], &shown[0]["dur"]), (&0.0.into(), &0.41.into()));
    assert_eq!(shown[0]["args"]["running"], true);
    assert_eq!((&shown[1]["ts"], &shown[1]["dur"]), (&0.01.into(), &0.101.into()));
    // The kernel is on the same row as the bracket.
    assert_eq!((&shown[2]["pid"], &shown[2]["tid"]), (&shown[1]["pid"], &shown[1]["tid"]));
    assert_eq!((&shown[2]["name"], &shown[2]["cat"]), (&HOSTILE.into(), &"kernel".into()));
    assert_eq!((&shown[2]["ts"], &shown[2]["dur"]), (&0.21.into(), &0.01.into()));
    let args = serde_json::json!({
        "call": 1,
        "function": site().name(),
        "grid": [4, 2, 1],
        "block": [128, 1, 1],
        "alignment_error_ns": 40,
    });
    assert_eq!(shown[2]["args"], args);
    assert_eq!(other["dropped_activities"], 5);
    let note = recorded.note().unwrap();
    for figure in [" 1 of 4 brackets", " 3 were ", " 1 of 6 kernels", " 5 were "] {
        assert!(note.contains(figure), "{figure}: {note}");
    }
    assert!(note.ends_with(" in time: 1"), "{note}");
}

/// Returns the begin time of each kernel, with the name of its row.
fn rows_of_works(recorded: &TraceRecords) -> Vec<(u64, String)> {
    let name = |track: &Track<'_>| track.name(recorded).into_owned();
    let begins = |track: &Track<'_>| -> Vec<_> {
        let of = |(at, _): &(Interval, OnStream<'_>)| (at.begin_ns, name(track));
        track.items.iter().map(of).collect()
    };
    tracks(recorded).iter().flat_map(begins).collect()
}

#[test]
fn work_is_on_the_row_of_its_stream() {
    let call =
        TracedCall { site: site(), thread: 7, began_ns: 90, ended_ns: None, is_warmup: false };
    let works = [
        // One known handle names the stream, even for the work of a graph.
        work(None, 13, [100, 110]),
        work(Some(Stream(64)), 13, [120, 130]),
        // A stream whose handle is unknown, the NULL stream under both of its handles, and a thread's default
        // stream.
        work(None, 14, [140, 150]),
        work(Some(Stream(0)), 7, [160, 170]),
        work(Some(Stream(1)), 7, [180, 190]),
        work(Some(Stream(2)), 15, [200, 210]),
        // The call was overwritten, so the thread is not known.
        StreamWork { call: CallId(9), ..work(Some(Stream(2)), 16, [220, 230]) },
    ];
    let recorded = TraceRecords {
        calls: vec![(0, call)],
        works: (0..).zip(works).collect(),
        threads: vec![(7, "worker".to_owned())],
        ..TraceRecords::default()
    };
    let rows: Vec<_> = [
        (100, "stream 0x40"),
        (120, "stream 0x40"),
        (140, "stream 14"),
        (160, "NULL stream"),
        (180, "NULL stream"),
        (200, "stream of worker"),
        (220, "stream 16"),
    ]
    .map(|(at, name)| (at, name.to_owned()))
    .into();
    assert_eq!(rows_of_works(&recorded), rows);
}

#[test]
fn copy_has_no_grid() {
    let copy = GpuWork {
        name: "[copy HtoD]",
        is_kernel: false,
        grid: [0; 3],
        block: [0; 3],
        registers: 0,
        shared_bytes: 0,
    };
    let shown = StreamWork { work: Box::leak(Box::new(copy)), ..work(None, 13, [100, 110]) };
    let args = serde_json::to_value(shown.args()).unwrap();
    assert_eq!(
        (shown.category(), &args["grid"], &args["block"]),
        ("memory", &Value::Null, &Value::Null)
    );
}
