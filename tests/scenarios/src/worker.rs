//! The worker thread of a library in C, which no attribute reaches.

use std::ffi::c_void;

use cudarc::driver::CudaStream;

use crate::gpu::{Gpu, Spin};

#[repr(C)]
struct RawWorker {
    _private: [u8; 0],
}

unsafe extern "C" {
    fn worker_start(context: *mut c_void) -> *mut RawWorker;
    fn worker_submit(
        worker: *mut RawWorker,
        function: *mut c_void,
        stream: *mut c_void,
        ns: u64,
        launches: u32,
        threads: u32,
    );
    fn worker_pause(worker: *mut RawWorker, is_paused: i32);
    fn worker_wait(worker: *mut RawWorker);
    fn worker_stop(worker: *mut RawWorker);
}

/// A thread that launches kernels. It ends when this is dropped.
pub struct Worker(*mut RawWorker);

// SAFETY: the library locks what its functions use.
unsafe impl Send for Worker {}
// SAFETY: as above.
unsafe impl Sync for Worker {}

impl Worker {
    pub fn new(gpu: &Gpu) -> Worker {
        // SAFETY: the context lives as long as the process.
        Worker(unsafe { worker_start(gpu.context.cu_ctx().cast()) })
    }

    /// Hands over launches of a kernel that runs for this time, and does not wait for them. Those before must have been
    /// [waited](Self::wait) for.
    pub fn submit(&self, spin: &Spin, stream: &CudaStream, ns: u64, launches: u32) {
        self.submit_blocks(spin, stream, ns, launches, 1);
    }

    /// Hands over a launch that fails.
    pub fn submit_bad(&self, spin: &Spin, stream: &CudaStream) {
        self.submit_blocks(spin, stream, 1, 1, 4_096);
    }

    fn submit_blocks(
        &self,
        spin: &Spin,
        stream: &CudaStream,
        ns: u64,
        launches: u32,
        threads: u32,
    ) {
        let (function, stream) = (spin.function().cu_function().cast(), stream.cu_stream().cast());
        // SAFETY: the worker lives, and the argument matches the kernel.
        unsafe { worker_submit(self.0, function, stream, ns, launches, threads) };
    }

    /// Lets the worker begin no launches for the time being.
    pub fn pause(&self, is_paused: bool) {
        // SAFETY: the worker lives.
        unsafe { worker_pause(self.0, is_paused.into()) };
    }

    /// Waits until all launches have returned.
    pub fn wait(&self) {
        // SAFETY: the worker lives.
        unsafe { worker_wait(self.0) };
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // SAFETY: the worker lives, and nothing uses it any more.
        unsafe { worker_stop(self.0) };
    }
}
