//! Several devices in one process, with streams and memory used across them. On a machine with a
//! single device, that device plays both roles.

use std::sync::Arc;
use std::thread;

use cudarc::driver::{
    CudaContext, CudaEvent, CudaSlice, CudaStream, DevicePtr, DevicePtrMut, result,
};
use gpu_time::gpu_timed;

use crate::gpu::{Gpu, LaunchResult, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("devices/alternating", alternating),
    ("devices/threads", threads),
    ("devices/peer_copy", peer_copy),
    ("devices/foreign_event", foreign_event),
];

const ROUNDS: usize = 20;
/// The size of a copy between devices.
const BYTES: usize = 4 << 20;

#[gpu_timed]
fn launched(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 20_000)
}

#[gpu_timed(scope = "body")]
fn around(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 20_000)
}

/// A device and the kernels that the functions above launch on it.
struct Device {
    gpu: Gpu,
    other_stream: Arc<CudaStream>,
    launched: Spin,
    around: Spin,
    ahead: Spin,
}

impl Device {
    fn at(ordinal: usize) -> Device {
        let gpu = Gpu::at(ordinal);
        let [launched, around, ahead] =
            ["launched", "around", "ahead"].map(|name| gpu.spin(&format!("devices::{name}")));
        Device { other_stream: gpu.new_stream(), gpu, launched, around, ahead }
    }

    /// Opens two brackets on each of the two streams.
    fn call(&self) {
        for stream in [&self.gpu.stream, &self.other_stream] {
            launched(stream, &self.launched).unwrap();
            around(stream, &self.around).unwrap();
        }
    }

    /// Keeps the stream busy until the following calls have been enqueued.
    fn keep_busy(&self, ms: u64) {
        self.ahead.launch(&self.gpu.stream, ms * 1_000_000).unwrap();
    }
}

/// Returns the first two devices, or the only device twice.
fn two() -> [Device; 2] {
    let count = CudaContext::device_count().unwrap() as usize;
    tally::fact("devices", count.min(2));
    [0, 1].map(|ordinal| Device::at(ordinal.min(count - 1)))
}

fn finish(devices: &[Device; 2]) {
    devices.iter().for_each(|device| device.gpu.synchronize());
    tally::print();
}

/// Makes calls on both devices from one thread. The current context always belongs to the other device.
fn alternating(_: &[String]) {
    let devices = two();
    for round in 0..ROUNDS {
        let (one, other) = (&devices[round % 2], &devices[(round + 1) % 2]);
        other.gpu.context.bind_to_thread().unwrap();
        one.call();
        one.gpu.context.bind_to_thread().unwrap();
        other.call();
    }
    finish(&devices);
}

/// Makes calls on both devices from two threads, on the same streams.
fn threads(_: &[String]) {
    let devices = two();
    thread::scope(|scope| {
        for first in 0..2 {
            let devices = &devices;
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    devices[(first + round) % 2].call();
                }
            });
        }
    });
    finish(&devices);
}

/// Launches a kernel, then copies to the other device's memory.
#[gpu_timed(scope = "body")]
fn sent(
    stream: &Arc<CudaStream>,
    spin: &Spin,
    from: &CudaSlice<u8>,
    to: &mut CudaSlice<u8>,
) -> LaunchResult {
    ran!();
    spin.launch(stream, 20_000)?;
    let contexts = [to.context().cu_ctx(), from.context().cu_ctx()];
    let ((from, _from), (to, _to)) = (from.device_ptr(stream), to.device_ptr_mut(stream));
    // SAFETY: both buffers have `BYTES` bytes, in these contexts, and live until the program has
    // waited for the stream.
    unsafe {
        result::memcpy_peer_async(contexts[0], to, contexts[1], from, BYTES, stream.cu_stream())
    }
}

/// Makes the devices send to each other in turn.
fn peer_copy(_: &[String]) {
    let devices = two();
    let spins = devices.each_ref().map(|device| device.gpu.spin("devices::sent"));
    let mut there = devices.each_ref().map(|device| {
        let [here, other] =
            [1, 0].map(|byte| device.gpu.stream.clone_htod(&vec![byte; BYTES]).expect("memory"));
        device.gpu.synchronize();
        (here, other)
    });
    for round in 0..ROUNDS {
        let from = round % 2;
        let device = &devices[from];
        device.keep_busy(if round < 2 { 100 } else { 1 });
        let [(here, _), (_, other)] = match from {
            0 => there.each_mut(),
            _ => {
                let [first, second] = there.each_mut();
                [second, first]
            }
        };
        sent(&device.gpu.stream, &spins[from], here, other).unwrap();
        device.gpu.synchronize();
    }
    let arrived = devices.iter().zip(&there).filter(|(device, (_, other))| {
        let bytes = device.gpu.stream.clone_dtoh(other).expect("it is read");
        device.gpu.synchronize();
        bytes.iter().all(|byte| *byte == 1)
    });
    tally::fact("arrived", arrived.count());
    tally::fact("bytes", BYTES);
    finish(&devices);
}

/// Waits for work on another device.
#[gpu_timed(scope = "body")]
fn after(stream: &Arc<CudaStream>, event: &CudaEvent, spin: &Spin) -> LaunchResult {
    ran!();
    stream.wait(event)?;
    spin.launch(stream, 20_000)
}

/// Records an event on the first device's stream, and waits for it in a bracket on the second device's stream.
fn foreign_event(_: &[String]) {
    let devices = two();
    let [one, other] = &devices;
    let spin = other.gpu.spin("devices::after");
    for round in 0..ROUNDS {
        // The first call registers the context, which takes longer.
        let ms = if round == 0 { 100 } else { 1 };
        other.keep_busy(ms);
        one.gpu.context.bind_to_thread().unwrap();
        // This work ends long after the second device has reached the wait.
        one.keep_busy(ms + 2);
        let event = one.gpu.stream.record_event(None).unwrap();
        after(&other.gpu.stream, &event, &spin).unwrap();
        devices.iter().for_each(|device| device.gpu.synchronize());
    }
    finish(&devices);
}
