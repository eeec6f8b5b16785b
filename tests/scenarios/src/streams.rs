//! Every kind of stream.

use std::ops::Deref;
use std::ptr;
use std::sync::Arc;
use std::thread;

use cudarc::driver::{CudaContext, CudaSlice, CudaStream, PushKernelArg, sys};
use gpu_time::{RawStream, gpu_timed, raw_stream, set_default_stream, set_thread_default_stream};

use crate::gpu::{Gpu, LaunchResult, ONE, Spin};
use crate::scenario::Scenario;
use crate::tally::{self, ran};
use crate::time::pass;

pub const SCENARIOS: &[Scenario] = &[
    ("streams/several", several),
    ("streams/devices", devices),
    ("streams/device_inside", device_inside),
    ("streams/special", special),
    ("streams/optional", optional),
    ("streams/tracked", tracked),
    ("streams/dropped", dropped),
    ("streams/many_pending", many_pending),
    ("streams/reused", reused),
    ("streams/own", own_types),
    ("streams/default", default),
    ("streams/default_dropped", default_dropped),
];

#[gpu_timed]
fn timed(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 20_000)
}

fn several(_: &[String]) {
    let gpu = Gpu::new();
    let streams = [0; 4].map(|_| gpu.new_stream());
    let spin = gpu.spin("streams::timed");
    for i in 0..40 {
        timed(&streams[i % 4], &spin).unwrap();
    }
    gpu.synchronize();
    tally::print();
}

/// Types of the program.
mod own {
    use super::*;

    /// A type of the program with the methods of a cudarc stream, which could return any handle.
    pub struct Lookalike(pub Arc<CudaStream>);

    impl Lookalike {
        fn cu_stream(&self) -> sys::CUstream {
            self.0.cu_stream()
        }

        fn context(&self) -> &Arc<CudaContext> {
            self.0.context()
        }
    }

    #[gpu_timed(stream = stream, scope = "body")]
    pub fn on_lookalike(stream: &Lookalike, spin: &Spin) -> LaunchResult {
        ran!();
        spin.launch(&stream.0, 20_000)
    }

    /// A pointer of the program to a cudarc stream.
    pub struct Pooled(pub Lookalike);

    impl Deref for Pooled {
        type Target = CudaStream;

        fn deref(&self) -> &CudaStream {
            &self.0.0
        }
    }

    impl Pooled {
        #[expect(dead_code, reason = "the stream's own method is called instead")]
        fn cu_stream(&self) -> sys::CUstream {
            ptr::without_provenance_mut(0xdead_0000)
        }
    }

    #[gpu_timed(stream = stream, scope = "body")]
    pub fn on_pooled(stream: Box<Pooled>, spin: &Spin) -> LaunchResult {
        ran!();
        spin.launch(&stream.0.0, 20_000)
    }

    /// Traits of the program for every type do not come between either.
    trait Handles {
        fn cu_stream(&self) -> sys::CUstream {
            ptr::without_provenance_mut(0xdead_0000)
        }
    }

    impl<T: ?Sized> Handles for T {}
}

fn own_types(_: &[String]) {
    let gpu = Gpu::new();
    let spins =
        ["streams::own::on_lookalike", "streams::own::on_pooled"].map(|name| gpu.spin(name));
    for _ in 0..8 {
        let lookalike = || own::Lookalike(gpu.stream.clone());
        own::on_lookalike(&lookalike(), &spins[0]).unwrap();
        own::on_pooled(Box::new(own::Pooled(lookalike())), &spins[1]).unwrap();
    }
    gpu.synchronize();
    tally::print();
}

#[gpu_timed(warmup = 3, cold, sleep)]
fn on_device(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 20_000)
}

/// Makes calls on the devices in turn. The current context always belongs to another device.
fn devices(_: &[String]) {
    let count = CudaContext::device_count().unwrap() as usize;
    tally::fact("devices", count);
    let gpus: Vec<Gpu> = (0..count).map(Gpu::at).collect();
    let spins: Vec<Spin> = gpus.iter().map(|gpu| gpu.spin("streams::on_device")).collect();
    for i in 0..10 * count {
        let (gpu, other) = (&gpus[i % count], &gpus[(i + 1) % count]);
        other.context.bind_to_thread().unwrap();
        on_device(&gpu.stream, &spins[i % count]).unwrap();
    }
    gpus.iter().for_each(Gpu::synchronize);
    tally::print();
}

#[gpu_timed(scope = "body")]
fn around(
    stream: &Arc<CudaStream>,
    spin: &Spin,
    inside: impl Fn() -> LaunchResult,
) -> LaunchResult {
    ran!();
    spin.launch(stream, 20_000)?;
    inside()
}

/// Uses the second device for the first time inside a bracket on the first.
fn device_inside(_: &[String]) {
    let gpus = [Gpu::at(0), Gpu::at(1)];
    let outer = gpus[0].spin("streams::around");
    let inner = gpus[1].spin("streams::on_device");
    gpus[0].context.bind_to_thread().unwrap();
    around(&gpus[0].stream, &outer, || on_device(&gpus[1].stream, &inner)).unwrap();
    for _ in 0..5 {
        on_device(&gpus[1].stream, &inner).unwrap();
    }
    gpus.iter().for_each(Gpu::synchronize);
    tally::print();
}

/// Called with the NULL stream. `on_per_thread` gets the per-thread stream, and `on_raw` a handle
/// without an owner.
#[gpu_timed(warmup = 2, cold, sleep)]
fn on_null(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 20_000)
}

#[gpu_timed(warmup = 2, cold, sleep)]
fn on_per_thread(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 20_000)
}

fn raw(stream: sys::CUstream) -> RawStream {
    // SAFETY: the callers of `on_raw` keep the stream alive.
    unsafe { raw_stream(stream) }
}

#[gpu_timed(stream = raw(stream), warmup = 200, cold, sleep)]
fn on_raw(stream: sys::CUstream, spin: &Spin) -> Result<(), sys::CUresult> {
    ran!();
    let mut ns = 20_000u64;
    let mut parameters = [ptr::from_mut(&mut ns).cast()];
    // SAFETY: the argument matches the kernel, and the caller's context is current.
    let result = unsafe {
        sys::cuLaunchKernel(
            spin.function().cu_function(),
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            stream,
            parameters.as_mut_ptr(),
            ptr::null_mut(),
        )
    };
    if result == sys::CUresult::CUDA_SUCCESS { Ok(()) } else { Err(result) }
}

/// A struct with a method whose stream is found through `self`.
struct Holder {
    stream: Arc<CudaStream>,
    spin: Spin,
}

impl Holder {
    #[gpu_timed(name = "held by a struct")]
    fn launch_it(&self) -> LaunchResult {
        ran!("held by a struct");
        let ns = 20_000u64;
        // SAFETY: the argument matches the kernel.
        unsafe { self.stream.launch_builder(self.spin.function()).arg(&ns).launch(ONE) }?;
        Ok(())
    }
}

fn special(_: &[String]) {
    let gpu = Gpu::new();
    let (null, per_thread) = (gpu.context.default_stream(), gpu.context.per_thread_stream());
    let [on_null_spin, on_per_thread_spin, on_raw_spin] =
        ["on_null", "on_per_thread", "on_raw"].map(|name| gpu.spin(&format!("streams::{name}")));
    for _ in 0..12 {
        on_null(&null, &on_null_spin).unwrap();
        on_per_thread(&per_thread, &on_per_thread_spin).unwrap();
    }
    for _ in 0..240 {
        on_raw(gpu.stream.cu_stream(), &on_raw_spin).unwrap();
    }
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..12 {
                    on_null(&null, &on_null_spin).unwrap();
                    on_per_thread(&per_thread, &on_per_thread_spin).unwrap();
                }
                per_thread.synchronize().unwrap();
            });
        }
    });
    let holder = Holder { stream: gpu.stream.clone(), spin: gpu.spin("held by a struct") };
    for _ in 0..12 {
        holder.launch_it().unwrap();
    }
    gpu.synchronize();
    tally::print();
}

#[gpu_timed(stream = stream, warmup = 2, cold, sleep)]
fn maybe(stream: Option<&Arc<CudaStream>>, spin: &Spin) -> LaunchResult {
    ran!();
    match stream {
        Some(stream) => spin.launch(stream, 20_000),
        None => Ok(()),
    }
}

#[gpu_timed(clock = "host", warmup = 2)]
fn by_host() {
    ran!();
    thread::sleep(std::time::Duration::from_millis(1));
}

fn optional(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("streams::maybe");
    for i in 0..20 {
        maybe((i % 2 == 0).then_some(&gpu.stream), &spin).unwrap();
        by_host();
    }
    gpu.synchronize();
    tally::print();
}

#[gpu_timed]
fn with_slices(stream: &Arc<CudaStream>, spin: &Spin, memory: &mut CudaSlice<u8>) -> LaunchResult {
    ran!();
    stream.memset_zeros(memory)?;
    spin.launch(stream, 20_000)
}

/// Runs an application with two streams and cudarc's default event tracking.
fn tracked(_: &[String]) {
    let context = CudaContext::new(0).unwrap();
    let stream = context.new_stream().unwrap();
    let gpu = Gpu { context, stream };
    let other = gpu.new_stream();
    let spin = gpu.spin("streams::with_slices");
    let mut memory = gpu.stream.alloc_zeros(1 << 16).unwrap();
    for i in 0..20 {
        let stream = if i % 2 == 0 { &gpu.stream } else { &other };
        with_slices(stream, &spin, &mut memory).unwrap();
    }
    gpu.synchronize();
    tally::print();
}

/// The function owns the stream and drops it before returning.
#[gpu_timed(scope = "body")]
fn drops_in_body(stream: Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(&stream, 20_000)?;
    stream.synchronize()?;
    drop(stream);
    Ok(())
}

/// The stream's last owner is dropped during the launch.
#[gpu_timed(launch = "launch_and_drop")]
fn drops_in_launch(stream: Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    launch_and_drop(stream, spin)
}

fn launch_and_drop(stream: Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    spin.launch(&stream, 20_000)?;
    stream.synchronize()
}

fn dropped(_: &[String]) {
    let gpu = Gpu::new();
    let spin = gpu.spin("streams::dropped");
    for _ in 0..10 {
        drops_in_body(gpu.new_stream(), &spin).unwrap();
        drops_in_launch(gpu.new_stream(), &spin).unwrap();
        // Here the caller still owns the stream.
        drops_in_body(gpu.stream.clone(), &spin).unwrap();
        drops_in_launch(gpu.stream.clone(), &spin).unwrap();
    }
    gpu.synchronize();
    tally::print();
}

/// Makes more calls than a thread may have event pairs, behind long kernels.
fn many_pending(_: &[String]) {
    let gpu = Gpu::new();
    let (blocker, spin) = (gpu.spin("streams::blocker"), gpu.spin("streams::timed"));
    let streams: Vec<_> = (0..12).map(|_| gpu.new_stream()).collect();
    // The first call registers the context, which takes longer than the blocking kernels do.
    timed(&streams[0], &spin).unwrap();
    gpu.synchronize();
    for stream in &streams {
        blocker.launch(stream, 400_000_000).unwrap();
    }
    // 250 calls make 750 commands on each stream, which fit into its queue.
    for _ in 0..250 {
        for stream in &streams {
            timed(stream, &spin).unwrap();
        }
    }
    gpu.synchronize();
    tally::print();
}

/// Keeps the GPU busy after its stream has been destroyed.
#[gpu_timed]
fn lasting(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    spin.launch(stream, 20_000_000)
}

/// Keeps the GPU waiting for the host inside the bracket.
#[gpu_timed(scope = "body")]
fn waiting(stream: &Arc<CudaStream>, spin: &Spin) -> LaunchResult {
    ran!();
    pass(50_000);
    spin.launch(stream, 1_000)
}

/// Destroys streams with work pending. The driver may give their handles to the streams created next, which
/// do not wait for that work.
fn reused(_: &[String]) {
    let gpu = Gpu::new();
    let (long, short) = (gpu.spin("streams::lasting"), gpu.spin("streams::waiting"));
    // The clocks are aligned by the time of the second call.
    lasting(&gpu.stream, &long).unwrap();
    // On some machines, the first launch of a kernel waits for all that the GPU is doing. Beside 20 ms of that, the
    // host's 50 µs would not matter.
    short.launch(&gpu.stream, 1_000).unwrap();
    gpu.synchronize();
    let mut reused = 0;
    for _ in 0..20 {
        let old = gpu.new_stream();
        lasting(&old, &long).unwrap();
        let handle = old.cu_stream();
        drop(old);
        let new = gpu.new_stream();
        reused += u32::from(new.cu_stream() == handle);
        waiting(&new, &short).unwrap();
        gpu.synchronize();
        new.synchronize().unwrap();
        pass(25_000_000);
    }
    tally::fact("reused", reused);
    tally::print();
}

#[gpu_timed]
fn unnamed(work: &(Arc<CudaStream>, Spin)) -> LaunchResult {
    ran!();
    let (queue, spin) = work;
    spin.launch(queue, 20_000)
}

/// Sets a default stream for all threads and one for a single thread, and removes both.
fn default(_: &[String]) {
    let gpu = Gpu::new();
    let work = |stream: &Arc<CudaStream>| (stream.clone(), gpu.spin("streams::unnamed"));
    let (first, second) = (work(&gpu.stream), work(&gpu.new_stream()));
    let calls = |work, count| (0..count).for_each(|_| unnamed(work).unwrap());
    calls(&first, 3);
    set_default_stream(gpu.stream.clone());
    calls(&first, 10);
    thread::scope(|scope| {
        scope.spawn(|| {
            set_thread_default_stream(second.0.clone());
            calls(&second, 7);
            set_thread_default_stream(None::<RawStream>);
            calls(&first, 4);
        });
    });
    // SAFETY: `second` lives until the end.
    set_default_stream(unsafe { raw_stream(second.0.cu_stream()) });
    calls(&second, 5);
    set_default_stream(None::<RawStream>);
    calls(&first, 2);
    gpu.synchronize();
    tally::print();
}

#[gpu_timed]
fn replacing(work: (Arc<CudaStream>, Spin)) -> LaunchResult {
    ran!();
    let (queue, spin) = work;
    spin.launch(&queue, 20_000)?;
    set_default_stream(None::<RawStream>);
    queue.synchronize()
}

/// Removes the default stream while a call uses it, which destroys the stream.
fn default_dropped(_: &[String]) {
    let gpu = Gpu::new();
    for _ in 0..3 {
        let stream = gpu.new_stream();
        set_default_stream(stream.clone());
        replacing((stream, gpu.spin("streams::replacing"))).unwrap();
    }
    tally::print();
}
