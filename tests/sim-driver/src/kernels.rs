//! The known kernels: their lengths, and their effects on memory and the L2. Grid and block sizes
//! have no influence; the length depends only on the arguments.

use crate::code::{Code, DriverResult};
use crate::constants::Constants;
use crate::l2::{L2, Touch};
use crate::memory::Memory;

/// A kernel, with the arguments for one launch.
#[derive(Clone, Debug)]
pub(crate) enum Kernel {
    Empty,
    Spin {
        ns: u64,
    },
    Saxpy {
        n: u32,
        a: f32,
        x: u64,
        y: u64,
    },
    CopyF4 {
        from: u64,
        to: u64,
        n16: u64,
    },
    ReadF4 {
        from: u64,
        n16: u64,
        out: u64,
    },
    FlushRead {
        buffer: u64,
        n16: u64,
        sink: u64,
    },
    Discard {
        buffer: u64,
        lines: u64,
    },
    LineLatencies {
        buffer: u64,
        lines: u32,
        cycles: u64,
        done: u64,
        ticket: u64,
    },
    Hold(HoldArgs),
    /// A kernel that the model does not implement.
    Unknown,
}

/// The arguments of `gpu_time_hold`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HoldArgs {
    pub released: u64,
    pub ticket: u64,
    pub max_ns: u64,
    pub max_cycles: u64,
    pub expired: u64,
}

impl HoldArgs {
    /// Returns the maximum duration of the hold: the smaller of its two bounds.
    pub fn limit_ns(&self, constants: &Constants) -> u64 {
        let cycles = u128::from(self.max_cycles) * 1_000_000 / u128::from(constants.sm_khz.max(1));
        self.max_ns.min(u64::try_from(cycles).unwrap_or(u64::MAX))
    }
}

/// Parameter sizes of the known kernels, in bytes. A kernel with the same name but other parameters
/// is unknown.
const SIGNATURES: &[(&str, &[usize])] = &[
    ("empty", &[]),
    ("gpu_time_empty", &[]),
    ("spin_ns", &[8]),
    ("saxpy", &[4, 4, 8, 8]),
    ("copy_f4", &[8, 8, 8]),
    ("read_f4", &[8, 8, 8]),
    ("gpu_time_flush_read", &[8, 8, 8]),
    ("gpu_time_discard", &[8, 8]),
    ("gpu_time_hold", &[8, 8, 8, 8, 8]),
    ("gpu_time_line_latencies", &[8, 4, 8, 8, 8]),
];

/// Returns `true` if the model implements a kernel with this name and these parameter sizes.
pub(crate) fn is_known(name: &str, parameters: &[usize]) -> bool {
    SIGNATURES.contains(&(name, parameters))
}

/// Reads the `n`th argument of a launch.
///
/// # Safety
/// `arguments` must hold at least `n + 1` pointers, the last of which must point to a `T`.
unsafe fn argument<T: Copy>(arguments: *const *const T, n: usize) -> T {
    // SAFETY: guaranteed by the caller. The argument may be unaligned.
    unsafe { (*arguments.add(n)).read_unaligned() }
}

impl Kernel {
    /// Reads the arguments of a known kernel.
    ///
    /// # Safety
    /// `arguments` must hold a pointer for each of the kernel's parameters, as for
    /// `cuLaunchKernel`.
    pub unsafe fn known(name: &str, arguments: *const *const std::ffi::c_void) -> Self {
        // SAFETY: guaranteed by the caller. The types match the checked parameter sizes.
        let u64_at = |n| unsafe { argument::<u64>(arguments.cast(), n) };
        match name {
            "spin_ns" => Self::Spin { ns: u64_at(0) },
            "saxpy" => Self::Saxpy {
                // SAFETY: as above.
                n: unsafe { argument(arguments.cast(), 0) },
                // SAFETY: as above.
                a: unsafe { argument(arguments.cast(), 1) },
                x: u64_at(2),
                y: u64_at(3),
            },
            "copy_f4" => Self::CopyF4 { from: u64_at(0), to: u64_at(1), n16: u64_at(2) },
            "read_f4" => Self::ReadF4 { from: u64_at(0), n16: u64_at(1), out: u64_at(2) },
            "gpu_time_flush_read" => {
                Self::FlushRead { buffer: u64_at(0), n16: u64_at(1), sink: u64_at(2) }
            }
            "gpu_time_discard" => Self::Discard { buffer: u64_at(0), lines: u64_at(1) },
            "gpu_time_line_latencies" => Self::LineLatencies {
                buffer: u64_at(0),
                // SAFETY: as above.
                lines: unsafe { argument(arguments.cast(), 1) },
                cycles: u64_at(2),
                done: u64_at(3),
                ticket: u64_at(4),
            },
            "gpu_time_hold" => Self::Hold(HoldArgs {
                released: u64_at(0),
                ticket: u64_at(1),
                max_ns: u64_at(2),
                max_cycles: u64_at(3),
                expired: u64_at(4),
            }),
            _ => Self::Empty,
        }
    }

    /// Executes the kernel and returns its length as CUPTI would report it. For a hold, this is the
    /// length after the wait has ended.
    pub fn run(&self, memory: &Memory, l2: &mut L2, constants: &Constants) -> DriverResult<u64> {
        Ok(match *self {
            Self::Empty | Self::Hold(_) => constants.empty_ns,
            Self::Unknown => constants.unknown_ns,
            Self::Spin { ns } => constants.round_up(ns) + constants.spin_extra_ns,
            Self::Saxpy { n, a, x, y } => {
                let bytes = 4 * u64::from(n);
                saxpy(memory, n, a, x, y)?;
                let touches = [read(x, bytes), write(y, bytes)];
                moving_ns(&touches, l2, constants)
            }
            Self::CopyF4 { from, to, n16 } => {
                let bytes = n16.checked_mul(16).ok_or(Code::ILLEGAL_ADDRESS)?;
                memory.copy(to, from, bytes)?;
                moving_ns(&[read(from, bytes), write(to, bytes)], l2, constants)
            }
            Self::ReadF4 { from, n16, out } => {
                let bytes = n16.checked_mul(16).ok_or(Code::ILLEGAL_ADDRESS)?;
                memory.check(from, bytes)?;
                memory.check(out, 4)?;
                moving_ns(&[read(from, bytes)], l2, constants)
            }
            Self::FlushRead { buffer, n16, sink } => {
                let bytes = n16.checked_mul(16).ok_or(Code::ILLEGAL_ADDRESS)?;
                memory.check(buffer, bytes)?;
                memory.check(sink, 4)?;
                l2.access(&[read(buffer, bytes)]);
                Constants::at_rate(bytes, constants.flush_bytes_per_ns)
            }
            Self::Discard { buffer, lines } => {
                let bytes = lines.checked_mul(128).ok_or(Code::ILLEGAL_ADDRESS)?;
                memory.check(buffer, bytes)?;
                if constants.l2_discards != 0 {
                    l2.forget(buffer, bytes);
                }
                constants.empty_ns + Constants::at_rate(bytes, constants.discard_bytes_per_ns)
            }
            Self::LineLatencies { buffer, lines, cycles, done, ticket } => {
                let taken = line_latencies(memory, l2, constants, buffer, lines)?;
                let words: Vec<u8> = taken.iter().flat_map(|taken| taken.to_le_bytes()).collect();
                memory.write(cycles, &words)?;
                memory.check(done, 8)?;
                memory.store(done, ticket);
                let taken: u64 = taken.into_iter().map(u64::from).sum();
                constants.empty_ns + taken * 1_000_000 / constants.sm_khz.max(1)
            }
        })
    }
}

pub(crate) fn read(start: u64, bytes: u64) -> Touch {
    Touch { start, bytes, write: false }
}

pub(crate) fn write(start: u64, bytes: u64) -> Touch {
    Touch { start, bytes, write: true }
}

/// Returns the length of a command that moves these bytes through the L2.
pub(crate) fn moving_ns(touches: &[Touch], l2: &mut L2, constants: &Constants) -> u64 {
    let traffic = l2.access(touches);
    constants.body_ns
        + Constants::at_rate(traffic.hit, constants.hit_bytes_per_ns)
        + Constants::at_rate(traffic.miss, constants.miss_bytes_per_ns)
        + Constants::at_rate(traffic.written_back, constants.writeback_bytes_per_ns)
}

/// Returns the cycles for the first read of each line, followed by those for the second reads.
fn line_latencies(
    memory: &Memory,
    l2: &mut L2,
    constants: &Constants,
    buffer: u64,
    lines: u32,
) -> DriverResult<Vec<u32>> {
    const STEP: u64 = 1_024;
    let lines = u64::from(lines);
    memory.check(buffer, lines * STEP)?;
    let held = l2.overlaps(buffer, buffer + lines * STEP);
    let is_held = |line: u64| {
        let address = buffer + line * STEP;
        held.iter().any(|&(start, end)| (start..end).contains(&address))
    };
    let (hit, miss) = (constants.l2_hit_cycles as u32, constants.l2_miss_cycles as u32);
    // The order does not matter, because the lines do not evict each other.
    let mut taken: Vec<u32> = (0..lines).map(|i| if is_held(i) { hit } else { miss }).collect();
    taken.resize(2 * taken.len(), hit);
    // From here on, the L2 is assumed to hold the whole buffer, because tracking single lines would
    // exceed the limit on separate ranges.
    l2.access(&[read(buffer, lines * STEP)]);
    Ok(taken)
}

fn saxpy(memory: &Memory, n: u32, a: f32, x: u64, y: u64) -> DriverResult {
    let bytes = 4 * u64::from(n);
    memory.check(x, bytes)?;
    memory.check(y, bytes)?;
    for i in 0..n as usize {
        // SAFETY: both ranges were checked to lie in live allocations. `x` and `y` may overlap, so
        // the code does not create slices.
        unsafe {
            let x = (x as *const f32).add(i).read_unaligned();
            let y = (y as *mut f32).add(i);
            // Fused multiply-add, as in the real kernel, so that results are bit-identical.
            y.write_unaligned(a.mul_add(x, y.read_unaligned()));
        }
    }
    Ok(())
}
