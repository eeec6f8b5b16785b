//! Kernels of known length and traffic for tests, examples and benches.
//!
//! Text and names are `&str` here, as `Ptx::from_src` and `load_function` of cudarc take them.

/// The module with all of them.
pub const PTX: &str = include_str!("../ptx/workloads.ptx");

/// Runs for a given time by the GPU's own timer. One block of one thread.
///
/// | parameter | type | meaning |
/// |---|---|---|
/// | `ns` | `u64` | nanoseconds |
///
/// It lasts at least `ns`, and at most two steps of `%globaltimer` longer (32 ns each on an H200,
/// 1,024 on some parts). It never ends on a GPU whose timer stands still.
pub const SPIN_NS: &str = "spin_ns";

/// Does nothing and takes no parameters, at any geometry.
pub const EMPTY: &str = "empty";

/// `y = a * x + y`, at any geometry: each thread takes every so many-th element.
///
/// | parameter | type | meaning |
/// |---|---|---|
/// | `n` | `u32` | elements in `x` and in `y` |
/// | `a` | `f32` | the factor |
/// | `x` | `*const f32` | read: `4 n` bytes |
/// | `y` | `*mut f32` | read and written: `8 n` bytes |
///
/// Rounded once, so that [`f32::mul_add`] gives the same bits.
pub const SAXPY: &str = "saxpy";

/// Reads, at any geometry: each thread takes every so many-th unit.
///
/// | parameter | type | meaning |
/// |---|---|---|
/// | `in` | `*const float4` | 16-byte aligned, **all zero** |
/// | `n16` | `u64` | its length in units of 16 bytes |
/// | `out` | `*mut f32` | one word, written only if `in` holds something else than zero |
pub const READ_F4: &str = "read_f4";

/// Copies, at any geometry: each thread takes every so many-th unit.
///
/// | parameter | type | meaning |
/// |---|---|---|
/// | `in` | `*const float4` | 16-byte aligned |
/// | `out` | `*mut float4` | 16-byte aligned, apart from `in` |
/// | `n16` | `u64` | length of each in units of 16 bytes |
pub const COPY_F4: &str = "copy_f4";
