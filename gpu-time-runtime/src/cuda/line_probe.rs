//! Times reads of cache lines, to determine whether the L2 still contains them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed};
use std::time::Instant;

use gpu_time_kernels::{LINE_LATENCIES_BLOCK, LINE_STEP, MAX_LINES};

use crate::base::clock;
use crate::cuda::mapped::{MappedPage, PagePool, register};
use crate::cuda::{device::DeviceInfo, flush_buffer::FlushBuffer, module::Kernels};
use crate::gpu::Fault;
use crate::stats::eviction::{Pass, Passes};
use crate::types::handles::Stream;

/// The lines take up 1/`PART` of the L2 or less, so that all of them fit.
const PART: u64 = 8;
const MIN_LINES: u32 = 64;

const PASSES: usize = 7;
/// The maximum number of timed reads in a pass: two of each line, of which the second is a hit.
const READS: usize = 2 * MAX_LINES as usize;

/// The page that the kernel writes its results to.
#[repr(align(4096))]
struct Sheet {
    cycles: [[AtomicU32; READS]; PASSES],
    /// The ticket of the last completed pass.
    done: AtomicU64,
}

static SHEETS: PagePool<Sheet> = PagePool::new();

/// The kernels and pages used to time line reads in one context.
pub(super) struct LineProbe {
    lines: u32,
    kernels: Kernels,
    sheet: MappedPage<Sheet>,
    tickets: u64,
    own_stream: Stream,
}

/// Device memory for the lines to time.
#[derive(Clone, Copy)]
pub(super) struct ProbedMemory {
    lines: FlushBuffer,
    /// Enough other lines to fill the L2.
    others: FlushBuffer,
}

impl ProbedMemory {
    /// Allocates all of the memory at once.
    pub fn new(
        device: &DeviceInfo,
        allocate: impl FnOnce(u64) -> Result<FlushBuffer, Fault>,
    ) -> Result<ProbedMemory, Fault> {
        let lines = u64::from(lines(device)) * LINE_STEP;
        let others = device.l2_bytes / LINE_STEP * LINE_STEP;
        let all = allocate(lines + others)?;
        Ok(ProbedMemory { lines: all.first(lines), others: all.last(others) })
    }

    /// Returns the part at the start of the allocation, whose address is the one to free.
    pub fn start(self) -> FlushBuffer {
        self.lines
    }
}

/// Returns the number of lines to time on a device, which is a power of two.
fn lines(device: &DeviceInfo) -> u32 {
    let fitting = u32::try_from(device.l2_bytes / PART / LINE_STEP).unwrap_or(u32::MAX);
    1 << fitting.clamp(MIN_LINES, MAX_LINES).ilog2()
}

impl LineProbe {
    /// Maps a page for results, and runs the kernel once without lines, because the first launch of
    /// a kernel may load it. The context must be current.
    pub fn new(
        device: &DeviceInfo,
        kernels: Kernels,
        own_stream: Stream,
    ) -> Result<LineProbe, Fault> {
        let sheet = SHEETS.map(register, || Sheet {
            cycles: [const { [const { AtomicU32::new(0) }; READS] }; PASSES],
            done: AtomicU64::new(0),
        })?;
        // A previous context may have left a ticket in the page.
        sheet.done.store(0, Relaxed);
        let mut probe = LineProbe { lines: lines(device), kernels, sheet, tickets: 0, own_stream };
        probe.launch(0, None)?;
        Ok(probe)
    }

    /// Brings the lines into the L2 by reading and by writing them, with and without a subsequent
    /// `evict`, and times reads of each line. This takes about 7 ms on an idle GPU. Returns `None`
    /// if the GPU has not finished by the deadline. `discarded` is memory whose lines `evict`
    /// discards after writing them; its last lines are timed too.
    ///
    /// Before the lines are written, the L2 is filled with other dirty lines, as by a kernel that
    /// produces a lot of data. If an L2 evicts clean lines first, dirty lines are then hardest to
    /// evict: on an H200, a read flush as large as the L2 leaves 2 % of them if they are few, and
    /// 82 % if all lines are dirty.
    ///
    /// Then the lines are brought in after a flush and flushed again, as when one cold call follows
    /// another. A flush that discards leaves an L2 that is mostly free, and filling a free L2 need
    /// not evict anything.
    pub fn time_lines(
        &mut self,
        memory: ProbedMemory,
        evict: impl Fn() -> Result<(), Fault>,
        discarded: Option<FlushBuffer>,
        deadline: Instant,
    ) -> Result<Option<Passes>, Fault> {
        let (reader, stream) = (self.kernels.flush_read, self.own_stream);
        let ProbedMemory { lines, others } = memory;
        let read = || lines.read(reader, stream);
        let write = || lines.write(stream);
        let write_among_others = || others.write(stream).and_then(|()| write());
        // The passes without eviction come first and last, so that they reveal other work on the
        // GPU during the measurement.
        read()?;
        self.launch(0, Some(lines))?;
        read().and_then(|()| evict())?;
        self.launch(1, Some(lines))?;
        write_among_others().and_then(|()| evict())?;
        self.launch(2, Some(lines))?;
        evict().and_then(|()| read()).and_then(|()| evict())?;
        self.launch(3, Some(lines))?;
        evict().and_then(|()| write()).and_then(|()| evict())?;
        self.launch(4, Some(lines))?;
        if let Some(discarded) = discarded {
            evict()?;
            self.launch(6, Some(discarded.last(u64::from(self.lines) * LINE_STEP)))?;
        }
        write_among_others()?;
        self.launch(5, Some(lines))?;
        Ok(self.is_done_by(deadline).then(|| Passes {
            without_flush: [self.result(0), self.result(5)],
            after_read: [self.result(1), self.result(3)],
            after_write: [self.result(2), self.result(4)],
            discarded: discarded.map(|_| self.result(6)),
        }))
    }

    /// Enqueues timed reads of all lines in a buffer, or of no lines.
    fn launch(&mut self, at: usize, buffer: Option<FlushBuffer>) -> Result<(), Fault> {
        self.tickets += 1;
        let lines = buffer.map_or(0, |buffer| buffer.bytes() / LINE_STEP);
        let buffer = buffer.map_or(0, FlushBuffer::address);
        let offset = at * size_of_val(&self.sheet.cycles[0]);
        let cycles = self.sheet.address() + offset as u64;
        let done = self.sheet.address() + std::mem::offset_of!(Sheet, done) as u64;
        let parameters = [buffer, lines, cycles, done, self.tickets];
        let geometry = (1, LINE_LATENCIES_BLOCK);
        // SAFETY: the parameters match `LINE_LATENCIES`; the buffer has `lines` lines; the sheet
        // has room for two words per line and is never freed; the buffer is freed only after this
        // launch in stream order.
        unsafe { self.kernels.line_latencies.launch(self.own_stream, geometry, parameters) }
    }

    /// Waits for the last pass without making driver calls.
    fn is_done_by(&self, deadline: Instant) -> bool {
        clock::wait_until(deadline, clock::BRIEFLY, || {
            self.sheet.done.load(Acquire) >= self.tickets
        })
    }

    fn result(&self, at: usize) -> Pass {
        let lines = self.lines as usize;
        let mut cycles = self.sheet.cycles.get(at).into_iter().flatten().map(|c| c.load(Relaxed));
        let first = cycles.by_ref().take(lines).collect();
        Pass::new(first, cycles.take(lines).collect())
    }
}
