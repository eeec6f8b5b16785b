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

/// The longest time that the host waits in one search.
const PATIENCE: Duration = Duration::from_millis(200);
/// Attempts at one size while other work evicts the lines that are timed.
const ROUNDS: u32 = 3;

/// The parts of a context that a search uses; the context must be current.
pub(in crate::cuda) struct Resources<'a> {
    pub symbols: &'a Symbols,
    pub device: &'a DeviceInfo,
    pub module: &'a Module,
    pub own_stream: Stream,
}

/// The state that one search leaves for the next.
#[derive(Default)]
pub(super) struct SearchState {
    line_probe: Option<Result<LineProbe, Fault>>,
    /// Memory of a search that did not come to its end.
    unfinished: Option<ProbedMemory>,
}

/// A flush, as a search found it.
pub(super) struct Flush {
    pub method: Method,
    /// The buffer that it reads or writes. The two kinds do not share one: a clean flush that reads
    /// what a dirty one wrote would hit those lines and leave them dirty.
    pub buffer: FlushBuffer,
    pub eviction: Result<Eviction, NoResult>,
}

/// The reasons why there is no flush.
#[derive(Clone, Copy)]
pub(super) enum SearchError {
    Memory(Fault),
    Fault(Fault),
}

impl Flush {
    /// Returns the share of lines that it evicts, for the kind of line that it evicts least.
    fn evicted_share(&self) -> f64 {
        let least = |seen: &Eviction| seen.missed_after_read().min(seen.missed_after_write());
        self.eviction.as_ref().map_or(0.0, least)
    }
}

/// Returns the first flush that measurably empties the L2. If none does, returns the best that
/// there is memory for, or the first if nothing can be measured. `buffer` is that of an earlier
/// search, which is used again.
pub(super) fn search(
    cold: Cold,
    resources: &Resources<'_>,
    buffer: Option<FlushBuffer>,
    state: &mut SearchState,
) -> Result<Flush, SearchError> {
    let deadline = Instant::now() + PATIENCE;
    let mut memory = Memory { resources, largest: buffer, allocated: Vec::new() };
    let mut probed = None;
    let mut best: Option<Flush> = None;
    let mut error = SearchError::Memory(Fault::Exhausted);
    let candidates = Method::candidates(cold, resources.module).map_err(SearchError::Fault)?;
    for (method, multiple) in candidates {
        let buffer = match memory.buffer(bytes(resources.device, multiple)) {
            Ok(buffer) => buffer,
            // The next candidate may need less.
            Err(fault) => {
                error = SearchError::Memory(fault);
                continue;
            }
        };
        method.make_ready(buffer, resources.own_stream);
        let line_probe = state.line_probe.get_or_insert_with(|| {
            LineProbe::new(resources.device, resources.module.kernels()?, resources.own_stream)
        });
        // After the buffer: where memory is short, a flush matters more than its proof.
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
            // The GPU may not have come to some of this work yet, so its memory must stay.
            Err(NoResult::Fault(_) | NoResult::Busy) => {
                memory.allocated.clear();
                state.unfinished = probed.ok();
            }
            _ => {}
        }
        let is_final = eviction.as_ref().map_or(true, Eviction::proved);
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

/// The memory of one search.
struct Memory<'a> {
    resources: &'a Resources<'a>,
    /// The largest buffer so far. At first that of an earlier search, which is never freed: it may
    /// be enqueued on other streams.
    largest: Option<FlushBuffer>,
    /// Allocations that can be freed.
    allocated: Vec<FlushBuffer>,
}

impl Memory<'_> {
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
        let Resources { device, own_stream, .. } = *self.resources;
        let buffer = FlushBuffer::allocate(bytes, device, own_stream)?;
        self.allocated.push(buffer);
        Ok(buffer)
    }

    fn free_all_but(self, kept: FlushBuffer) {
        for buffer in self.allocated.iter().filter(|buffer| buffer.address() != kept.address()) {
            buffer.free(self.resources.symbols, self.resources.own_stream);
        }
    }
}

/// Times lines until the passes can be judged.
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

/// Returns a multiple of the size of the L2, in whole lines.
fn bytes(device: &DeviceInfo, multiple: u32) -> u64 {
    device.l2_bytes / DISCARDED_LINE * DISCARDED_LINE * u64::from(multiple)
}
