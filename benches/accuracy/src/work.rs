//! The work done in each case.

use std::sync::Arc;

use cudarc::cublas::sys::cublasOperation_t::CUBLAS_OP_N;
use cudarc::cublas::{CudaBlas, Gemm, GemmConfig};
use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg};
use gpu_time_kernels::workloads;

use crate::failure::Failure;
use crate::gpu::{Gpu, ONE};

/// A kind of work, with its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A kernel that does nothing.
    Empty,
    /// One thread that runs for the given number of nanoseconds.
    Spin(u64),
    /// A kernel that copies the given number of bytes.
    Copy(usize),
    /// A kernel that adds to one element.
    AddOne,
    /// A cuBLAS product of two square `f32` matrices with the given number of rows.
    Product(usize),
    /// A memset of the given number of bytes.
    Memset(usize),
    /// A copy of the given number of bytes within the device, by the driver.
    DeviceCopy(usize),
}

impl Kind {
    /// Returns the requirement that this machine lacks for this kind of work, or `None` if it lacks
    /// none.
    pub fn missing_requirement(self, gpu: &Gpu) -> Option<String> {
        match self {
            Kind::Product(_) => gpu.blas().err().map(|why| why.to_string()),
            _ => None,
        }
    }
}

/// Work of some [`Kind`], with its kernel and its memory.
pub enum Work {
    /// See [`Kind::Empty`].
    Empty(CudaFunction),
    /// See [`Kind::Spin`].
    Spin(CudaFunction, u64),
    /// See [`Kind::Copy`].
    Copy(CudaFunction, [CudaSlice<u8>; 2]),
    /// See [`Kind::AddOne`].
    AddOne(CudaFunction, [CudaSlice<f32>; 2]),
    /// See [`Kind::Product`].
    Product(Arc<CudaBlas>, GemmConfig<f32>, [CudaSlice<f32>; 3]),
    /// See [`Kind::Memset`].
    Memset(CudaSlice<u8>),
    /// See [`Kind::DeviceCopy`].
    DeviceCopy([CudaSlice<u8>; 2]),
}

impl Work {
    /// Loads the kernel, allocates the memory, and waits until both are ready.
    ///
    /// # Errors
    /// A library is missing or a driver call fails.
    pub fn new(gpu: &Gpu, kind: Kind) -> Result<Work, Failure> {
        let bytes = |n| gpu.stream.alloc_zeros::<u8>(n);
        let floats = |n| gpu.stream.alloc_zeros::<f32>(n);
        let work = match kind {
            Kind::Empty => Work::Empty(gpu.workload(workloads::EMPTY)?),
            Kind::Spin(ns) => Work::Spin(gpu.workload(workloads::SPIN_NS)?, ns),
            Kind::Copy(n) => Work::Copy(gpu.workload(workloads::COPY_F4)?, [bytes(n)?, bytes(n)?]),
            Kind::AddOne => Work::AddOne(gpu.workload(workloads::SAXPY)?, [floats(1)?, floats(1)?]),
            Kind::Product(n) => {
                let rows = i32::try_from(n)?;
                let product = GemmConfig {
                    transa: CUBLAS_OP_N,
                    transb: CUBLAS_OP_N,
                    m: rows,
                    n: rows,
                    k: rows,
                    alpha: 1.0,
                    lda: rows,
                    ldb: rows,
                    beta: 0.0,
                    ldc: rows,
                };
                let matrices = [floats(n * n)?, floats(n * n)?, floats(n * n)?];
                Work::Product(gpu.blas()?, product, matrices)
            }
            Kind::Memset(n) => Work::Memset(bytes(n)?),
            Kind::DeviceCopy(n) => Work::DeviceCopy([bytes(n)?, bytes(n)?]),
        };
        gpu.stream.synchronize()?;
        Ok(work)
    }

    /// Enqueues the work once.
    pub fn launch(&mut self, stream: &Arc<CudaStream>) -> Result<(), Failure> {
        match self {
            Work::Empty(kernel) => {
                // SAFETY: the kernel has no parameters.
                unsafe { stream.launch_builder(kernel).launch(ONE) }?;
            }
            Work::Spin(kernel, ns) => {
                // SAFETY: the argument matches the kernel.
                unsafe { stream.launch_builder(kernel).arg(&*ns).launch(ONE) }?;
            }
            Work::Copy(kernel, [from, to]) => {
                let n16 = from.len() as u64 / 16;
                let config = LaunchConfig { grid_dim: (528, 1, 1), block_dim: (512, 1, 1), ..ONE };
                let mut launch = stream.launch_builder(kernel);
                launch.arg(from).arg(to).arg(&n16);
                // SAFETY: the arguments match the kernel, and both buffers have `n16` units.
                unsafe { launch.launch(config) }?;
            }
            Work::AddOne(kernel, [x, y]) => {
                let mut launch = stream.launch_builder(kernel);
                launch.arg(&1_u32).arg(&1.0_f32).arg(x).arg(y);
                // SAFETY: the arguments match the kernel, and both vectors have one element.
                unsafe { launch.launch(ONE) }?;
            }
            Work::Product(blas, product, [a, b, c]) => {
                // SAFETY: the matrices have the size in the configuration.
                unsafe { blas.gemm(*product, a, b, c) }?;
            }
            Work::Memset(buffer) => stream.memset_zeros(buffer)?,
            Work::DeviceCopy([from, to]) => stream.memcpy_dtod(from, to)?,
        }
        Ok(())
    }
}
