//! The L2 state that a kernel finds, measured by the kernel itself.

use std::sync::Arc;

use cudarc::driver::{CudaStream, DevicePtr, result, sys};
use gpu_time::gpu_timed;

use crate::gpu::{Gpu, LaunchResult, Lines, Read, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("cold/lines", lines),
    ("cold/reads", reads),
    ("cold/calls", calls),
    ("cold/memory", memory),
    ("cold/concurrent", concurrent),
    ("cold/inside", inside),
    ("cold/persisting", persisting),
];

const ROUNDS: usize = 10;
/// An upper bound on the size of an L2 cache. No current GPU has a larger one.
const L2_AT_MOST: usize = 128 << 20;

#[gpu_timed]
fn found(stream: &Arc<CudaStream>, lines: &mut Lines) -> LaunchResult {
    ran!();
    lines.launch(stream)
}

#[gpu_timed(cold)]
fn clean(stream: &Arc<CudaStream>, lines: &mut Lines) -> LaunchResult {
    ran!();
    lines.launch(stream)
}

#[gpu_timed(cold = "dirty")]
fn dirty(stream: &Arc<CudaStream>, lines: &mut Lines) -> LaunchResult {
    ran!();
    lines.launch(stream)
}

/// The ways to bring lines into the L2 before a call, outside any bracket.
const TOUCHES: [&str; 3] = ["read", "write", "write among others"];

/// Calls a function `rounds` times on lines that were just touched. Records the smallest, median
/// and largest fraction of lines that missed, in thousandths. Except with `write among others`, the
/// L2 then holds only these lines and what the previous call left there.
fn watch(
    name: &str,
    gpu: &Gpu,
    call: fn(&Arc<CudaStream>, &mut Lines) -> LaunchResult,
    rounds: usize,
) {
    let stream = &gpu.stream;
    let mut lines = gpu.lines(&format!("cold::{name}"));
    let mut others = stream.alloc_zeros::<u8>(L2_AT_MOST).expect("memory");
    let mut missed = TOUCHES.map(|_| Vec::new());
    for _ in 0..rounds {
        for (touch, missed) in TOUCHES.iter().zip(&mut missed) {
            if *touch == "write among others" {
                // Other dirty lines protect these from eviction by reads.
                stream.memset_zeros(&mut others).expect("other lines are written");
            }
            if *touch != "read" {
                lines.write(stream);
            }
            // Written lines are also read once, because a first read of a dirty line in the far
            // half of an L2 takes nearly as long as a read from memory.
            if *touch == "read" || name == "found" {
                lines.launch(stream).unwrap();
            }
            call(stream, &mut lines).unwrap();
            let (first, mut again) = lines.cycles(stream);
            again.sort_unstable();
            // The second reads are hits; a miss takes at least 1.4 times as long as nearly all
            // hits.
            let most = again[again.len() * 19 / 20] * 7 / 5;
            missed.push(1000 * first.iter().filter(|&&cycles| cycles > most).count() / first.len());
        }
    }
    for (touch, mut missed) in TOUCHES.iter().zip(missed) {
        missed.sort_unstable();
        let [least, median, most] = [0, rounds / 2, rounds - 1].map(|at| missed[at]);
        for (which, missed) in [("least", least), ("median", median), ("most", most)] {
            tally::fact(&format!("{name} after {touch}, {which}"), missed);
        }
    }
}

/// Runs each variant for the given number of rounds, 10 by default.
fn lines(arguments: &[String]) {
    let rounds = arguments.first().map_or(ROUNDS, |rounds| rounds.parse().expect("rounds"));
    let gpu = Gpu::new();
    watch("found", &gpu, found, rounds);
    watch("clean", &gpu, clean, rounds);
    watch("dirty", &gpu, dirty, rounds);
    tally::print();
}

#[gpu_timed(cold)]
fn read_clean(stream: &Arc<CudaStream>, read: &mut Read) -> LaunchResult {
    ran!();
    read.launch(stream)
}

#[gpu_timed(cold = "dirty")]
fn read_dirty(stream: &Arc<CudaStream>, read: &mut Read) -> LaunchResult {
    ran!();
    read.launch(stream)
}

/// Alternates reads after a clean and after a dirty flush, each of the given number of MiB (30 by
/// default), for inspection in a profiler.
fn reads(arguments: &[String]) {
    let gpu = Gpu::new();
    let mib = |at: usize| arguments.get(at).map_or(30, |mib| mib.parse().expect("MiB"));
    let read = |name: &str, mib: usize| gpu.read(&format!("cold::{name}"), mib << 20);
    let mut reads = [read("read_clean", mib(0)), read("read_dirty", mib(1))];
    for _ in 0..ROUNDS {
        read_clean(&gpu.stream, &mut reads[0]).unwrap();
        gpu.stream.synchronize().unwrap();
        read_dirty(&gpu.stream, &mut reads[1]).unwrap();
        gpu.stream.synchronize().unwrap();
    }
    tally::print();
}

#[gpu_timed(cold)]
fn spin_clean(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 1_000)
}

#[gpu_timed]
fn spin_found(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 1_000)
}

#[gpu_timed(cold = "dirty")]
fn spin_dirty(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 1_000)
}

/// Makes the given number of calls of each kind, waiting for each one, and a report after every
/// `every` calls.
fn calls(arguments: &[String]) {
    let [calls, every]: [u32; 2] = [0, 1].map(|at| arguments[at].parse().expect("how many"));
    let gpu = Gpu::new();
    let spins = ["spin_clean", "spin_dirty"].map(|name| gpu.spin(&format!("cold::{name}")));
    for call in 1..=calls {
        spin_clean(&gpu.stream, &spins[0]).unwrap();
        gpu.synchronize();
        spin_dirty(&gpu.stream, &spins[1]).unwrap();
        gpu.synchronize();
        if call.is_multiple_of(every) {
            gpu_time::report();
        }
    }
    tally::print();
}

/// Records the memory kept by the clean flush, then the memory kept by both flushes.
fn memory(_: &[String]) {
    let gpu = Gpu::new();
    let free = || result::mem_get_info().expect("the driver knows its memory").0;
    let spins = ["spin_clean", "spin_dirty"].map(|name| gpu.spin(&format!("cold::{name}")));
    gpu.synchronize();
    let before = free();
    spin_clean(&gpu.stream, &spins[0]).unwrap();
    gpu.synchronize();
    tally::fact("clean", before - free());
    spin_dirty(&gpu.stream, &spins[1]).unwrap();
    gpu.synchronize();
    tally::fact("both", before - free());
    tally::print();
}

/// Makes a first cold call while another stream is busy. The runtime's kernels are loaded
/// beforehand, because the driver waits for running kernels before it loads code.
fn concurrent(_: &[String]) {
    const THREE_S: u64 = 3_000_000_000;
    let gpu = Gpu::new();
    let [found, dirty] =
        ["spin_found", "spin_dirty"].map(|name| gpu.spin(&format!("cold::{name}")));
    let (long, other) = (gpu.spin("concurrent"), gpu.new_stream());
    spin_found(&gpu.stream, &found).unwrap();
    gpu.synchronize();
    long.launch(&other, THREE_S).unwrap();
    let end = other.record_event(None).expect("an event");
    spin_dirty(&gpu.stream, &dirty).unwrap();
    tally::fact("is_busy", u8::from(!end.is_complete()));
    gpu.synchronize();
    tally::print();
}

/// Makes a cold call on another stream inside its body.
#[gpu_timed(scope = "body", stream = stream)]
fn around(
    stream: &Arc<CudaStream>,
    other: &Arc<CudaStream>,
    [spin, inner]: [&Spin; 2],
) -> LaunchResult {
    ran!();
    spin.launch(stream, 1_000)?;
    spin_clean(other, inner)
}

/// Makes cold calls inside a bracket on another stream. With an argument, then makes one cold call
/// outside any bracket and one more inside.
fn inside(arguments: &[String]) {
    let gpu = Gpu::new();
    let other = gpu.new_stream();
    let [found, spin, clean] =
        ["spin_found", "around", "spin_clean"].map(|name| gpu.spin(&format!("cold::{name}")));
    spin_found(&gpu.stream, &found).unwrap();
    let inside = || {
        gpu.synchronize();
        around(&gpu.stream, &other, [&spin, &clean]).unwrap();
        gpu.synchronize();
    };
    (0..3).for_each(|_| inside());
    if !arguments.is_empty() {
        spin_clean(&gpu.stream, &clean).unwrap();
        inside();
    }
    tally::print();
}

/// Makes one stream's reads and writes of a range persist in the L2.
fn persist(stream: &CudaStream, base: u64, bytes: usize) {
    let window = sys::CUaccessPolicyWindow {
        base_ptr: base as *mut _,
        num_bytes: bytes,
        hitRatio: 1.0,
        hitProp: sys::CUaccessProperty::CU_ACCESS_PROPERTY_PERSISTING,
        missProp: sys::CUaccessProperty::CU_ACCESS_PROPERTY_STREAMING,
    };
    let value = sys::CUlaunchAttributeValue { accessPolicyWindow: window };
    let window = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW;
    // SAFETY: the stream is alive; the value matches the attribute.
    unsafe { sys::cuStreamSetAttribute(stream.cu_stream(), window, &raw const value) }
        .result()
        .expect("the stream takes a window");
}

/// Makes cold calls before and after a call on a stream with persisting lines. The range is no
/// larger than the size that the driver reserves by default.
fn persisting(_: &[String]) {
    let gpu = Gpu::new();
    let (spin, dirty) = (gpu.spin("cold::spin_clean"), gpu.spin("cold::spin_dirty"));
    spin_clean(&gpu.stream, &spin).unwrap();
    let other = gpu.new_stream();
    let buffer = gpu.stream.alloc_zeros::<u8>(1 << 20).expect("memory");
    persist(&other, buffer.device_ptr(&gpu.stream).0, buffer.len());
    spin_clean(&other, &spin).unwrap();
    spin_dirty(&gpu.stream, &dirty).unwrap();
    gpu.synchronize();
    tally::print();
}
