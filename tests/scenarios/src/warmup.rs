//! Warm-up on devices whose contexts go and come back at the same address.

use std::collections::BTreeSet;
use std::ptr;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;

use cudarc::driver::{CudaContext, CudaStream, DriverError, sys};
use gpu_time::gpu_timed;

use crate::Scenario;
use crate::gpu::{Gpu, Spin};
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("warmup/one_thread", one_thread),
    ("warmup/two_threads", two_threads),
    ("warmup/two_contexts", two_contexts),
    ("warmup/reset", reset),
];

const WARMUP: u32 = 1_000;

#[gpu_timed(warmup = WARMUP)]
fn warms_up(stream: &Arc<CudaStream>, spin: &Spin) -> Result<(), DriverError> {
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

/// A context of our own on this device, which is destroyed when it is dropped.
fn own_context(device: usize) -> Gpu {
    let mut raw = ptr::null_mut();
    // SAFETY: the driver is initialised; writes one handle.
    let made = unsafe { sys::cuCtxCreate_v4(&raw mut raw, ptr::null_mut(), 0, device as i32) };
    made.result().unwrap();
    // SAFETY: the context was just made on that device, and is given away.
    let context = unsafe { CudaContext::from_raw_context(device, 0, raw) }.unwrap();
    // SAFETY: there is one stream only.
    unsafe { context.disable_event_tracking() };
    let stream = context.new_stream().unwrap();
    Gpu { context, stream }
}

/// Contexts on two devices, one after the other, at one address.
fn one_thread(_: &[String]) {
    Gpu::new();
    let mut addresses = BTreeSet::new();
    for (device, times) in [(0, 2), (1, WARMUP + 10), (0, WARMUP + 8)] {
        let gpu = own_context(device);
        addresses.insert(gpu.context.cu_ctx() as usize);
        call(&gpu, times);
    }
    tally::fact("addresses", addresses.len());
    tally::print();
}

/// The thread that called on the first device ends when there is the second one's context.
fn two_threads(_: &[String]) {
    Gpu::new();
    let (first, mut addresses) = (own_context(0), BTreeSet::new());
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
    let second = own_context(1);
    addresses.insert(second.context.cu_ctx() as usize);
    call(&second, 1);
    to_there.send(()).unwrap();
    thread.join().unwrap();
    call(&second, WARMUP + 9);
    tally::fact("addresses", addresses.len());
    tally::print();
}

/// The thread goes on in another context of the device.
fn two_contexts(_: &[String]) {
    call(&Gpu::new(), 2);
    call(&own_context(0), WARMUP + 8);
    tally::print();
}

/// Another context of the device is none to warm up for: it is the device that did so many calls.
fn reset(_: &[String]) {
    let gpu = Gpu::new();
    call(&gpu, 2);
    // Their handles are void after the reset, and must not be given back.
    std::mem::forget(gpu);
    // SAFETY: the handle is a device's ordinal.
    unsafe { sys::cuDevicePrimaryCtxReset_v2(0) }.result().unwrap();
    call(&Gpu::new(), WARMUP + 8);
    tally::print();
}
