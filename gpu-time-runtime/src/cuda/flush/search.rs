//! The search for the smallest flush that measurably empties the L2.

use std::time::{Duration, Instant};

use gpu_time_kernels::DISCARDED_LINE;

use crate::cuda::line_probe::{LineProbe, ProbedMemory};
use crate::cuda::{device::DeviceInfo, flush::method::Method, flush_buffer::FlushBuffer};
use crate::cuda::{module::Module, no_result::NoResult, symbols::Symbols};
use crate::gpu::Fault;
use crate::stats::eviction::Passes;
use crate::types::{attribute::Cold, handles::Stream};
use gpu_time_report::Eviction;

/// The maximum time that the host waits for the GPU in one search.
const PATIENCE: Duration = Duration::from_millis(200);
/// The maximum number of measurements of one candidate, if other work evicts the lines being timed.
const ROUNDS: u32 = 3;

/// The parts of a context needed for a search.
pub(in crate::cuda) struct Resources<'a> {
    pub symbols: &'a Symbols,
    pub device: &'a DeviceInfo,
    pub module: &'a Module,
    pub own_stream: Stream,
}

/// State carried from one search to the next.
#[derive(Default)]
pub(super) struct SearchState {
    line_probe: Option<Result<LineProbe, Fault>>,
    /// The memory of an unfinished search, which the GPU may still use.
    unfinished: Option<ProbedMemory>,
}

/// A flush found by a search.
pub(super) struct Flush {
    pub method: Method,
    /// The buffer to read or write. Clean and dirty flushes have separate buffers: a clean flush
    /// that read lines written by a dirty flush would hit them and leave them dirty.
    pub buffer: FlushBuffer,
    pub eviction: Result<Eviction, NoResult>,
}

/// The reasons why no flush is available.
#[derive(Clone, Copy)]
pub(super) enum SearchError {
    Memory(Fault),
    Fault(Fault),
}

impl Flush {
    /// Returns the fraction of evicted lines: of clean or of dirty ones, whichever is smaller.
    fn evicted_share(&self) -> f64 {
        let least = |seen: &Eviction| seen.missed_after_read.min(seen.missed_after_write);
        self.eviction.as_ref().map_or(0.0, least)
    }
}

/// Returns the first flush that measurably empties the L2. If there is none, returns the best flush
/// for which there is enough memory. Stops early at a flush whose effect cannot be measured.
/// `buffer` is the buffer of an earlier search, which is reused. The context must be current.
pub(super) fn search(
    cold: Cold,
    resources: &Resources<'_>,
    buffer: Option<FlushBuffer>,
    state: &mut SearchState,
) -> Result<Flush, SearchError> {
    let deadline = Instant::now() + PATIENCE;
    let mut memory = SearchMemory { resources, largest: buffer, allocated: Vec::new() };
    let mut probed = None;
    let mut best: Option<Flush> = None;
    let mut error = SearchError::Memory(Fault::Exhausted);
    let candidates = Method::candidates(cold, resources.module).map_err(SearchError::Fault)?;
    for (method, multiple) in candidates {
        let buffer = match memory.buffer(bytes(resources.device, multiple)) {
            Ok(buffer) => buffer,
            // The next candidate may need less memory.
            Err(fault) => {
                error = SearchError::Memory(fault);
                continue;
            }
        };
        method.make_ready(buffer, resources.own_stream);
        let line_probe = state.line_probe.get_or_insert_with(|| {
            LineProbe::new(resources.device, resources.module.kernels()?, resources.own_stream)
        });
        // Allocated after the buffer, because a flush matters more than its proof if memory is
        // short.
        let probed = probed.get_or_insert_with(|| memory.probed(state.unfinished.take()));
        let eviction = match (line_probe, &*probed) {
            (Ok(line_probe), Ok(probed)) => measure(
                || {
                    let evict = || method.evict(buffer, resources.own_stream);
                    line_probe.time_lines(*probed, evict, method.discarded(buffer), deadline)
                },
                |passes| passes.judge(method.name(), multiple, buffer.bytes()),
            ),
            (Err(fault), _) => Err(NoResult::Fault(*fault)),
            (_, Err(fault)) => Err(NoResult::Fault(*fault)),
        };
        match &eviction {
            Err(NoResult::Fault(fault @ (Fault::ContextGone | Fault::Sticky))) => {
                return Err(SearchError::Fault(*fault));
            }
            // The GPU may not have reached some of this work yet, so its memory must stay
            // allocated.
            Err(NoResult::Fault(_) | NoResult::Busy) => {
                memory.allocated.clear();
                state.unfinished = probed.ok();
            }
            _ => {}
        }
        let is_final = eviction.as_ref().map_or(true, |eviction| eviction.proved);
        let flush = Flush { method, buffer, eviction };
        if best.as_ref().is_none_or(|best| best.evicted_share() <= flush.evicted_share()) {
            best = Some(flush);
        }
        if is_final {
            break;
        }
    }
    let best = best.ok_or(error)?;
    memory.free_all_but(best.buffer);
    Ok(best)
}

/// The memory used by one search.
struct SearchMemory<'a> {
    resources: &'a Resources<'a>,
    /// The largest buffer so far. A buffer from an earlier search is never freed, because it may be
    /// enqueued on other streams.
    largest: Option<FlushBuffer>,
    /// Allocations that may be freed.
    allocated: Vec<FlushBuffer>,
}

impl SearchMemory<'_> {
    fn buffer(&mut self, bytes: u64) -> Result<FlushBuffer, Fault> {
        if let Some(largest) = self.largest.filter(|largest| largest.bytes() >= bytes) {
            return Ok(largest.first(bytes));
        }
        let buffer = self.allocate(bytes)?;
        self.largest = Some(buffer);
        Ok(buffer)
    }

    fn probed(&mut self, unfinished: Option<ProbedMemory>) -> Result<ProbedMemory, Fault> {
        if let Some(probed) = unfinished {
            self.allocated.push(probed.start());
            return Ok(probed);
        }
        ProbedMemory::new(self.resources.device, |bytes| self.allocate(bytes))
    }

    fn allocate(&mut self, bytes: u64) -> Result<FlushBuffer, Fault> {
        if bytes == 0 {
            return Err(Fault::Exhausted);
        }
        let Resources { symbols, device, own_stream, .. } = *self.resources;
        let buffer = FlushBuffer::allocate(bytes, device, symbols, own_stream)?;
        self.allocated.push(buffer);
        Ok(buffer)
    }

    fn free_all_but(self, kept: FlushBuffer) {
        for buffer in self.allocated.iter().filter(|buffer| buffer.address() != kept.address()) {
            buffer.free(self.resources.symbols, self.resources.own_stream);
        }
    }
}

/// Times lines and judges the flush by their times. Tries again if other work disturbed the measurement, and
/// gives up after [`ROUNDS`] attempts.
fn measure(
    mut passes: impl FnMut() -> Result<Option<Passes>, Fault>,
    judge: impl Fn(&Passes) -> Option<Eviction>,
) -> Result<Eviction, NoResult> {
    for _ in 0..ROUNDS {
        if let Some(eviction) = judge(&passes().map_err(NoResult::Fault)?.ok_or(NoResult::Busy)?) {
            return Ok(eviction);
        }
    }
    Err(NoResult::Disturbed)
}

/// Returns a multiple of the L2 size, rounded to whole lines.
fn bytes(device: &DeviceInfo, multiple: u32) -> u64 {
    device.l2_bytes / DISCARDED_LINE * DISCARDED_LINE * u64::from(multiple)
}
