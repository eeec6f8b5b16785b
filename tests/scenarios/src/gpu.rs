//! A device with a stream for the scenario, and the workload kernels, each launched through a safe
//! method.

use std::ptr;
use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg, sys,
};
use cudarc::nvrtc::Ptx;
use gpu_time_kernels::workloads;

use crate::tally;

/// The result of a launch.
pub type LaunchResult = Result<(), DriverError>;

/// A single thread.
pub const ONE: LaunchConfig =
    LaunchConfig { grid_dim: (1, 1, 1), block_dim: (1, 1, 1), shared_mem_bytes: 0 };

pub struct Gpu {
    pub context: Arc<CudaContext>,
    pub stream: Arc<CudaStream>,
}

impl Gpu {
    pub fn new() -> Gpu {
        Gpu::at(0)
    }

    /// Opens the device with this ordinal, without cudarc's event tracking.
    pub fn at(ordinal: usize) -> Gpu {
        let context = CudaContext::new(ordinal).expect("the device exists");
        let stream = context.new_stream().expect("a stream");
        // SAFETY: the scenarios themselves order accesses from several streams.
        unsafe { context.disable_event_tracking() };
        Gpu { context, stream }
    }

    /// Creates a separate context on this device. It is destroyed when the last owner is dropped.
    /// The driver must be initialised.
    pub fn in_own_context(ordinal: usize) -> Gpu {
        let mut raw = ptr::null_mut();
        // SAFETY: the driver is initialised; writes one handle.
        unsafe { sys::cuCtxCreate_v4(&raw mut raw, ptr::null_mut(), 0, ordinal as i32) }
            .result()
            .expect("a context");
        // SAFETY: the context was just created on that device and has no other owner.
        let context = unsafe { CudaContext::from_raw_context(ordinal, 0, raw) }.expect("a context");
        // SAFETY: there is only one stream.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().expect("a stream");
        Gpu { context, stream }
    }

    pub fn new_stream(&self) -> Arc<CudaStream> {
        self.context.new_stream().expect("another stream")
    }

    /// Loads `spin_ns` for the launch at `place` only: `module::function`, followed by `#index` if the
    /// function has several launches. Tests distinguish launches by their kernels.
    pub fn spin(&self, place: &str) -> Spin {
        Spin(self.kernel(workloads::SPIN_NS, place))
    }

    /// Loads `copy_f4` for one place, to copy between two buffers of `bytes` each.
    pub fn copy(&self, place: &str, bytes: usize) -> Copy {
        let zeros = || self.stream.alloc_zeros(bytes).expect("memory");
        let (from, to) = (zeros(), zeros());
        self.stream.synchronize().expect("the buffers are ready");
        Copy { kernel: self.kernel(workloads::COPY_F4, place), from, to }
    }

    /// Loads `saxpy` for one place, with `a` = 1 and `x` all ones: adds 1 to every element of `y`.
    pub fn increment(&self, place: &str) -> Increment {
        const LEN: usize = 1024;
        let x = self.stream.clone_htod(&vec![1.0; LEN]).expect("memory");
        let y = self.stream.alloc_zeros(LEN).expect("memory");
        self.stream.synchronize().expect("the vectors are ready");
        Increment { kernel: self.kernel(workloads::SAXPY, place), x, y }
    }

    /// Loads the kernel that times reads of single cache lines, for one place, with its own lines.
    pub fn lines(&self, place: &str) -> Lines {
        let ptx = gpu_time_kernels::PTX.to_str().expect("PTX is ASCII");
        let name = gpu_time_kernels::LINE_LATENCIES.to_str().expect("kernel names are ASCII");
        let lines = gpu_time_kernels::MAX_LINES as usize;
        let zeros = |bytes| self.stream.alloc_zeros(bytes).expect("memory");
        let buffer = zeros(lines * gpu_time_kernels::LINE_STEP as usize);
        let cycles = self.stream.alloc_zeros(2 * lines).expect("memory");
        let done = self.stream.alloc_zeros(1).expect("memory");
        self.stream.synchronize().expect("the buffers are ready");
        Lines { kernel: self.kernel_of(ptx, name, place), buffer, cycles, done }
    }

    /// Loads `read_f4` for one place, to read `bytes` zeros.
    pub fn read(&self, place: &str, bytes: usize) -> Read {
        let zeros = |bytes| self.stream.alloc_zeros(bytes).expect("memory");
        let (from, out) = (zeros(bytes), zeros(4));
        self.stream.synchronize().expect("the buffers are ready");
        Read { kernel: self.kernel(workloads::READ_F4, place), from, out }
    }

    fn kernel(&self, name: &str, place: &str) -> CudaFunction {
        self.kernel_of(workloads::PTX, name, place)
    }

    fn kernel_of(&self, ptx: &str, name: &str, place: &str) -> CudaFunction {
        // Each place loads its own module, so that the kernel's handle is unique to it.
        let module = self.context.load_module(Ptx::from_src(ptx)).expect("a module");
        let kernel = module.load_function(name).expect("a kernel");
        tally::kernel(kernel.cu_function() as u64, place);
        kernel
    }

    pub fn synchronize(&self) {
        self.context.synchronize().expect("the device completes its work");
    }
}

/// Destroys the first device's primary context. Its handles then become invalid and must not be
/// released.
pub fn reset_primary_context() {
    // SAFETY: the argument is a device's ordinal.
    unsafe { sys::cuDevicePrimaryCtxReset_v2(0) }.result().expect("the context is reset");
}

/// A kernel that runs for a given time.
pub struct Spin(CudaFunction);

impl Spin {
    pub fn launch(&self, stream: &CudaStream, ns: u64) -> LaunchResult {
        self.launch_blocks(stream, ns, 1)
    }

    /// Launches this many blocks of one thread.
    pub fn launch_blocks(&self, stream: &CudaStream, ns: u64, blocks: u32) -> LaunchResult {
        let config = LaunchConfig { grid_dim: (blocks, 1, 1), ..ONE };
        // SAFETY: the argument matches the kernel.
        unsafe { stream.launch_builder(&self.0).arg(&ns).launch(config) }.map(drop)
    }

    /// Attempts a launch with too many threads in a block, which fails on every device.
    pub fn launch_badly(&self, stream: &CudaStream) -> LaunchResult {
        let config = LaunchConfig { block_dim: (4096, 1, 1), ..ONE };
        // SAFETY: the argument matches the kernel.
        unsafe { stream.launch_builder(&self.0).arg(&1u64).launch(config) }.map(drop)
    }

    pub fn function(&self) -> &CudaFunction {
        &self.0
    }
}

/// A copy between two buffers.
pub struct Copy {
    kernel: CudaFunction,
    from: CudaSlice<u8>,
    to: CudaSlice<u8>,
}

impl Copy {
    pub fn launch(&mut self, stream: &CudaStream) -> LaunchResult {
        let n16 = self.from.len() as u64 / 16;
        let config = LaunchConfig { grid_dim: (528, 1, 1), block_dim: (512, 1, 1), ..ONE };
        let mut launch = stream.launch_builder(&self.kernel);
        launch.arg(&self.from).arg(&mut self.to).arg(&n16);
        // SAFETY: both buffers hold `n16` units of 16 bytes.
        unsafe { launch.launch(config) }.map(drop)
    }
}

/// A kernel that adds one to every element of a vector.
pub struct Increment {
    kernel: CudaFunction,
    x: CudaSlice<f32>,
    y: CudaSlice<f32>,
}

impl Increment {
    pub fn launch(&mut self, stream: &CudaStream) -> LaunchResult {
        let len = self.x.len() as u32;
        let mut launch = stream.launch_builder(&self.kernel);
        launch.arg(&len).arg(&1.0f32).arg(&self.x).arg(&mut self.y);
        // SAFETY: both vectors hold `len` elements.
        unsafe { launch.launch(LaunchConfig::for_num_elems(len)) }.map(drop)
    }

    /// Waits for the stream and returns the number of completed launches. The number is read from the
    /// vector, whose elements must all agree.
    pub fn times(&self, stream: &Arc<CudaStream>) -> u64 {
        let y = stream.clone_dtoh(&self.y).expect("the vector is read");
        stream.synchronize().expect("the vector has been copied");
        assert!(y.iter().all(|&value| value == y[0]), "the elements differ");
        y[0] as u64
    }
}

/// A kernel that times reads of single cache lines.
pub struct Lines {
    kernel: CudaFunction,
    buffer: CudaSlice<u8>,
    cycles: CudaSlice<u32>,
    done: CudaSlice<u64>,
}

impl Lines {
    pub fn launch(&mut self, stream: &CudaStream) -> LaunchResult {
        let lines = self.cycles.len() as u32 / 2;
        let block = gpu_time_kernels::LINE_LATENCIES_BLOCK;
        let mut launch = stream.launch_builder(&self.kernel);
        launch.arg(&self.buffer).arg(&lines).arg(&mut self.cycles).arg(&mut self.done).arg(&1u64);
        // SAFETY: the arguments match the kernel, and the buffers have the lengths it requires.
        unsafe { launch.launch(LaunchConfig { block_dim: (block, 1, 1), ..ONE }) }.map(drop)
    }

    /// Brings the lines into the L2 as dirty lines.
    pub fn write(&mut self, stream: &Arc<CudaStream>) {
        stream.memset_zeros(&mut self.buffer).expect("the lines are written");
    }

    /// Returns the cycles measured by the last launch, for the first read of each line and for the
    /// second. Waits for the stream.
    pub fn cycles(&self, stream: &Arc<CudaStream>) -> (Vec<u32>, Vec<u32>) {
        let mut first = stream.clone_dtoh(&self.cycles).expect("the cycles are read");
        stream.synchronize().expect("the cycles have been copied");
        let again = first.split_off(first.len() / 2);
        (first, again)
    }
}

/// A kernel that reads a buffer and writes one word.
pub struct Read {
    kernel: CudaFunction,
    from: CudaSlice<u8>,
    out: CudaSlice<u8>,
}

impl Read {
    pub fn launch(&mut self, stream: &CudaStream) -> LaunchResult {
        let n16 = self.from.len() as u64 / 16;
        let config = LaunchConfig { grid_dim: (528, 1, 1), block_dim: (512, 1, 1), ..ONE };
        let mut launch = stream.launch_builder(&self.kernel);
        launch.arg(&self.from).arg(&n16).arg(&mut self.out);
        // SAFETY: the buffer holds `n16` units of 16 bytes, and the output has room for one word.
        unsafe { launch.launch(config) }.map(drop)
    }
}
