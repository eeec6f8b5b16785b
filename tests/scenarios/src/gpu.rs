//! A device, a stream of our own, and the workload kernels, each launched through a safe method.

use std::sync::Arc;

use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use gpu_time_kernels::workloads;

use crate::tally;

/// One thread.
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

    /// The device of this ordinal, without cudarc's event tracking.
    pub fn at(ordinal: usize) -> Gpu {
        let context = CudaContext::new(ordinal).expect("there is a device");
        let stream = context.new_stream().expect("a stream");
        // SAFETY: what several streams use is ordered by the scenarios themselves.
        unsafe { context.disable_event_tracking() };
        Gpu { context, stream }
    }

    pub fn new_stream(&self) -> Arc<CudaStream> {
        self.context.new_stream().expect("another stream")
    }

    /// `spin_ns`, for the launch of this path only: `module::function`, with `#index` if it is one
    /// of several. A test tells launches apart by their kernels.
    pub fn spin(&self, place: &str) -> Spin {
        Spin(self.kernel(workloads::SPIN_NS, place))
    }

    /// `copy_f4` for one place, between two buffers of this many bytes.
    pub fn copy(&self, place: &str, bytes: usize) -> Copy {
        let zeros = || self.stream.alloc_zeros(bytes).expect("memory");
        let (from, to) = (zeros(), zeros());
        self.stream.synchronize().expect("the buffers are ready");
        Copy { kernel: self.kernel(workloads::COPY_F4, place), from, to }
    }

    /// `saxpy` with `a` = 1 for one place, on a vector of ones: adds 1 to every element of `y`.
    pub fn increment(&self, place: &str) -> Increment {
        const LEN: usize = 1024;
        let x = self.stream.clone_htod(&vec![1.0; LEN]).expect("memory");
        let y = self.stream.alloc_zeros(LEN).expect("memory");
        self.stream.synchronize().expect("the vectors are ready");
        Increment { kernel: self.kernel(workloads::SAXPY, place), x, y }
    }

    /// The kernel that times single lines, for one place, on lines of its own.
    pub fn lines(&self, place: &str) -> Lines {
        let ptx = gpu_time_kernels::PTX.to_str().expect("PTX is ASCII");
        let name = gpu_time_kernels::LINE_LATENCIES.to_str().expect("so is a name");
        let lines = gpu_time_kernels::MAX_LINES as usize;
        let zeros = |bytes| self.stream.alloc_zeros(bytes).expect("memory");
        let buffer = zeros(lines * gpu_time_kernels::LINE_STEP as usize);
        let cycles = self.stream.alloc_zeros(2 * lines).expect("memory");
        let done = self.stream.alloc_zeros(1).expect("memory");
        self.stream.synchronize().expect("the buffers are ready");
        Lines { kernel: self.kernel_of(ptx, name, place), buffer, cycles, done }
    }

    /// `read_f4` for one place, of so many zeros.
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
        // A module of its own, so that the handle belongs to this place alone.
        let module = self.context.load_module(Ptx::from_src(ptx)).expect("a module");
        let kernel = module.load_function(name).expect("a kernel");
        tally::kernel(kernel.cu_function() as u64, place);
        kernel
    }

    pub fn synchronize(&self) {
        self.context.synchronize().expect("the device gets its work done");
    }
}

/// Runs for a given time.
pub struct Spin(CudaFunction);

impl Spin {
    pub fn launch(&self, stream: &CudaStream, ns: u64) -> Result<(), DriverError> {
        // SAFETY: the argument is the kernel's.
        unsafe { stream.launch_builder(&self.0).arg(&ns).launch(ONE) }.map(drop)
    }

    /// A launch that no device can make: too many threads in a block.
    pub fn launch_badly(&self, stream: &CudaStream) -> Result<(), DriverError> {
        let config = LaunchConfig { block_dim: (4096, 1, 1), ..ONE };
        // SAFETY: the argument is the kernel's.
        unsafe { stream.launch_builder(&self.0).arg(&1u64).launch(config) }.map(drop)
    }

    pub fn function(&self) -> &CudaFunction {
        &self.0
    }
}

/// Copies between two buffers.
pub struct Copy {
    kernel: CudaFunction,
    from: CudaSlice<u8>,
    to: CudaSlice<u8>,
}

impl Copy {
    pub fn launch(&mut self, stream: &CudaStream) -> Result<(), DriverError> {
        let n16 = self.from.len() as u64 / 16;
        let config = LaunchConfig { grid_dim: (528, 1, 1), block_dim: (512, 1, 1), ..ONE };
        let mut launch = stream.launch_builder(&self.kernel);
        launch.arg(&self.from).arg(&mut self.to).arg(&n16);
        // SAFETY: both buffers hold `n16` units.
        unsafe { launch.launch(config) }.map(drop)
    }
}

/// Adds one to every element of a vector.
pub struct Increment {
    kernel: CudaFunction,
    x: CudaSlice<f32>,
    y: CudaSlice<f32>,
}

impl Increment {
    pub fn launch(&mut self, stream: &CudaStream) -> Result<(), DriverError> {
        let len = self.x.len() as u32;
        let mut launch = stream.launch_builder(&self.kernel);
        launch.arg(&len).arg(&1.0f32).arg(&self.x).arg(&mut self.y);
        // SAFETY: both vectors hold `len` elements.
        unsafe { launch.launch(LaunchConfig::for_num_elems(len)) }.map(drop)
    }

    /// How often it ran, by the vector, whose elements must agree. Waits for the stream.
    pub fn times(&self, stream: &Arc<CudaStream>) -> u64 {
        let y = stream.clone_dtoh(&self.y).expect("the vector is read");
        stream.synchronize().expect("it has arrived");
        assert!(y.iter().all(|&value| value == y[0]), "the elements differ");
        y[0] as u64
    }
}

/// Times reads of single lines.
pub struct Lines {
    kernel: CudaFunction,
    buffer: CudaSlice<u8>,
    cycles: CudaSlice<u32>,
    done: CudaSlice<u64>,
}

impl Lines {
    pub fn launch(&mut self, stream: &CudaStream) -> Result<(), DriverError> {
        let lines = self.cycles.len() as u32 / 2;
        let block = gpu_time_kernels::LINE_LATENCIES_BLOCK;
        let mut launch = stream.launch_builder(&self.kernel);
        launch.arg(&self.buffer).arg(&lines).arg(&mut self.cycles).arg(&mut self.done).arg(&1u64);
        // SAFETY: the arguments are the kernel's, and the buffers as long as it wants them.
        unsafe { launch.launch(LaunchConfig { block_dim: (block, 1, 1), ..ONE }) }.map(drop)
    }

    /// Lets the L2 take the lines in as dirty ones.
    pub fn write(&mut self, stream: &Arc<CudaStream>) {
        stream.memset_zeros(&mut self.buffer).expect("the lines are written");
    }

    /// What the last launch saw, in cycles: the first reads of the lines, and the second ones. Waits
    /// for the stream.
    pub fn cycles(&self, stream: &Arc<CudaStream>) -> (Vec<u32>, Vec<u32>) {
        let mut first = stream.clone_dtoh(&self.cycles).expect("the cycles are read");
        stream.synchronize().expect("they have arrived");
        let again = first.split_off(first.len() / 2);
        (first, again)
    }
}

/// Reads a buffer and writes nothing.
pub struct Read {
    kernel: CudaFunction,
    from: CudaSlice<u8>,
    out: CudaSlice<u8>,
}

impl Read {
    pub fn launch(&mut self, stream: &CudaStream) -> Result<(), DriverError> {
        let n16 = self.from.len() as u64 / 16;
        let config = LaunchConfig { grid_dim: (528, 1, 1), block_dim: (512, 1, 1), ..ONE };
        let mut launch = stream.launch_builder(&self.kernel);
        launch.arg(&self.from).arg(&n16).arg(&mut self.out);
        // SAFETY: the buffer holds `n16` units, and the result has its word.
        unsafe { launch.launch(config) }.map(drop)
    }
}
