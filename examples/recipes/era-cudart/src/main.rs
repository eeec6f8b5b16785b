//! era_cudart: the runtime API, with a raw stream in the attribute on an `impl`.
//!
//! ```text
//! RUSTC_BOOTSTRAP=1 cargo run --release    # or a nightly compiler; a CUDA toolkit 12.8 or later
//! ```
//!
//! Timed by events: the span of `step`, and each launch of `add`, fed or marked `≤`. Timed by CUPTI,
//! for a random sixteenth of the calls of `step`: the kernels and copies inside, and how long the GPU
//! was idle between them. Without CUPTI, only the times by events remain.

use std::error::Error;
use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::ptr;

use era_cudart::cuda_kernel_signature_and_arguments;
use era_cudart::execution::{CudaLaunchConfig, KernelFunction};
use era_cudart::memory::{DeviceAllocation, memory_copy, memory_copy_async};
use era_cudart::result::CudaResult;
use era_cudart::stream::CudaStream;
use era_cudart_sys::cudaStream_t;
use gpu_time::{gpu_timed, raw_stream};

const LEN: usize = 1 << 20;
const STEPS: usize = 100;
const PTX: &str = include_str!("../../../../kernels/ptx/workloads.ptx");

// Programs built with nvcc link their kernels in with `cuda_kernel!`. This one loads PTX instead.
cuda_kernel_signature_and_arguments!(Saxpy, len: u32, a: f32, x: *const f32, y: *mut f32);
struct Saxpy(*const c_void);

impl KernelFunction for Saxpy {
    type Signature = SaxpySignature;
    fn as_ptr(&self) -> *const c_void {
        self.0
    }
}

impl Saxpy {
    fn load() -> Result<Self, Box<dyn Error>> {
        let (mut library, mut kernel, none) = (ptr::null(), ptr::null(), ptr::null());
        let ptx = CString::new(PTX)?;
        // SAFETY: the PTX and the name end in NUL, and no options are passed.
        let errors = unsafe {
            let loaded =
                cudaLibraryLoadData(&mut library, ptx.as_ptr(), none, none, 0, none, none, 0);
            (loaded, cudaLibraryGetKernel(&mut kernel, library, c"saxpy".as_ptr()))
        };
        if errors == (0, 0) { Ok(Self(kernel)) } else { Err(format!("errors {errors:?}").into()) }
    }
}

type Pointer = *const c_void;

// Available since CUDA 12.8, but not yet in era_cudart.
unsafe extern "C" {
    fn cudaLibraryLoadData(
        library: *mut Pointer,
        code: *const c_char,
        jit_options: Pointer,
        jit_values: Pointer,
        jit_count: c_uint,
        options: Pointer,
        values: Pointer,
        count: c_uint,
    ) -> c_int;
    fn cudaLibraryGetKernel(kernel: *mut Pointer, library: Pointer, name: *const c_char) -> c_int;
}

struct Vectors {
    stream: CudaStream,
    saxpy: Saxpy,
    x: DeviceAllocation<f32>,
    y: DeviceAllocation<f32>,
}

#[gpu_timed(warmup = 2, stream = unsafe { raw_stream(cudaStream_t::from(&self.stream)) })]
impl Vectors {
    fn step(&mut self, input: &[f32]) -> CudaResult<()> {
        memory_copy_async(&mut *self.x, input, &self.stream)?;
        self.add(1.0)?;
        self.add(0.5)
    }

    fn add(&mut self, a: f32) -> CudaResult<()> {
        let config = CudaLaunchConfig::basic((LEN as u32).div_ceil(256), 256, &self.stream);
        let arguments = SaxpyArguments::new(LEN as u32, a, self.x.as_ptr(), self.y.as_mut_ptr());
        self.saxpy.launch(&config, &arguments)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut vectors = Vectors {
        stream: CudaStream::create()?,
        saxpy: Saxpy::load()?,
        x: DeviceAllocation::alloc(LEN)?,
        y: DeviceAllocation::alloc(LEN)?,
    };
    let mut y = vec![0.0; LEN];
    memory_copy(&mut *vectors.y, &y)?;
    let input = vec![2.0; LEN];
    for _ in 0..STEPS {
        vectors.step(&input)?;
    }
    vectors.stream.synchronize()?;
    memory_copy(&mut y, &*vectors.y)?;
    let expected = 3.0 * STEPS as f32;
    assert!(y.iter().all(|&y| y == expected), "computed {:?}…, not {expected}", &y[..4]);
    println!("{STEPS} steps: every element is {expected}");
    Ok(())
}
