//! Watching lines that the L2 holds, and what becomes of them.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed};
use std::time::{Duration, Instant};

use cudarc::driver::sys::CUdeviceptr;
use gpu_time_kernels::{LINE_LATENCIES_BLOCK, LINE_STEP, MAX_LINES};

use crate::cuda::device::DeviceInfo;
use crate::cuda::flush_buffer::FlushBuffer;
use crate::cuda::mapped;
use crate::cuda::module::Kernels;
use crate::gpu::Fault;
use crate::stats::eviction::{Pass, Passes};
use crate::types::handles::Stream;

const PAUSE: Duration = Duration::from_micros(50);
/// The lines take at most this part of the L2, so that it holds all of them.
const PART: u64 = 8;
const MIN_LINES: u32 = 64;

/// What the kernel tells the host, on pages of their own.
#[repr(align(4096))]
struct Sheet {
    cycles: [[AtomicU32; READS]; PASSES],
    /// The ticket of the last pass that is complete.
    done: AtomicU64,
}

const PASSES: usize = 7;
/// Reads that a pass times at most: of the lines that are watched, and of as many discarded ones.
const READS: usize = 2 * MAX_LINES as usize;

/// What it takes to watch the latencies of lines in one context.
pub(super) struct LineProbe {
    lines: u32,
    kernels: Kernels,
    sheet: &'static Sheet,
    address: CUdeviceptr,
    tickets: u64,
    side: Stream,
}

/// The memory that is watched.
#[derive(Clone, Copy)]
pub(super) struct Watched {
    lines: FlushBuffer,
    /// As many others as the L2 holds.
    others: FlushBuffer,
}

/// How lines come into the L2.
#[derive(Clone, Copy)]
enum Touch {
    Read,
    Write,
    /// In the company of as many other dirty lines as the L2 holds.
    WriteAmongOthers,
}

impl Watched {
    /// In one piece of memory.
    pub fn of(
        device: &DeviceInfo,
        allocate: impl FnOnce(u64) -> Result<FlushBuffer, Fault>,
    ) -> Result<Watched, Fault> {
        let lines = u64::from(lines(device)) * LINE_STEP;
        let others = device.l2_bytes / LINE_STEP * LINE_STEP;
        let all = allocate(lines + others)?;
        Ok(Watched { lines: all.first(lines), others: all.last(others) })
    }

    /// What begins where its allocation does.
    pub fn all(self) -> FlushBuffer {
        self.lines
    }
}

/// How many are watched on a device: a power of two.
fn lines(device: &DeviceInfo) -> u32 {
    let fitting = u32::try_from(device.l2_bytes / PART / LINE_STEP).unwrap_or(u32::MAX);
    1 << fitting.clamp(MIN_LINES, MAX_LINES).ilog2()
}

impl LineProbe {
    /// Runs the kernels once on nothing, since the first launch of a kernel may load it; the context must
    /// be current.
    pub fn new(device: &DeviceInfo, kernels: Kernels, side: Stream) -> Result<LineProbe, Fault> {
        let sheet: &Sheet = Box::leak(Box::new(Sheet {
            cycles: [const { [const { AtomicU32::new(0) }; READS] }; PASSES],
            done: AtomicU64::new(0),
        }));
        let address = mapped::map(sheet)?;
        let mut probe =
            LineProbe { lines: lines(device), kernels, sheet, address, tickets: 0, side };
        probe.launch(0, None)?;
        Ok(probe)
    }

    /// Lets the L2 take the lines in by reading and by writing, with and without `evict` after that,
    /// and times a read of each: some 7 ms of an idle GPU's time. `None` if that was not done before the
    /// deadline. `discarded` is what `evict` should have taken out of the L2 again; its last lines are
    /// timed too.
    ///
    /// Before the lines are written the L2 is filled with other dirty ones, as by a producer of much
    /// data. Where clean lines are evicted first, dirty ones are safest in such company: on an H200 a
    /// read flush of the size of the L2 leaves 2 % of them if they are few, and 82 % if all are dirty.
    ///
    /// Then the lines are taken in after a flush and flushed again, as when one cold call follows another:
    /// a flush that discards leaves an L2 that is mostly free, and filling that need evict nothing.
    pub fn watch(
        &mut self,
        watched: Watched,
        evict: impl Fn() -> Result<(), Fault>,
        discarded: Option<FlushBuffer>,
        deadline: Instant,
    ) -> Result<Option<Passes>, Fault> {
        let nothing = || Ok(());
        // Those without eviction come first and last: what disturbs a round is seen in them.
        self.pass(0, watched, Touch::Read, nothing)?;
        self.pass(1, watched, Touch::Read, &evict)?;
        self.pass(2, watched, Touch::WriteAmongOthers, &evict)?;
        for (at, touch) in [(3, Touch::Read), (4, Touch::Write)] {
            evict()?;
            self.pass(at, watched, touch, &evict)?;
        }
        if let Some(discarded) = discarded {
            evict()?;
            self.launch(6, Some(discarded.last(u64::from(self.lines) * LINE_STEP)))?;
        }
        self.pass(5, watched, Touch::WriteAmongOthers, nothing)?;
        Ok(self.is_done_by(deadline).then(|| Passes {
            cell: [self.seen(0), self.seen(5)],
            after_read: [self.seen(1), self.seen(3)],
            after_write: [self.seen(2), self.seen(4)],
            discarded: discarded.map(|_| self.seen(6)),
        }))
    }

    fn pass(
        &mut self,
        at: usize,
        watched: Watched,
        touch: Touch,
        then: impl Fn() -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        match touch {
            Touch::Read => watched.lines.read(self.kernels.flush_read, self.side)?,
            Touch::Write => watched.lines.write(self.side)?,
            Touch::WriteAmongOthers => {
                watched.others.write(self.side)?;
                watched.lines.write(self.side)?;
            }
        }
        then()?;
        self.launch(at, Some(watched.lines))
    }

    /// Times all lines of a buffer, or none.
    fn launch(&mut self, at: usize, buffer: Option<FlushBuffer>) -> Result<(), Fault> {
        self.tickets += 1;
        let mut ticket = self.tickets;
        let mut lines = buffer.map_or(0, |buffer| (buffer.bytes() / LINE_STEP) as u32);
        let mut buffer = buffer.map_or(0, FlushBuffer::address);
        let offset = at * size_of_val(&self.sheet.cycles[0]);
        let mut cycles = self.address + offset as u64;
        let mut done = self.address + std::mem::offset_of!(Sheet, done) as u64;
        let mut parameters: [*mut c_void; 5] = [
            (&raw mut buffer).cast(),
            (&raw mut lines).cast(),
            (&raw mut cycles).cast(),
            (&raw mut done).cast(),
            (&raw mut ticket).cast(),
        ];
        let geometry = (1, LINE_LATENCIES_BLOCK);
        // SAFETY: the parameters of `LINE_LATENCIES` in their order; the buffer has so many lines, the
        // sheet room for two words for each, and is never freed; the buffer is freed behind this launch.
        unsafe { self.kernels.line_latencies.launch(self.side, geometry, &mut parameters) }
    }

    /// Waits for the last pass, without a driver call.
    fn is_done_by(&self, deadline: Instant) -> bool {
        loop {
            if self.sheet.done.load(Acquire) >= self.tickets {
                return true;
            }
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::sleep(PAUSE);
        }
    }

    fn seen(&self, at: usize) -> Pass {
        let lines = self.lines as usize;
        let mut cycles = self.sheet.cycles.get(at).into_iter().flatten().map(|c| c.load(Relaxed));
        let first = cycles.by_ref().take(lines).collect();
        Pass::new(first, cycles.take(lines).collect())
    }
}
