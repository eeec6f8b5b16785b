//! Calls that are timed, and calls in warm-up: both need a GPU.

use std::error::Error;
use std::hint::black_box;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use cudarc::driver::sys::{self, CUevent, CUevent_flags};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaStream, DriverError, LaunchConfig, PushKernelArg, result,
};
use cudarc::nvrtc::Ptx;
use gpu_time::gpu_timed;
use gpu_time_kernels::workloads;

use crate::allocations;
use crate::idle::over_plain;
use crate::table::{Bound, Figure, Table};

const BATCH: usize = 200;
const BATCHES: usize = 201;
const THREADS: usize = 8;
const ONE: LaunchConfig =
    LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };

pub struct Gpu {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    spin: CudaFunction,
}

impl Gpu {
    pub fn new() -> Result<Gpu, Box<dyn Error>> {
        // SAFETY: looks for the driver's library; without it cudarc would panic.
        if !unsafe { sys::is_culib_present() } {
            return Err("no CUDA driver".into());
        }
        let context = CudaContext::new(0)?;
        let stream = context.new_stream()?;
        // SAFETY: no memory is shared between streams here.
        unsafe { context.disable_event_tracking() };
        let spin = context
            .load_module(Ptx::from_src(workloads::PTX))?
            .load_function(workloads::SPIN_NS)?;
        Ok(Gpu { context, stream, spin })
    }
}

const NS: u64 = 1_000;
const WITH_CARE: &str = "raw pair, asking for captures, harvested";
const DECIDED: &str = "the same, and told whether it was fed";

fn launch(stream: &Arc<CudaStream>, spin: &CudaFunction) -> Result<(), DriverError> {
    // SAFETY: the argument is the kernel's.
    unsafe { stream.launch_builder(spin).arg(&NS).launch(ONE) }.map(drop)
}

#[gpu_timed]
fn timed(stream: &Arc<CudaStream>, spin: &CudaFunction) -> Result<(), DriverError> {
    // SAFETY: the argument is the kernel's.
    unsafe { stream.launch_builder(spin).arg(&NS).launch(ONE) }.map(drop)
}

#[gpu_timed(scope = "body")]
fn timed_body(stream: &Arc<CudaStream>, spin: &CudaFunction) -> Result<(), DriverError> {
    // SAFETY: the argument is the kernel's.
    unsafe { stream.launch_builder(spin).arg(&NS).launch(ONE) }.map(drop)
}

#[gpu_timed(warmup = u32::MAX)]
#[inline(never)]
fn warming(stream: &Arc<CudaStream>, x: u64) -> u64 {
    let _ = stream;
    black_box(x)
}

/// Two events that were made before.
#[derive(Clone, Copy)]
struct Pair(CUevent, CUevent);

fn pairs(n: usize) -> Vec<Pair> {
    let event = || {
        let mut event: CUevent = std::ptr::null_mut();
        // SAFETY: writes one handle; the context is current.
        unsafe { sys::cuEventCreate(&raw mut event, CUevent_flags::CU_EVENT_DEFAULT as u32) }
            .result()
            .expect("an event");
        event
    };
    (0..n).map(|_| Pair(event(), event())).collect()
}

fn by_hand(stream: &Arc<CudaStream>, spin: &CudaFunction, pair: Pair) -> Result<(), DriverError> {
    let raw = stream.cu_stream();
    // SAFETY: events and stream are of one live context.
    unsafe { sys::cuEventRecord(pair.0, raw) }.result()?;
    launch(stream, spin)?;
    // SAFETY: as above.
    unsafe { sys::cuEventRecord(pair.1, raw) }.result()
}

/// The same with what a library must add that is left in a program: is the stream being captured, is
/// the context still the same, and what did an earlier pair measure?
fn by_hand_with_care(
    stream: &Arc<CudaStream>,
    spin: &CudaFunction,
    pair: Pair,
) -> Result<(), DriverError> {
    let raw = stream.cu_stream();
    let is_capturing = || {
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: writes the status of a live stream.
        unsafe { sys::cuStreamIsCapturing(raw, &raw mut status) }.result().map(|()| status)
    };
    let mut id = 0;
    // SAFETY: the context is live; writes one integer.
    unsafe { sys::cuCtxGetId(stream.context().cu_ctx(), &raw mut id) }.result()?;
    black_box(id);
    // SAFETY: every pair was recorded in the batch before, and the GPU has passed it.
    black_box(unsafe { result::event::elapsed(pair.0, pair.1) }?);
    black_box(is_capturing()?);
    // SAFETY: events and stream are of one live context.
    unsafe { sys::cuEventRecord(pair.0, raw) }.result()?;
    launch(stream, spin)?;
    // SAFETY: as above.
    unsafe { sys::cuEventRecord(pair.1, raw) }.result()
}

/// The same with what tells fed from starved: when the stop was enqueued, and when the GPU came to an
/// earlier start, counted from an event that it passed before.
fn by_hand_decided(
    stream: &Arc<CudaStream>,
    spin: &CudaFunction,
    pair: Pair,
    anchor: CUevent,
) -> Result<(), DriverError> {
    // SAFETY: both were recorded before, and the GPU has passed them.
    black_box(unsafe { result::event::elapsed(anchor, pair.0) }?);
    by_hand_with_care(stream, spin, pair)?;
    black_box(Instant::now());
    Ok(())
}

/// Nanoseconds a call in batches of 200 on a GPU that is idle before each.
struct Batches<'a> {
    gpu: &'a Gpu,
    values: Vec<(&'static str, Vec<f64>)>,
}

impl Batches<'_> {
    fn one(&mut self, what: &'static str, mut call: impl FnMut(usize)) {
        self.gpu.stream.synchronize().expect("the GPU");
        let start = Instant::now();
        for i in 0..BATCH {
            call(i);
        }
        let ns = start.elapsed().as_nanos() as f64 / BATCH as f64;
        match self.values.iter_mut().find(|(name, _)| *name == what) {
            Some((_, values)) => values.push(ns),
            None => self.values.push((what, vec![ns])),
        }
    }

    /// The first batch of each is a warm-up.
    fn of(&self, what: &str) -> &[f64] {
        let values = self.values.iter().find(|(name, _)| *name == what);
        values.map_or(&[][..], |(_, values)| &values[1..])
    }

    fn figure(&self, what: &str) -> Figure {
        Figure::of(self.of(what).to_vec())
    }

    /// The difference of two, batch by batch.
    fn difference(&self, what: &str, from: &str) -> Figure {
        Figure::of(self.of(what).iter().zip(self.of(from)).map(|(a, b)| a - b).collect())
    }
}

pub fn run(gpu: &Gpu, table: &mut Table) {
    single(gpu, table);
    table.row(
        "in warm-up, over plain",
        over_plain(|x| warming(&gpu.stream, x)),
        "ns",
        Bound::AtMost(6.0),
    );
    threads(gpu, table);
    steady(gpu, table);
    million(gpu, table);
}

/// All variants in turn, batch by batch, so that they meet the same machine.
fn single(gpu: &Gpu, table: &mut Table) {
    let Gpu { stream, spin, context } = gpu;
    let own = pairs(BATCH);
    let anchor = pairs(1)[0].0;
    // SAFETY: event and stream are of one live context.
    unsafe { sys::cuEventRecord(anchor, stream.cu_stream()) }.result().expect("an anchor");
    let mut batches = Batches { gpu, values: Vec::new() };
    let timing = Some(CUevent_flags::CU_EVENT_DEFAULT);
    for _ in 0..BATCHES {
        batches.one("launch alone", |_| launch(stream, spin).expect("a launch"));
        batches.one("raw pair", |i| by_hand(stream, spin, own[i]).expect("a launch"));
        batches.one(WITH_CARE, |i| by_hand_with_care(stream, spin, own[i]).expect("a launch"));
        batches.one(DECIDED, |i| {
            by_hand_decided(stream, spin, own[i], anchor).expect("a launch");
        });
        batches.one("timed", |_| timed(stream, spin).expect("a launch"));
        batches.one("timed, body scope", |_| timed_body(stream, spin).expect("a launch"));
        let mut kept = Vec::with_capacity(BATCH);
        batches.one("cudarc `record_kernel_launch`", |_| {
            let mut builder = stream.launch_builder(spin);
            builder.arg(&NS).record_kernel_launch(CUevent_flags::CU_EVENT_DEFAULT);
            // SAFETY: the argument is the kernel's.
            kept.push(unsafe { builder.launch(ONE) }.expect("a launch"));
        });
        stream.synchronize().expect("the GPU");
        drop(kept);
        let mut kept = Vec::with_capacity(BATCH);
        batches.one("cudarc events made per call", |_| {
            let (start, stop) = (context.new_event(timing), context.new_event(timing));
            let (start, stop) = (start.expect("an event"), stop.expect("an event"));
            start.record(stream).expect("a record");
            launch(stream, spin).expect("a launch");
            stop.record(stream).expect("a record");
            kept.push((start, stop));
        });
        stream.synchronize().expect("the GPU");
    }
    for what in [
        "launch alone",
        "raw pair",
        WITH_CARE,
        DECIDED,
        "timed",
        "timed, body scope",
        "cudarc `record_kernel_launch`",
        "cudarc events made per call",
    ] {
        table.row(what, batches.figure(what), "ns", Bound::None);
    }
    table.row(
        "the driver calls of a careful pair alone, over raw pair",
        batches.difference(WITH_CARE, "raw pair"),
        "ns",
        Bound::None,
    );
    table.row(
        "timed, over raw pair",
        batches.difference("timed", "raw pair"),
        "ns",
        Bound::AtMost(300.0),
    );
    let undecided = batches.of("timed").iter().zip(batches.of("raw pair"));
    let decision = batches.of(DECIDED).iter().zip(batches.of(WITH_CARE));
    let undecided = undecided
        .zip(decision)
        .map(|((timed, raw), (with, without))| (timed - raw) - (with - without));
    table.row(
        "the same, less what telling fed from starved costs by hand",
        Figure::of(undecided.collect()),
        "ns",
        Bound::AtMost(150.0),
    );
    table.row(
        "timed in body scope, over raw pair",
        batches.difference("timed, body scope", "raw pair"),
        "ns",
        Bound::None,
    );
}

/// Eight threads, each with a stream of its own, for a second each way, in turn.
fn threads(gpu: &Gpu, table: &mut Table) {
    const TURN: Duration = Duration::from_millis(500);
    let rate = |is_timed: bool| {
        let barrier = Barrier::new(THREADS);
        let calls: u64 = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        gpu.context.bind_to_thread().expect("the context");
                        let stream = gpu.context.new_stream().expect("a stream");
                        let own = pairs(BATCH);
                        barrier.wait();
                        let start = Instant::now();
                        let mut calls = 0;
                        while start.elapsed() < TURN {
                            for pair in &own {
                                if is_timed {
                                    timed(&stream, &gpu.spin)
                                } else {
                                    by_hand(&stream, &gpu.spin, *pair)
                                }
                                .expect("a launch");
                            }
                            calls += BATCH as u64;
                            stream.synchronize().expect("the GPU");
                        }
                        calls as f64 / start.elapsed().as_secs_f64()
                    })
                })
                .collect();
            workers.into_iter().map(|w| w.join().expect("a thread") as u64).sum()
        });
        calls as f64
    };
    let turns: Vec<(f64, f64)> = (0..5).map(|_| (rate(false), rate(true))).collect();
    let by_hand = Figure::of(turns.iter().map(|t| t.0).collect());
    let timed = Figure::of(turns.iter().map(|t| t.1).collect());
    let ratio = Figure::of(turns.iter().map(|t| t.1 / t.0).collect());
    table.row("8 threads, by hand", by_hand, "calls/s", Bound::None);
    table.row("8 threads, timed", timed, "calls/s", Bound::None);
    table.row("8 threads, timed over by hand", ratio, "ratio", Bound::AtLeast(0.9));
}

fn steady(gpu: &Gpu, table: &mut Table) {
    let run = |calls: usize| {
        for i in 0..calls {
            timed(&gpu.stream, &gpu.spin).expect("a launch");
            if i % BATCH == 0 {
                gpu.stream.synchronize().expect("the GPU");
            }
        }
    };
    run(2_000);
    let before = allocations::made();
    for _ in 0..10_000 {
        launch(&gpu.stream, &gpu.spin).expect("a launch");
    }
    let plain = allocations::made() - before;
    let before = allocations::made();
    run(10_000);
    let timed = allocations::made() - before;
    table.value(
        "allocations in 10,000 timed calls, over plain ones",
        timed as f64 - plain as f64, // cudarc's launches allocate
        "",
        Bound::AtMost(0.0),
    );
}

#[gpu_timed]
fn many(stream: &Arc<CudaStream>, spin: &CudaFunction, ns: u64) -> Result<(), DriverError> {
    // SAFETY: the argument is the kernel's.
    unsafe { stream.launch_builder(spin).arg(&ns).launch(ONE) }.map(drop)
}

fn million(gpu: &Gpu, table: &mut Table) {
    const SAMPLES: u64 = 1_000_000;
    let bytes = |call: &dyn Fn(u64)| {
        let before = allocations::in_use();
        (0..SAMPLES).for_each(call);
        gpu.stream.synchronize().expect("the GPU");
        allocations::in_use() - before
    };
    // As many brackets as a thread may ever have wait behind this, so that no more are made later.
    // SAFETY: the argument is the kernel's.
    unsafe { gpu.stream.launch_builder(&gpu.spin).arg(&20_000_000u64).launch(ONE) }
        .expect("a launch");
    (0..3_000).for_each(|_| timed(&gpu.stream, &gpu.spin).expect("a launch"));
    gpu.stream.synchronize().expect("the GPU");
    let grown = bytes(&|i| many(&gpu.stream, &gpu.spin, i % 1_000).expect("a launch"));
    // The launch and the function share one, because a call makes one launch at most.
    table.value(
        "a million samples: memory of their series",
        grown as f64,
        "B",
        Bound::AtMost(262_144.0),
    );
    let start = Instant::now();
    let snapshot = gpu_time::snapshot();
    let text = snapshot.to_string() + &snapshot.to_json();
    let took = start.elapsed();
    assert!(text.contains("many"), "the report names every function");
    table.value("a million samples: report", took.as_secs_f64() * 1e3, "ms", Bound::AtMost(50.0));
}
