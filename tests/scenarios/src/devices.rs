//! Several devices in one process, their streams and their memory mixed. With one device only, it plays
//! the part of the other too.

use std::sync::Arc;
use std::thread;

use cudarc::driver::{
    CudaContext, CudaEvent, CudaSlice, CudaStream, DevicePtr, DevicePtrMut, DriverError, result,
};
use gpu_time::gpu_timed;

use crate::Scenario;
use crate::gpu::{Gpu, Spin};
use crate::tally::{self, ran};

pub const SCENARIOS: &[Scenario] = &[
    ("devices/alternating", alternating),
    ("devices/threads", threads),
    ("devices/peer_copy", peer_copy),
    ("devices/foreign_event", foreign_event),
];

type Done = Result<(), DriverError>;

const ROUNDS: usize = 20;
/// What goes from device to device.
const BYTES: usize = 4 << 20;

#[gpu_timed]
fn launched(stream: &Arc<CudaStream>, spin: &Spin) -> Done {
    ran!();
    spin.launch(stream, 20_000)
}

#[gpu_timed(scope = "body")]
fn around(stream: &Arc<CudaStream>, spin: &Spin) -> Done {
    ran!();
    spin.launch(stream, 20_000)
}

/// A device with what the functions above launch there.
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

    /// Two brackets on one stream and two on the other.
    fn call(&self) {
        for stream in [&self.gpu.stream, &self.other_stream] {
            launched(stream, &self.launched).unwrap();
            around(stream, &self.around).unwrap();
        }
    }

    /// Keeps the stream busy until what follows has been enqueued.
    fn keep_busy(&self, ms: u64) {
        self.ahead.launch(&self.gpu.stream, ms * 1_000_000).unwrap();
    }
}

/// The first two devices, or the only one twice.
fn two() -> [Device; 2] {
    let count = CudaContext::device_count().unwrap() as usize;
    tally::fact("devices", count.min(2));
    [0, 1].map(|ordinal| Device::at(ordinal.min(count - 1)))
}

fn finish(devices: &[Device; 2]) {
    devices.iter().for_each(|device| device.gpu.synchronize());
    tally::print();
}

/// One thread calls on both, and the current context is always the other's.
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

/// Two threads call on both, on the same streams.
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

/// Something before, and then a copy to memory of the other device.
#[gpu_timed(scope = "body")]
fn sent(
    stream: &Arc<CudaStream>,
    spin: &Spin,
    from: &CudaSlice<u8>,
    to: &mut CudaSlice<u8>,
) -> Done {
    ran!();
    spin.launch(stream, 20_000)?;
    let contexts = [to.context().cu_ctx(), from.context().cu_ctx()];
    let ((from, _from), (to, _to)) = (from.device_ptr(stream), to.device_ptr_mut(stream));
    // SAFETY: both have so many bytes, in these contexts, and live until the stream is waited for.
    unsafe {
        result::memcpy_peer_async(contexts[0], to, contexts[1], from, BYTES, stream.cu_stream())
    }
}

/// Each device sends to the other in turn.
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

/// Waits for what another device does.
#[gpu_timed(scope = "body")]
fn after(stream: &Arc<CudaStream>, event: &CudaEvent, spin: &Spin) -> Done {
    ran!();
    stream.wait(event)?;
    spin.launch(stream, 20_000)
}

/// An event of the first device's stream, and a bracket of the second's that waits for it inside.
fn foreign_event(_: &[String]) {
    let devices = two();
    let [one, other] = &devices;
    let spin = other.gpu.spin("devices::after");
    for round in 0..ROUNDS {
        // The first call meets the context, which takes longer.
        let ms = if round == 0 { 100 } else { 1 };
        other.keep_busy(ms);
        one.gpu.context.bind_to_thread().unwrap();
        // The second has long come to the wait when this ends.
        one.keep_busy(ms + 2);
        let event = one.gpu.stream.record_event(None).unwrap();
        after(&other.gpu.stream, &event, &spin).unwrap();
        devices.iter().for_each(|device| device.gpu.synchronize());
    }
    finish(&devices);
}
