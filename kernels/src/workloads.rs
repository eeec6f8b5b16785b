//! Kernels with known duration and traffic, for tests, examples and benches.
//!
//! PTX and names are `&str`, as expected by cudarc's `Ptx::from_src` and `load_function`.

/// The module with all kernels.
pub const PTX: &str = include_str!("../ptx/workloads.ptx");

/// Spins for a given time, measured by the GPU's own timer. One block of one thread.
///
/// | parameter | type | meaning |
/// |---|---|---|
/// | `ns` | `u64` | nanoseconds |
///
/// Runs for at least `ns`, and at most two steps of `%globaltimer` longer (32 ns each on an H200,
/// 1,024 ns on some GPUs). Never ends on a GPU whose timer does not advance.
pub const SPIN_NS: &str = "spin_ns";

/// Does nothing. No parameters, any geometry.
pub const EMPTY: &str = "empty";

/// Computes `y = a * x + y` with any geometry, in a grid-stride loop.
///
/// | parameter | type | meaning |
/// |---|---|---|
/// | `n` | `u32` | elements in `x` and in `y` |
/// | `a` | `f32` | the factor |
/// | `x` | `*const f32` | read: `4 * n` bytes |
/// | `y` | `*mut f32` | read and written: `8 * n` bytes of traffic |
///
/// Rounds only once, so [`f32::mul_add`] gives the same bits.
pub const SAXPY: &str = "saxpy";

/// Reads a buffer with any geometry, in a grid-stride loop.
///
/// | parameter | type | meaning |
/// |---|---|---|
/// | `in` | `*const float4` | 16-byte aligned, **all zero** |
/// | `n16` | `u64` | length of `in` in units of 16 bytes |
/// | `out` | `*mut f32` | one word, written only if `in` contains a value other than zero |
pub const READ_F4: &str = "read_f4";

/// Copies a buffer with any geometry, in a grid-stride loop.
///
/// | parameter | type | meaning |
/// |---|---|---|
/// | `in` | `*const float4` | 16-byte aligned |
/// | `out` | `*mut float4` | 16-byte aligned, must not overlap `in` |
/// | `n16` | `u64` | length of each in units of 16 bytes |
pub const COPY_F4: &str = "copy_f4";
