//! The cost of timed calls and warm-up calls, which need a GPU.

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
const SINGLE_THREAD: LaunchConfig =
    LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };

pub struct Gpu {
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    spin: CudaFunction,
}

impl Gpu {
    pub fn new() -> Result<Gpu, Box<dyn Error>> {
        // SAFETY: only looks for the driver library, without which cudarc would panic.
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

const SPIN_NS: u64 = 1_000;
// Row labels: see the bench's documentation.
const CHECKED: &str = "raw pair, asking for captures, harvested";
const JUDGED: &str = "the same, and told whether it was fed";

fn launch(stream: &Arc<CudaStream>, spin: &CudaFunction) -> Result<(), DriverError> {
    // SAFETY: the argument matches the kernel.
    unsafe { stream.launch_builder(spin).arg(&SPIN_NS).launch(SINGLE_THREAD) }.map(drop)
}

#[gpu_timed]
fn timed(stream: &Arc<CudaStream>, spin: &CudaFunction) -> Result<(), DriverError> {
    // SAFETY: the argument matches the kernel.
    unsafe { stream.launch_builder(spin).arg(&SPIN_NS).launch(SINGLE_THREAD) }.map(drop)
}

#[gpu_timed(scope = "body")]
fn timed_body(stream: &Arc<CudaStream>, spin: &CudaFunction) -> Result<(), DriverError> {
    // SAFETY: the argument matches the kernel.
    unsafe { stream.launch_builder(spin).arg(&SPIN_NS).launch(SINGLE_THREAD) }.map(drop)
}

#[gpu_timed(warmup = u32::MAX)]
#[inline(never)]
fn warming(stream: &Arc<CudaStream>, x: u64) -> u64 {
    let _ = stream;
    black_box(x)
}

/// Two events, created in advance.
#[derive(Clone, Copy)]
struct Pair(CUevent, CUevent);

fn pairs(n: usize) -> Vec<Pair> {
    let event = || {
        let mut event: CUevent = std::ptr::null_mut();
        // SAFETY: the call writes one handle, and the context is current.
        unsafe { sys::cuEventCreate(&raw mut event, CUevent_flags::CU_EVENT_DEFAULT as u32) }
            .result()
            .expect("create an event");
        event
    };
    (0..n).map(|_| Pair(event(), event())).collect()
}

/// Launches between two events.
fn raw_pair(stream: &Arc<CudaStream>, spin: &CudaFunction, pair: Pair) -> Result<(), DriverError> {
    let raw = stream.cu_stream();
    // SAFETY: the events and the stream belong to one live context.
    unsafe { sys::cuEventRecord(pair.0, raw) }.result()?;
    launch(stream, spin)?;
    // SAFETY: as above.
    unsafe { sys::cuEventRecord(pair.1, raw) }.result()
}

/// [`raw_pair`] with the additional driver calls that a production library must make: for the
/// stream's capture state, for the context's id, and for the result of an earlier pair.
fn checked_pair(
    stream: &Arc<CudaStream>,
    spin: &CudaFunction,
    pair: Pair,
) -> Result<(), DriverError> {
    let raw = stream.cu_stream();
    let is_capturing = || {
        let mut status = sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream is live; the call writes its status.
        unsafe { sys::cuStreamIsCapturing(raw, &raw mut status) }.result().map(|()| status)
    };
    let mut id = 0;
    // SAFETY: the context is live; the call writes one integer.
    unsafe { sys::cuCtxGetId(stream.context().cu_ctx(), &raw mut id) }.result()?;
    black_box(id);
    // SAFETY: every pair was recorded in the previous batch and is complete.
    black_box(unsafe { result::event::elapsed(pair.0, pair.1) }?);
    black_box(is_capturing()?);
    // SAFETY: the events and the stream belong to one live context.
    unsafe { sys::cuEventRecord(pair.0, raw) }.result()?;
    launch(stream, spin)?;
    // SAFETY: as above.
    unsafe { sys::cuEventRecord(pair.1, raw) }.result()
}

/// [`checked_pair`] with the additional calls needed to distinguish fed from starved: for the host
/// time after the stop record, and for the GPU time of an earlier start relative to an anchor
/// event.
fn judged_pair(
    stream: &Arc<CudaStream>,
    spin: &CudaFunction,
    pair: Pair,
    anchor: CUevent,
) -> Result<(), DriverError> {
    // SAFETY: both events were recorded before and are complete.
    black_box(unsafe { result::event::elapsed(anchor, pair.0) }?);
    checked_pair(stream, spin, pair)?;
    black_box(Instant::now());
    Ok(())
}

/// The nanoseconds per call in batches of 200 calls. The GPU is idle before each batch.
struct Batches<'a> {
    gpu: &'a Gpu,
    values: Vec<(&'static str, Vec<f64>)>,
}

impl Batches<'_> {
    /// Times one batch of `call` and records it under `label`.
    fn run(&mut self, label: &'static str, mut call: impl FnMut(usize)) {
        self.gpu.stream.synchronize().expect("synchronize");
        let start = Instant::now();
        for i in 0..BATCH {
            call(i);
        }
        let ns = start.elapsed().as_nanos() as f64 / BATCH as f64;
        match self.values.iter_mut().find(|(known, _)| *known == label) {
            Some((_, values)) => values.push(ns),
            None => self.values.push((label, vec![ns])),
        }
    }

    /// Returns all batches with a label, except the first, which is a warm-up.
    fn of(&self, label: &str) -> &[f64] {
        let values = self.values.iter().find(|(known, _)| *known == label);
        values.map_or(&[][..], |(_, values)| &values[1..])
    }

    fn figure(&self, label: &str) -> Figure {
        Figure::of(self.of(label).to_vec())
    }

    /// Subtracts two labels batch by batch.
    fn difference(&self, label: &str, base: &str) -> Figure {
        Figure::of(self.of(label).iter().zip(self.of(base)).map(|(a, b)| a - b).collect())
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

/// Runs all variants in turn, batch by batch, so that all of them see the same machine state.
fn single(gpu: &Gpu, table: &mut Table) {
    let Gpu { stream, spin, context } = gpu;
    let pool = pairs(BATCH);
    let anchor = pairs(1)[0].0;
    // SAFETY: the event and the stream belong to one live context.
    unsafe { sys::cuEventRecord(anchor, stream.cu_stream()) }.result().expect("record the anchor");
    let mut batches = Batches { gpu, values: Vec::new() };
    let timing = Some(CUevent_flags::CU_EVENT_DEFAULT);
    for _ in 0..BATCHES {
        batches.run("launch alone", |_| launch(stream, spin).expect("launch"));
        batches.run("raw pair", |i| raw_pair(stream, spin, pool[i]).expect("launch"));
        batches.run(CHECKED, |i| checked_pair(stream, spin, pool[i]).expect("launch"));
        batches.run(JUDGED, |i| {
            judged_pair(stream, spin, pool[i], anchor).expect("launch");
        });
        batches.run("timed", |_| timed(stream, spin).expect("launch"));
        batches.run("timed, body scope", |_| timed_body(stream, spin).expect("launch"));
        let mut kept = Vec::with_capacity(BATCH);
        batches.run("cudarc `record_kernel_launch`", |_| {
            let mut builder = stream.launch_builder(spin);
            builder.arg(&SPIN_NS).record_kernel_launch(CUevent_flags::CU_EVENT_DEFAULT);
            // SAFETY: the argument matches the kernel.
            kept.push(unsafe { builder.launch(SINGLE_THREAD) }.expect("launch"));
        });
        stream.synchronize().expect("synchronize");
        drop(kept);
        let mut kept = Vec::with_capacity(BATCH);
        batches.run("cudarc events made per call", |_| {
            let (start, stop) = (context.new_event(timing), context.new_event(timing));
            let (start, stop) = (start.expect("create an event"), stop.expect("create an event"));
            start.record(stream).expect("record an event");
            launch(stream, spin).expect("launch");
            stop.record(stream).expect("record an event");
            kept.push((start, stop));
        });
        stream.synchronize().expect("synchronize");
    }
    for label in [
        "launch alone",
        "raw pair",
        CHECKED,
        JUDGED,
        "timed",
        "timed, body scope",
        "cudarc `record_kernel_launch`",
        "cudarc events made per call",
    ] {
        table.row(label, batches.figure(label), "ns", Bound::None);
    }
    table.row(
        "the driver calls of a careful pair alone, over raw pair",
        batches.difference(CHECKED, "raw pair"),
        "ns",
        Bound::None,
    );
    table.row(
        "timed, over raw pair",
        batches.difference("timed", "raw pair"),
        "ns",
        Bound::AtMost(300.0),
    );
    let overhead = batches.of("timed").iter().zip(batches.of("raw pair"));
    let judging = batches.of(JUDGED).iter().zip(batches.of(CHECKED));
    let without_judging = overhead
        .zip(judging)
        .map(|((timed, raw), (judged, checked))| (timed - raw) - (judged - checked));
    table.row(
        "the same, less what telling fed from starved costs by hand",
        Figure::of(without_judging.collect()),
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

/// Compares timed calls with raw pairs on eight threads, each with its own stream, in five
/// alternating turns of half a second.
fn threads(gpu: &Gpu, table: &mut Table) {
    const TURN: Duration = Duration::from_millis(500);
    let rate = |is_timed: bool| {
        let barrier = Barrier::new(THREADS);
        let calls: u64 = std::thread::scope(|scope| {
            let workers: Vec<_> = (0..THREADS)
                .map(|_| {
                    scope.spawn(|| {
                        gpu.context.bind_to_thread().expect("bind the context");
                        let stream = gpu.context.new_stream().expect("create a stream");
                        let pool = pairs(BATCH);
                        barrier.wait();
                        let start = Instant::now();
                        let mut calls = 0;
                        while start.elapsed() < TURN {
                            for pair in &pool {
                                if is_timed {
                                    timed(&stream, &gpu.spin)
                                } else {
                                    raw_pair(&stream, &gpu.spin, *pair)
                                }
                                .expect("launch");
                            }
                            calls += BATCH as u64;
                            stream.synchronize().expect("synchronize");
                        }
                        calls as f64 / start.elapsed().as_secs_f64()
                    })
                })
                .collect();
            workers.into_iter().map(|w| w.join().expect("join a thread") as u64).sum()
        });
        calls as f64
    };
    let turns: Vec<(f64, f64)> = (0..5).map(|_| (rate(false), rate(true))).collect();
    let raw = Figure::of(turns.iter().map(|t| t.0).collect());
    let timed = Figure::of(turns.iter().map(|t| t.1).collect());
    let ratio = Figure::of(turns.iter().map(|t| t.1 / t.0).collect());
    table.row("8 threads, by hand", raw, "calls/s", Bound::None);
    table.row("8 threads, timed", timed, "calls/s", Bound::None);
    table.row("8 threads, timed over by hand", ratio, "ratio", Bound::AtLeast(0.9));
}

/// Counts the allocations made by timed calls in steady state.
fn steady(gpu: &Gpu, table: &mut Table) {
    let run = |calls: usize| {
        for i in 0..calls {
            timed(&gpu.stream, &gpu.spin).expect("launch");
            if i % BATCH == 0 {
                gpu.stream.synchronize().expect("synchronize");
            }
        }
    };
    run(2_000);
    let before = allocations::count_of_thread();
    for _ in 0..10_000 {
        launch(&gpu.stream, &gpu.spin).expect("launch");
    }
    let plain = allocations::count_of_thread() - before;
    let before = allocations::count_of_thread();
    run(10_000);
    let timed = allocations::count_of_thread() - before;
    table.value(
        "allocations in 10,000 timed calls, over plain ones",
        timed as f64 - plain as f64, // cudarc's launches allocate
        "",
        Bound::AtMost(0.0),
    );
}

#[gpu_timed]
fn many(stream: &Arc<CudaStream>, spin: &CudaFunction, ns: u64) -> Result<(), DriverError> {
    // SAFETY: the argument matches the kernel.
    unsafe { stream.launch_builder(spin).arg(&ns).launch(SINGLE_THREAD) }.map(drop)
}

/// Measures the memory taken by a million samples, and their report.
fn million(gpu: &Gpu, table: &mut Table) {
    const SAMPLES: u64 = 1_000_000;
    let bytes = |call: &dyn Fn(u64)| {
        let before = allocations::in_use();
        (0..SAMPLES).for_each(call);
        gpu.stream.synchronize().expect("synchronize");
        allocations::in_use() - before
    };
    // More brackets wait behind this kernel than a thread may have pending, so all of a thread's
    // brackets are allocated before the measurement.
    // SAFETY: the argument matches the kernel.
    unsafe { gpu.stream.launch_builder(&gpu.spin).arg(&20_000_000u64).launch(SINGLE_THREAD) }
        .expect("launch");
    (0..3_000).for_each(|_| timed(&gpu.stream, &gpu.spin).expect("launch"));
    gpu.stream.synchronize().expect("synchronize");
    let grown = bytes(&|i| many(&gpu.stream, &gpu.spin, i % 1_000).expect("launch"));
    // The launch and the function share one series, because a call makes at most one launch.
    table.value(
        "a million samples: memory of their series",
        grown as f64,
        "B",
        Bound::AtMost(262_144.0),
    );
    let start = Instant::now();
    let snapshot = gpu_time::snapshot();
    let text = snapshot.to_string() + &snapshot.to_json();
    let duration = start.elapsed();
    assert!(text.contains("many"), "the report lacks `many`");
    let ms = duration.as_secs_f64() * 1e3;
    table.value("a million samples: report", ms, "ms", Bound::AtMost(50.0));
}
