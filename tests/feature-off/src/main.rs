//! Uses gpu-time's whole API. Compiles with and without the `enabled` feature.
//!
//! Prints the contents of the snapshot. With the feature, the report appears twice on stderr.

// Items used only by the attribute are unused without the feature.
#![allow(dead_code, unused_variables)]

use std::error::Error;
use std::ffi::c_void;
use std::fmt::{Debug, Display};
use std::pin::pin;
use std::ptr;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use gpu_time::{
    BackToBack, Budget, Bytes, ClockError, Clocks, Compared, Configure, Coverage, Device,
    Elsewhere, Eviction, Flops, FlushProof, GpuStream, Histogram, Kernel, KernelTimes,
    LEGACY_STREAM, Launch, Launches, LockedClocks, NULL_STREAM, Node, Overlap, PER_THREAD_STREAM,
    PerCall, Process, Ratio, RawStream, ReadError, Series, Settle, Settled, Site, Slot, Snapshot,
    Stats, Timeline, Unattributed, Unmet, compare, configure, gpu_timed, guard, lock_clocks,
    open_window, publish, raw_stream, report, scope, set_default_stream, set_enabled,
    set_thread_default_stream, snapshot, until_stable,
};

/// The methods of a cudarc stream that generated code calls.
struct CudaStream {
    context: Arc<CudaContext>,
}

struct CudaContext;

impl CudaStream {
    fn cu_stream(&self) -> *mut () {
        ptr::null_mut()
    }

    fn context(&self) -> &Arc<CudaContext> {
        &self.context
    }
}

impl CudaContext {
    fn cu_ctx(&self) -> *mut () {
        ptr::null_mut()
    }
}

const WARMUP: u32 = 2;

#[gpu_timed(clock = "host", warmup = WARMUP, name = "on the CPU", bytes = n, flops = Some(&n)?)]
fn host(n: u64) -> u64 {
    (0..n).sum()
}

#[gpu_timed]
fn without_stream(work: &Work) {
    work.run();
}

#[gpu_timed(clock = "kernels", kernels = 0.5)]
fn kernels(n: u64) {}

#[gpu_timed(clock = "sync", bytes = None::<u64>)]
fn inferred(stream: Option<&Arc<CudaStream>>) {}

#[gpu_timed(stream = work.stream.clone(), cold, sleep, scope = "body", crate = ::gpu_time)]
fn given(work: &Work) {
    work.run();
}

#[gpu_timed(stream = work.stream.as_ref(), cold = "dirty", sleep = "50us", launch = ["run", "go"])]
fn launching(work: &Work) {
    work.run();
    work.go();
}

#[gpu_timed(stream = stream.ok_or("none"), scope = "launches", launch = "run")]
async fn awaited(stream: Option<&Arc<CudaStream>>, work: &Work) {
    work.run();
}

/// CPU work, which never has a stream.
struct Work {
    stream: Option<Arc<CudaStream>>,
}

#[gpu_timed(clock = "host", warmup = 1)]
impl Work {
    #[gpu_timed(skip)]
    fn run(&self) {}

    fn go(&self) {}
}

#[gpu_timed(clock = "host", crate = ::gpu_time)]
mod inner {
    pub fn function() {}
}

/// Times blocks. The compiler must not lint the braces that remain after expansion.
fn blocks(n: u64) -> Option<u64> {
    let timed = guard!("the rest", clock = "host", key = n);
    let found: u64 = scope!("a block", clock = "host", { n.checked_sub(1)? });
    inner::function();
    drop(timed);
    Some(found)
}

/// Makes a function and a block whose keys and values come from a macro, with operators beside them.
macro_rules! generated {
    ($n:expr, $key:meta, $body:block) => {
        #[gpu_timed($key, clock = "host", key = $n, bytes = $n * 4)]
        fn generated() -> u32 {
            let bytes = $n * 4;
            bytes
        }

        fn generated_blocks() -> u32 {
            scope!("a sum", clock = "host", key = $n, { $n * 4 })
                + scope!("a fragment", clock = "host", $body)
        }
    };
}

generated!(1 + 2, warmup = 1, { 5 });

/// Has values with commas inside of types.
#[gpu_timed(clock = "host", key = parse as fn(&'static str) -> Result<u8, u8> as usize, flops = 2)]
fn types(parsed: &'static Result<u8, u8>) {
    let cast = scope!(
        "casts",
        clock = "host",
        key = parsed as &'static Result<u8, u8> as *const Result<u8, u8> as usize,
        flops = 2,
        { 1 }
    );
}

fn parse(text: &'static str) -> Result<u8, u8> {
    Ok(1)
}

/// An item that is skipped twice over.
#[gpu_timed(skip)]
#[gpu_timed(skip)]
impl Queue {}

/// Sets every option once, to its default.
fn configured() -> Configure {
    let options = configure().report("").filter("").sample(None).budget(None).warmup(None);
    same(&options);
    options
        .cold("")
        .sleep("")
        .kernels("")
        .windows("")
        .notes("")
        .view("")
        .label("")
        .program_version("")
        .bias("")
        .trace_last(None)
}

/// A user-defined stream type.
struct Queue(RawStream);

// SAFETY: the NULL stream is never destroyed.
unsafe impl GpuStream for Queue {
    fn stream_handle(&self) -> *mut c_void {
        self.0.stream_handle()
    }
}

/// Specifies the NULL stream in every supported way.
fn null_streams() -> impl GpuStream {
    // SAFETY: the NULL stream is never destroyed.
    let raw = unsafe { raw_stream(ptr::null_mut::<()>()) };
    assert_eq!(raw, NULL_STREAM);
    assert_ne!(LEGACY_STREAM, PER_THREAD_STREAM);
    Arc::new(Box::new(Queue(raw)))
}

fn main() {
    configured().apply();
    assert!(null_streams().stream_handle().is_null());
    configure().sample(1.0).warmup(0).apply();
    assert_eq!((generated(), generated_blocks()), (12, 17));
    types(&Ok(1));
    let work = Work { stream: None };
    set_enabled(true);
    set_default_stream(NULL_STREAM);
    set_thread_default_stream(Arc::new(Queue(NULL_STREAM)));
    set_thread_default_stream(None::<RawStream>);
    set_default_stream(None::<RawStream>);
    for n in 0..5 {
        host(n);
        assert_eq!(blocks(n), n.checked_sub(1));
        without_stream(&work);
        kernels(n);
        inferred(None);
        given(&work);
        launching(&work);
        let done = pin!(awaited(None, &work)).poll(&mut Context::from_waker(Waker::noop()));
        assert!(done.is_ready());
    }
    set_enabled(false);
    host(1);
    set_enabled(true);
    report();
    publish();
    open_window(Duration::from_millis(1));
    line("settled", show_settled(&settle()));
    line("compared", show_compared());
    show(&snapshot());
    // The `nvml` feature is off in both builds.
    line("clocks", lock_clocks(1500).map_err(show_error).map(|locked| show_locked(&locked)));
}

/// Runs `until_stable`, which ends quickly because it needs only six samples.
fn settle() -> Settled {
    let (brief, long) = (Duration::ZERO, Duration::from_secs(60));
    let options = Settle::default().margin(0.9).min_samples(6).min_time(brief).timeout(long);
    same(&options.as_found());
    same(&options.cold_dirty());
    same(&options.graph(NULL_STREAM, 3));
    let (started, mut calls) = (Instant::now(), 0);
    let settled = until_stable(options.cold(), || {
        host(1);
        calls += 1;
    });
    assert_eq!(settled.calls(), calls);
    assert!(settled.elapsed() <= started.elapsed());
    settled
}

/// Compares two closures that call no timed function, so that both builds call each closure once.
fn show_compared() -> impl Debug {
    let (started, mut old, mut new) = (Instant::now(), 0, 0);
    // Where timing is on, `assert_not_slower` panics if nothing was compared.
    set_enabled(false);
    let compared: Compared = compare(Settle::default(), ("old", || old += 1), ("new", || new += 1));
    set_enabled(true);
    same(&compared);
    assert!(!compared.is_known());
    compared.assert_not_slower(1.0);
    assert!(compared.to_string().contains("`old`"));
    let show = |ratio: &Ratio| {
        same(ratio);
        let figures = (ratio.ratio(), ratio.interval95(), ratio.upper_bound());
        (ratio.name().to_owned(), ratio.blocks(), figures, ratio.to_string())
    };
    let ratios: Vec<_> = compared.ratios().iter().map(show).collect();
    let names = compared.names().map(str::to_owned);
    assert!(compared.elapsed() <= started.elapsed());
    (names, old, new, compared.blocks(), ratios)
}

fn show_settled(settled: &Settled) -> impl Debug {
    same(settled);
    assert!(settled.to_string().starts_with("gpu-time "));
    assert_eq!(settled.clone().into_snapshot(), **settled);
    let unmet: Vec<_> = settled.unmet().iter().map(show_unmet).collect();
    let replays = settled.back_to_back().map(show_replays);
    // There may be more calls than samples, because a sample can be lost.
    (settled.calls().min(6), settled.is_settled(), unmet, replays)
}

fn show_replays(found: &BackToBack) -> impl Debug {
    same(found);
    let (per_call, span) = (found.per_call_ns(), found.span_ns().map(Stats::median));
    let counts = (found.calls(), found.replays(), found.upper_bound());
    (found.to_string(), counts, per_call, found.ci95_ns(), span)
}

fn show_unmet(unmet: &Unmet) -> impl Debug {
    same(unmet);
    let place = (unmet.site().len(), unmet.series().len());
    (unmet.to_string(), place, unmet.samples(), unmet.margin(), unmet.reason().len())
}

fn show(snapshot: &Snapshot) {
    same(snapshot);
    assert!(snapshot.to_string().starts_with("gpu-time "));
    assert!(snapshot.to_json().contains(r#""schema": "gpu-time/1""#));
    let is_off = snapshot.to_json().contains("without its feature");
    assert_eq!([snapshot.to_csv(), snapshot.to_html()].map(|text| text.is_empty()), [is_off; 2]);
    match Snapshot::from_json(snapshot.to_json().as_bytes()) {
        Ok(read) => assert!(!is_off && read == *snapshot),
        Err(why) => {
            let why: Box<dyn Error + Send + Sync> = <Box<ReadError>>::new(why);
            assert!(is_off && why.to_string().contains("without its feature `enabled`"), "{why}");
        }
    }
    line("process", process(snapshot.process()));
    for device in snapshot.devices() {
        line("device", show_device(device));
    }
    for site in snapshot.sites() {
        line("site", show_site(site));
        site.series().iter().for_each(|series| line("series", show_series(series)));
        assert_eq!(snapshot.site(site.name()).map(Site::line), Some(site.line()));
    }
    snapshot.tree().iter().for_each(|node| line("path", show_node(node)));
    assert_eq!(snapshot.to_folded().is_empty(), snapshot.tree().is_empty());
    line("inconsistencies", snapshot.inconsistencies());
}

/// Asserts traits of single types at compile time, in addition to those in `same`.
const _: () = {
    const fn are_plain<T: Copy>() {}
    const fn are_equal_to_themselves<T: Eq>() {}
    const fn are_shown<T: Display>() {}
    are_plain::<Bytes>();
    are_plain::<Flops>();
    are_plain::<Clocks>();
    are_plain::<Launches>();
    are_plain::<Settle>();
    are_plain::<Slot>();
    are_plain::<Stats>();
    are_equal_to_themselves::<ClockError>();
    are_equal_to_themselves::<Clocks>();
    are_equal_to_themselves::<Launch>();
    are_equal_to_themselves::<Timeline>();
    are_shown::<Settled>();
    are_shown::<Snapshot>();
    are_shown::<Unmet>();
};

/// Asserts the traits that all types have.
fn same<T: Clone + Debug + PartialEq + Send + Sync + 'static>(value: &T) {
    assert_eq!(&value.clone(), value);
}

fn line(what: &str, value: impl Debug) {
    println!("{what}: {value:?}");
}

fn process(process: &Process) -> impl Debug {
    same(process);
    let started = (process.started().len(), process.wall_ns() > 0);
    (
        (process.name(), process.pid(), started, process.version()),
        (process.program_version(), process.label(), process.host()),
        (process.off(), process.budget().map(show_budget)),
        (process.kernels(), process.cupti_version()),
        (process.warnings(), process.merged().len()),
    )
}

fn show_budget(budget: &Budget) -> impl Debug {
    same(budget);
    (budget.share(), budget.cost_share(), budget.host_ns(), budget.device_ns())
}

fn show_device(device: &Device) -> impl Debug {
    same(device);
    (
        (device.id(), device.name(), device.driver(), device.l2_bytes(), device.peak_gb_per_s()),
        (device.driver_release(), device.uuid()),
        (device.event_step_ns(), device.event_floor_ns()),
        (device.event_held_empty_ns(), device.event_queued_empty_ns()),
        (device.event_inner_ns(), device.event_queued_inner_ns(), device.event_inner_error_ns()),
        (device.event_bias_ns(), device.event_bias_source(), device.event_bias_error_ns()),
        (
            device.fed_margin_ns(),
            device.flush_bytes(),
            device.flush_proof().map(show_flush_proof),
            device.warnings(),
        ),
        (device.clocks().map(show_clocks), device.temperature_c(), device.power_w()),
        device.throttle().map(|(why, ns)| (why.to_owned(), ns)).collect::<Vec<_>>(),
        (device.persistence(), device.mig(), device.mps(), device.other_processes()),
        (device.overlap().map(show_overlap), device.coverage().map(show_coverage)),
    )
}

fn show_overlap(overlap: &Overlap) -> impl Debug {
    same(overlap);
    (overlap.ns(), overlap.partial())
}

fn show_clocks(clocks: &Clocks) -> impl Debug {
    same(clocks);
    (
        (clocks.sm_start_mhz(), clocks.sm_end_mhz(), clocks.sm_max_mhz()),
        (clocks.mem_start_mhz(), clocks.mem_end_mhz(), clocks.mem_max_mhz()),
    )
}

fn show_error(error: ClockError) -> String {
    same(&error);
    let error: Box<dyn std::error::Error + Send + Sync> = Box::new(error);
    error.to_string()
}

fn show_locked(locked: &LockedClocks) -> Vec<(String, Option<u32>)> {
    locked.sm_mhz().map(|(device, mhz)| (device.to_owned(), mhz)).collect()
}

fn show_site(site: &Site) -> impl Debug {
    same(site);
    (
        (site.name(), site.file(), site.line(), site.scope(), site.launches_seen()),
        (site.options(), site.warnings()),
        (site.calls(), site.warmup(), site.skipped(), site.timed()),
        (site.unsampled(), site.sample_rate(), site.holds_released(), site.holds_expired()),
    )
}

fn show_series(series: &Series) -> impl Debug {
    same(series);
    (
        (series.device(), series.launch().map(show_launch), series.measure(), series.key()),
        (
            (series.cache(), series.clock(), series.graph()),
            [series.launches(), series.inner_brackets()].map(|of| of.map(show_launches)),
        ),
        (series.timed(), series.measured(), series.opened(), series.in_flight()),
        series.lost().map(|(reason, count)| (reason.to_owned(), count)).collect::<Vec<_>>(),
        (series.fed(), series.starved(), series.at_floor()),
        (series.queued(), series.nested(), series.tracked()),
        (series.upper_bound(), series.bias_ns()),
        (series.ci95_ns(), series.independent(), series.looks()),
        (
            (series.estimated_total_ns(), series.estimated_total_error_ns()),
            series.unknown_error().map(str::to_owned),
        ),
        (show_histogram(series.histogram()), series.timeline().map(show_timeline)),
        (series.raw_ns().map(show_stats), series.net_ns().map(show_stats)),
        (
            series.bytes().map(show_bytes),
            series.flops().map(show_flops),
            (series.host_ns().map(show_stats), series.kernel_times().map(show_kernel_times)),
        ),
    )
}

/// Calls every accessor of a call-tree node. The tree has no nodes without `enabled`.
fn show_node(node: &Node) -> impl Debug {
    same(node);
    (
        (node.name().to_owned(), node.site(), node.parent(), node.source().to_owned()),
        (node.recorded(), node.calls(), node.share(), node.launch_bound(), node.upper_bound()),
        (node.inclusive_ns(), node.inclusive_error_ns(), node.self_ns(), node.self_error_ns()),
        (node.per_call().map(show_per_call), node.callers_unknown()),
        node.self_ns_by_device().map(|(id, ns)| (id.to_owned(), ns)).collect::<Vec<_>>(),
    )
}

fn show_per_call(mean: &PerCall) -> impl Debug {
    same(mean);
    (mean.busy_ns(), mean.span_ns(), mean.waited_ns(), mean.host_ns(), mean.kernels())
}

fn show_coverage(coverage: &Coverage) -> impl Debug {
    let unattributed = |of: &Unattributed| {
        (of.name().to_owned(), of.count(), of.total_ns(), of.share(), of.per_s())
    };
    (
        (coverage.windows(), coverage.incomplete(), coverage.missed()),
        (coverage.total_ns(), coverage.covered_ns()),
        (coverage.busy(), coverage.busy_error(), coverage.idle(), coverage.idle_error()),
        (coverage.attributed(), coverage.attributed_error()),
        (coverage.not_annotated(), coverage.not_annotated_error()),
        coverage.unattributed().iter().map(unattributed).collect::<Vec<_>>(),
    )
}

fn show_kernel_times(times: &KernelTimes) -> impl Debug {
    same(times);
    (
        (times.opened(), times.kernels_per_call(), times.streams(), times.zero_times()),
        (times.busy_ns().map(show_stats), times.self_busy_ns().map(show_stats)),
        (times.span_ns().map(show_stats), times.gaps_ns().map(show_stats)),
        times.kernels().iter().map(show_kernel).collect::<Vec<_>>(),
        times.elsewhere().iter().map(show_elsewhere).collect::<Vec<_>>(),
    )
}

fn show_kernel(kernel: &Kernel) -> impl Debug {
    same(kernel);
    (
        (kernel.name().len(), kernel.grid(), kernel.block()),
        (kernel.registers(), kernel.shared_bytes(), kernel.per_call(), kernel.count()),
        (kernel.time_ns().map(show_stats), kernel.total_ns(), kernel.share()),
    )
}

fn show_elsewhere(work: &Elsewhere) -> impl Debug {
    same(work);
    (work.name().len(), work.count(), work.total_ns(), work.why().len())
}

fn show_flush_proof(proof: &FlushProof) -> impl Debug {
    same(proof);
    (proof.clean().map(show_eviction), proof.dirty().map(show_eviction))
}

fn show_eviction(seen: &Eviction) -> impl Debug {
    same(seen);
    (
        (seen.proved(), seen.method().len(), seen.multiple(), seen.bytes(), seen.lines()),
        (seen.missed_after_read(), seen.missed_after_write(), seen.missed_discarded()),
        (seen.hit_cycles(), seen.miss_cycles(), seen.threshold_cycles()),
    )
}

fn show_histogram(histogram: &Histogram) -> impl Debug {
    same(histogram);
    (histogram.count(), histogram.is_empty(), histogram.iter().collect::<Vec<_>>())
}

fn show_timeline(timeline: &Timeline) -> impl Debug {
    same(timeline);
    let slots: Vec<_> = timeline.slots().iter().map(show_slot).collect();
    (timeline.origin_ns(), timeline.width_ns(), slots)
}

fn show_slot(slot: &Slot) -> impl Debug {
    same(slot);
    (slot.index(), slot.count(), slot.min_ns(), slot.mean_ns(), slot.max_ns())
}

fn show_bytes(bytes: &Bytes) -> impl Debug {
    same(bytes);
    (bytes.samples(), bytes.per_call(), bytes.total(), bytes.gb_per_s(), bytes.peak_share())
}

fn show_flops(flops: &Flops) -> impl Debug {
    same(flops);
    (flops.samples(), flops.per_call(), flops.total(), flops.tflop_per_s())
}

fn show_launch(launch: &Launch) -> impl Debug {
    same(launch);
    (launch.index(), launch.name(), launch.line())
}

fn show_launches(launches: &Launches) -> impl Debug {
    same(launches);
    (launches.min(), launches.mean(), launches.max())
}

fn show_stats(stats: &Stats) -> impl Debug {
    same(stats);
    (
        (stats.min(), stats.p5(), stats.median(), stats.mean(), stats.p95(), stats.p99()),
        (stats.max(), stats.stddev(), stats.sum()),
    )
}
