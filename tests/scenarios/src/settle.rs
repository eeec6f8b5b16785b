//! Runs of `until_stable` and `compare`.
//!
//! Unless a scenario sets its own timeout, it is an hour, longer than any test may take. A run that
//! returns has then not timed out.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use cudarc::driver::{CudaStream, sys};
use gpu_time::{
    NULL_STREAM, RawStream, Settle, Settled, Snapshot, compare, gpu_timed, raw_stream, until_stable,
};

use crate::gpu::{Copy, Gpu, LaunchResult, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("settle/steady", steady),
    ("settle/varied", varied),
    ("settle/after_others", after_others),
    ("settle/feeding_change", feeding_change),
    ("settle/regimes", regimes),
    ("settle/timeout", timeout),
    ("settle/lost", lost),
    ("settle/cold", cold),
    ("settle/nested", nested),
    ("settle/threads", threads),
    ("settle/at_once", at_once),
    ("settle/among_phases", among_phases),
    ("settle/queue", queue),
    ("settle/any_clock", any_clock),
    ("settle/back_to_back", back_to_back),
    ("settle/refused", refused),
    ("settle/unwinding", unwinding),
    ("settle/compared", compared),
    ("settle/uncompared", uncompared),
    ("settle/turns", turns),
];

/// Returns options for a run that lasts exactly as long as its samples require. The margin allows for
/// a real GPU whose readings alternate between two values.
pub fn settle() -> Settle {
    let settle = Settle::default().margin(0.05);
    settle.min_time(Duration::ZERO).timeout(Duration::from_secs(3600))
}

/// Records a run's number of calls, and its number of unmet series, under `name`.
fn note(name: &str, settled: &Settled) {
    assert_eq!(settled.inconsistencies(), [""; 0]);
    assert_eq!(settled.is_settled(), settled.unmet.is_empty());
    tally::fact(&format!("{name} calls"), settled.calls);
    tally::fact(&format!("{name} unmet"), settled.unmet.len());
    settled.unmet.iter().for_each(|unmet| println!("{name}: {unmet}"));
}

#[gpu_timed(scope = "body", sleep, warmup = 3)]
fn timed(stream: &Arc<CudaStream>, spin: &Spin, ns: u64) -> LaunchResult {
    ran!();
    spin.launch(stream, ns)
}

#[gpu_timed(scope = "body", sleep)]
fn untouched(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)
}

/// Makes rounds of eight calls. The first 3 calls are a warm-up, the next is not held, and all
/// others are fed.
fn steady(_: &[String]) {
    let gpu = Gpu::new();
    let (spin, other) = (gpu.spin("settle::timed"), gpu.spin("settle::untouched"));
    untouched(&gpu.stream, &other).unwrap();
    gpu.synchronize();
    // Too few calls for a queue that is long enough to lengthen event times.
    let round = || {
        for _ in 0..8 {
            timed(&gpu.stream, &spin, 10_000).unwrap();
        }
        gpu.synchronize();
    };
    note("first", &until_stable(settle(), round));
    // Samples recorded before the run do not shorten it.
    note("second", &until_stable(settle().min_samples(65), round));
    tally::print();
}

/// Launches kernels of random lengths from 20 to 40 µs.
fn varied(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("settle::timed");
    let mut random = fastrand::Rng::with_seed(1);
    let settled = until_stable(settle().margin(0.02), || {
        for _ in 0..16 {
            timed(&gpu.stream, &spin, random.u64(20_000..40_000)).unwrap();
        }
        gpu.synchronize();
    });
    note("run", &settled);
    tally::print();
}

/// Launches thousands of short kernels, then makes a run of long kernels of two alternating lengths,
/// with a timeout that allows one call of the closure, then a run of kernels of one length.
fn after_others(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("settle::timed");
    let calls = |count: u64, [even, odd]: [u64; 2]| {
        for i in 0..count {
            timed(&gpu.stream, &spin, if i % 2 == 0 { even } else { odd }).unwrap();
        }
        gpu.synchronize();
    };
    calls(11_500, [10_000, 20_000]);
    let run = |name: &str, settle: Settle, lengths: [u64; 2]| {
        let settled = until_stable(settle, || calls(100, lengths));
        note(name, &settled);
        let [site] = &settled.sites[..] else { panic!("{:?}", settled.sites) };
        assert_eq!(
            (site.name.as_str(), site.calls),
            ("scenario::settle::timed", 100 * settled.calls)
        );
        let [series] = &site.series[..] else { panic!("{:?}", site.series) };
        assert_eq!((series.timed, series.measured), (site.calls, site.calls));
        assert!(series.histogram.count() <= series.measured);
        let net = series.net_ns.expect("there are net times");
        let [low, high] = series.ci95_ns.expect("there are enough samples");
        for (what, ns) in [
            ("median", net.median),
            ("least", net.min),
            ("mean", net.mean),
            ("width", high - low),
            ("sum", net.sum / series.measured as f64),
        ] {
            tally::fact(&format!("{name} {what}"), ns.round());
        }
    };
    run("alternating", settle().timeout(Duration::ZERO), [100_000, 300_000]);
    run("steady", settle(), [100_000; 2]);
    tally::print();
}

/// Makes a run in which the GPU waits for each call, after a phase in which it had a queue. Then
/// does the reverse with another function.
fn feeding_change(_: &[String]) {
    let gpu = Gpu::new();
    let spins = [gpu.spin("settle::plain"), gpu.spin("settle::dirty")];
    let call = |which: usize, waits: bool| {
        for _ in 0..if waits { 1 } else { 200 } {
            if which == 0 {
                plain(&gpu.stream, &spins[0]).unwrap();
            } else {
                dirty(&gpu.stream, &spins[1]).unwrap();
            }
        }
        gpu.synchronize();
    };
    call(0, false);
    note("starved", &until_stable(settle().as_found(), || call(0, true)));
    (0..200).for_each(|_| call(1, true));
    note("fed", &until_stable(settle().as_found(), || call(1, false)));
    tally::print();
}

/// Makes calls one by one, then a run with fewer calls and a queue behind them.
fn regimes(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("settle::timed");
    for _ in 0..1_500 {
        timed(&gpu.stream, &spin, 5_000).unwrap();
        gpu.synchronize();
    }
    let note = |name: &str, snapshot: &Snapshot| {
        let site = snapshot.site("scenario::settle::timed").expect("the function was called");
        let [series] = &site.series[..] else { panic!("{:?}", site.series) };
        tally::fact(&format!("{name} queued"), series.queued);
        tally::fact(&format!("{name} added_ns"), series.added_ns.round());
    };
    note("before", &gpu_time::snapshot());
    let settled = until_stable(settle().timeout(Duration::ZERO), || {
        for _ in 0..500 {
            timed(&gpu.stream, &spin, 5_000).unwrap();
        }
        gpu.synchronize();
    });
    note("run", &settled);
    tally::print();
}

/// A timeout of zero allows one call of the closure. In the first run, it makes
/// only warm-up calls.
fn timeout(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("settle::timed");
    let no_time = Settle::default().timeout(Duration::ZERO);
    let run = |name: &str, calls: usize| {
        let settled = until_stable(no_time, || {
            for _ in 0..calls {
                timed(&gpu.stream, &spin, 10_000).unwrap();
                // With a queue behind them, the first samples would be longer than the last.
                gpu.synchronize();
            }
        });
        note(name, &settled);
        let [unmet] = &settled.unmet[..] else { panic!("{:?}", settled.unmet) };
        assert_eq!(unmet.site, "scenario::settle::timed");
        tally::fact(&format!("{name} samples"), unmet.samples);
        tally::fact(&format!("{name} series"), unmet.series == "cuda:0");
        tally::fact(&format!("{name} margin"), unmet.margin.is_some());
    };
    run("warming", 3);
    run("short", 4);
    run("below min_samples", 20);
    tally::print();
}

#[gpu_timed(launch = "launch_badly")]
fn fails(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch_badly(stream)
}

/// Makes calls that all lose their samples.
fn lost(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("settle::fails");
    note("run", &until_stable(settle(), || assert!(fails(&gpu.stream, &spin).is_err())));
    tally::print();
}

/// 3.75 MiB each, so both buffers fit into the L2.
const BYTES: usize = 15 << 18;

#[gpu_timed(sleep)]
fn plain_held(stream: &Arc<CudaStream>, copy: &mut Copy) -> LaunchResult {
    ran!();
    copy.launch(stream)
}

#[gpu_timed]
fn plain(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)
}

#[gpu_timed(cold = "dirty")]
fn dirty(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 5_000)
}

/// Calls every function in rounds of ten: with its attribute's setting, then overridden by runs,
/// then with its attribute's setting again.
fn cold(_: &[String]) {
    let gpu = Gpu::new();
    let mut copy = gpu.copy("settle::plain_held", BYTES);
    let spins = [gpu.spin("settle::plain"), gpu.spin("settle::dirty")];
    let mut round = || {
        for _ in 0..10 {
            plain_held(&gpu.stream, &mut copy).unwrap();
            plain(&gpu.stream, &spins[0]).unwrap();
            dirty(&gpu.stream, &spins[1]).unwrap();
            gpu.synchronize();
        }
    };
    // The timeout allows only one call of the closure.
    let once = settle().timeout(Duration::ZERO);
    round();
    until_stable(once.cold(), &mut round);
    until_stable(once.as_found(), &mut round);
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        until_stable(once.cold_dirty(), || {
            round();
            std::panic::resume_unwind(Box::new("intentional panic"));
        })
    }));
    assert!(panicked.is_err());
    round();
    tally::print();
}

/// Starts another run in each call of a run. The inner run collects its own samples each time.
fn nested(_: &[String]) {
    let gpu = Gpu::new();
    let (spin, other) = (gpu.spin("settle::timed"), gpu.spin("settle::untouched"));
    let mut inner = 0;
    let outer = until_stable(settle().cold(), || {
        let settled = until_stable(settle().as_found(), || {
            for _ in 0..64 {
                untouched(&gpu.stream, &other).unwrap();
            }
            gpu.synchronize();
        });
        assert!(settled.is_settled() && settled.calls >= 1);
        inner += 1;
        timed(&gpu.stream, &spin, 10_000).unwrap();
        gpu.synchronize();
    });
    note("outer", &outer);
    tally::fact("inner", inner);
    tally::print();
}

/// Calls two functions, each on a thread spawned by the closure.
fn threads(_: &[String]) {
    let gpu = Gpu::new();
    let spins = [gpu.spin("settle::timed"), gpu.spin("settle::untouched")];
    let streams = [gpu.new_stream(), gpu.new_stream()];
    let settled = until_stable(settle(), || {
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..16 {
                    timed(&streams[0], &spins[0], 10_000).unwrap();
                }
            });
            scope.spawn(|| {
                for _ in 0..16 {
                    untouched(&streams[1], &spins[1]).unwrap();
                }
            });
        });
        gpu.synchronize();
    });
    note("run", &settled);
    tally::print();
}

/// Makes two runs at once, which call one function with kernels of 10 and 100 µs.
fn at_once(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("settle::timed");
    let both = Barrier::new(2);
    let run = |ns: u64| {
        let stream = gpu.new_stream();
        both.wait();
        let settled = until_stable(settle(), || {
            for _ in 0..16 {
                timed(&stream, &spin, ns).unwrap();
            }
            stream.synchronize().unwrap();
        });
        let [site] = &settled.sites[..] else { panic!("{:?}", settled.sites) };
        let raw = site.series[0].raw_ns.expect("there are samples");
        tally::fact(&format!("{ns} least"), raw.min as u64);
        tally::fact(&format!("{ns} longest"), raw.max as u64);
    };
    thread::scope(|scope| [10_000, 100_000].map(|ns| scope.spawn(move || run(ns))).map(drop));
    tally::print();
}

#[gpu_timed]
fn bare(work: &(Arc<CudaStream>, Spin)) -> LaunchResult {
    ran!();
    let (queue, spin) = work;
    spin.launch(queue, 10_000)
}

/// Makes a run of a function that events time, one of a function that needs records, and one of both.
fn among_phases(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("settle::timed");
    let work = (gpu.stream.clone(), gpu.spin("settle::bare"));
    bare(&work).unwrap();
    // For several phases.
    let settle = settle().min_time(Duration::from_millis(200));
    let opened =
        |settled: &Settled| settled.sites.iter().map(|site| site.series[0].opened()).sum::<u64>();
    let by_events = until_stable(settle, || {
        timed(&gpu.stream, &spin, 10_000).unwrap();
        gpu.synchronize();
    });
    note("by events", &by_events);
    tally::fact("opened by events", opened(&by_events));
    let recorded = until_stable(settle, || {
        bare(&work).unwrap();
        gpu.synchronize();
    });
    note("recorded", &recorded);
    let both = until_stable(settle, || {
        timed(&gpu.stream, &spin, 10_000).unwrap();
        bare(&work).unwrap();
        gpu.synchronize();
    });
    note("both", &both);
    tally::fact("opened recorded", opened(&recorded));
    tally::print();
}

/// Makes a run whose closure never waits for the GPU.
fn queue(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("settle::plain");
    note("run", &until_stable(settle().margin(0.2), || plain(&gpu.stream, &spin).unwrap()));
    gpu.synchronize();
    tally::print();
}

#[gpu_timed(stream = stream)]
fn on_gpu_or_cpu(stream: Option<&Arc<CudaStream>>, spin: Option<&Spin>) {
    ran!();
    if let (Some(stream), Some(spin)) = (stream, spin) {
        spin.launch(stream, 10_000).unwrap();
    }
    std::hint::black_box((0..100u64).sum::<u64>());
}

/// Makes a run whose calls are on the GPU or, with `cpu`, on the CPU. With `off`, timing is off during
/// the run.
fn any_clock(arguments: &[String]) {
    let has = |what: &str| arguments.iter().any(|argument| argument == what);
    let gpu = (!has("cpu")).then(Gpu::new);
    let spin = gpu.as_ref().map(|gpu| gpu.spin("settle::on_gpu_or_cpu"));
    gpu_time::set_enabled(!has("off"));
    let settled = until_stable(settle().margin(0.5), || {
        on_gpu_or_cpu(gpu.as_ref().map(|gpu| &gpu.stream), spin.as_ref());
        gpu.iter().for_each(Gpu::synchronize);
    });
    gpu_time::set_enabled(true);
    note("run", &settled);
    // The report of a run that calls no annotated function contains none of the program's sites.
    let nothing = until_stable(settle(), || ()).to_string();
    assert!(nothing.contains("\nno call of ") && nothing.contains(" was timed: "), "{nothing}");
    tally::print();
}

#[gpu_timed(graph, cold, sleep)]
fn node(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 10_000)
}

/// Replays a graph with calls of a function that has `graph`. Its launches get no timed nodes in the
/// run's own graph. With `off`, timing is off during the run.
fn back_to_back(arguments: &[String]) {
    const CALLS: u32 = 50;
    let gpu = Gpu::new();
    let (spin, other) = (gpu.spin("settle::node"), gpu.spin("settle::plain"));
    let is_off = arguments == ["off"];
    gpu_time::set_enabled(!is_off);
    let settled = until_stable(settle().graph(raw(&gpu.stream), CALLS), || {
        node(&gpu.stream, &spin).unwrap();
        plain(&gpu.stream, &other).unwrap();
    });
    gpu_time::set_enabled(true);
    note("run", &settled);
    if let Some(found) = &settled.back_to_back {
        assert_eq!((found.calls, found.upper_bound()), (CALLS, false));
        let [low, high] = found.ci95_ns().expect("there are enough replays");
        assert!(low <= found.per_call_ns() && found.per_call_ns() <= high);
        assert!(settled.to_string().contains("back to back: "), "{settled}");
        tally::fact("replays", found.replays());
        tally::fact("per_call_ns", found.per_call_ns());
        tally::fact("span_ns", found.span_ns().expect("the replays have times").median);
    }
    gpu.synchronize();
    tally::print();
}

fn raw(stream: &CudaStream) -> RawStream {
    // SAFETY: every caller keeps the stream until its run has ended.
    unsafe { raw_stream(stream.cu_stream()) }
}

/// Makes runs whose closures cannot be captured, each named after its problem. The stream still
/// works afterwards.
fn refused(_: &[String]) {
    let gpu = Gpu::new();
    let (stream, other) = (&gpu.stream, gpu.new_stream());
    let (spin, after) = (gpu.spin("settle::plain"), gpu.increment("settle::after"));
    let launch = || spin.launch(stream, 10_000).unwrap();
    let on = |name: &str, handle: RawStream, closure: &mut dyn FnMut()| {
        let settled = until_stable(settle().graph(handle, 4), closure);
        note(name, &settled);
        let [unmet] = &settled.unmet[..] else { panic!("{:?}", settled.unmet) };
        assert!(settled.back_to_back.is_none() && unmet.samples == 0);
        tally::fact(name, unmet.to_string());
    };
    let own = raw(stream);
    on("waits", own, &mut || {
        launch();
        // The closure ignores the error.
        _ = stream.synchronize();
    });
    on("allocates", own, &mut || {
        let mut address = 0;
        // SAFETY: writes one address; the memory is freed immediately.
        let allocated = unsafe { sys::cuMemAlloc_v2(&raw mut address, 1 << 20) }.result();
        // Fails, because the allocation has invalidated the capture.
        _ = spin.launch(stream, 10_000);
        if allocated.is_ok() {
            // SAFETY: the memory was just allocated.
            unsafe { sys::cuMemFree_v2(address) }.result().unwrap();
        }
    });
    on("elsewhere", own, &mut || spin.launch(&other, 10_000).unwrap());
    on("unjoined", own, &mut || {
        launch();
        other.join(stream).unwrap();
        spin.launch(&other, 10_000).unwrap();
    });
    on("null", NULL_STREAM, &mut launch.clone());
    stream.begin_capture(sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).unwrap();
    on("captured", own, &mut launch.clone());
    drop(
        stream
            .end_capture(sys::CUgraphInstantiate_flags(0))
            .unwrap()
            .expect("the capture is intact"),
    );
    let mut after = after;
    after.launch(stream).unwrap();
    tally::fact("after", after.times(stream));
    gpu.synchronize();
    tally::print();
}

/// Makes a run whose closure panics because it cannot wait during the capture.
fn unwinding(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("settle::plain");
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        until_stable(settle().graph(raw(&gpu.stream), 4), || {
            plain(&gpu.stream, &spin).unwrap();
            gpu.stream.synchronize().unwrap();
        })
    }));
    assert!(unwound.is_err());
    plain(&gpu.stream, &spin).unwrap();
    gpu.synchronize();
    tally::print();
}

/// Compares two equal closures, and then two of which one has kernels that take 5 % longer.
fn compared(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("settle::timed");
    let call = |ns: u64| {
        for _ in 0..8 {
            timed(&gpu.stream, &spin, ns).unwrap();
        }
        gpu.synchronize();
    };
    let run = |name: &str, ns: u64| {
        let compared = compare(settle(), ("old", || call(10_000)), ("new", || call(ns)));
        let [ratio] = &compared.ratios[..] else { panic!("{compared}") };
        assert_eq!(ratio.name, "scenario::settle::timed on cuda:0");
        let [low, high] = ratio.interval95().expect("there are enough blocks");
        let figures = [low, ratio.ratio().expect("there are blocks"), high];
        for (what, figure) in ["low", "ratio", "high"].into_iter().zip(figures) {
            tally::fact(&format!("{name} {what}"), (1e6 * figure) as u64);
        }
        compared
    };
    run("equal", 10_000).assert_not_slower(1.0);
    run("slower", 10_500).assert_not_slower(1.1);
    tally::print();
}

/// Compares closures that call no timed function.
fn uncompared(_: &[String]) {
    compare(settle(), ("old", || ()), ("new", || ())).assert_not_slower(1.0);
    tally::print();
}

/// Checks the order in which two closures take turns, until each has been first in a block.
fn turns(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("settle::untouched");
    let mut firsts = [0; 2];
    while firsts.contains(&0) && firsts.iter().sum::<usize>() < 200 {
        let calls = RefCell::new(Vec::new());
        let call = |closure: usize| {
            calls.borrow_mut().push(closure);
            untouched(&gpu.stream, &spin).unwrap();
            gpu.synchronize();
        };
        let compared = compare(settle(), ("old", || call(0)), ("new", || call(1)));
        let calls = calls.into_inner();
        let (prepared, measured) = calls.split_at(2);
        assert_eq!(prepared, [0, 1]);
        let block = measured.len() / compared.blocks as usize;
        for turns in measured.chunks(block) {
            let outer = turns[0];
            let in_turn = [outer, 1 - outer, 1 - outer, outer];
            assert_eq!(turns, in_turn.map(|closure| vec![closure; block / 4]).concat());
            firsts[outer] += 1;
        }
    }
    tally::fact("old first", firsts[0]);
    tally::fact("new first", firsts[1]);
    tally::print();
}
