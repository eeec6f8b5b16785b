//! Warm-up on devices whose contexts are destroyed and created again at the same address.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use cudarc::driver::CudaStream;
use gpu_time::gpu_timed;

use crate::gpu::{Gpu, LaunchResult, Spin, reset_primary_context};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("warmup/one_thread", one_thread),
    ("warmup/two_threads", two_threads),
    ("warmup/two_contexts", two_contexts),
    ("warmup/device_reset", device_reset),
];

const WARMUP: u32 = 1_000;

#[gpu_timed(warmup = WARMUP)]
fn warms_up(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 1_000)
}

fn call(gpu: &Gpu, times: u32) {
    let spin = gpu.spin("warmup::warms_up");
    for _ in 0..times {
        warms_up(&gpu.stream, &spin).unwrap();
    }
    gpu.synchronize();
}

/// Uses contexts on two devices, one after the other, at the same address.
fn one_thread(_: &[String]) {
    Gpu::new();
    let mut addresses = BTreeSet::new();
    for (device, times) in [(0, 2), (1, WARMUP + 10), (0, WARMUP + 8)] {
        let gpu = Gpu::in_own_context(device);
        addresses.insert(gpu.context.cu_ctx() as usize);
        call(&gpu, times);
    }
    tally::fact("addresses", addresses.len());
    tally::print();
}

/// Ends the thread that made calls on the first device after the second device's context is
/// created.
fn two_threads(_: &[String]) {
    Gpu::new();
    let (first, mut addresses) = (Gpu::in_own_context(0), BTreeSet::new());
    addresses.insert(first.context.cu_ctx() as usize);
    let (to_here, from_there) = channel();
    let (to_there, from_here) = channel();
    let thread = thread::spawn(move || {
        call(&first, 2);
        drop(first);
        to_here.send(()).unwrap();
        from_here.recv().unwrap();
    });
    from_there.recv().unwrap();
    let second = Gpu::in_own_context(1);
    addresses.insert(second.context.cu_ctx() as usize);
    call(&second, 1);
    to_there.send(()).unwrap();
    thread.join().unwrap();
    call(&second, WARMUP + 9);
    tally::fact("addresses", addresses.len());
    tally::print();
}

/// Continues on the same thread in another context on the device.
fn two_contexts(_: &[String]) {
    call(&Gpu::new(), 2);
    call(&Gpu::in_own_context(0), WARMUP + 8);
    tally::print();
}

/// Resets the device. Warm-up counts calls per device, so the new context does not warm up again.
fn device_reset(_: &[String]) {
    let gpu = Gpu::new();
    call(&gpu, 2);
    // The handles are invalid after the reset and must not be released.
    std::mem::forget(gpu);
    reset_primary_context();
    call(&Gpu::new(), WARMUP + 8);
    tally::print();
}
