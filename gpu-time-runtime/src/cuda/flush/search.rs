//! The search for a flush that is seen to empty the L2, with a buffer as small as it may be.

use std::fmt;
use std::time::{Duration, Instant};

use gpu_time_kernels::DISCARDED_LINE;

use crate::cuda::device::DeviceInfo;
use crate::cuda::flush::method::Method;
use crate::cuda::flush_buffer::FlushBuffer;
use crate::cuda::line_probe::{LineProbe, Watched};
use crate::cuda::module::Module;
use crate::cuda::symbols::Symbols;
use crate::gpu::Fault;
use crate::stats::eviction::Passes;
use crate::types::attribute::Cold;
use crate::types::handles::Stream;
use gpu_time_report::Eviction;

/// So long the host waits at most, in each search.
const PATIENCE: Duration = Duration::from_millis(200);
/// So often a size is tried while other work evicts the lines that are watched.
const ROUNDS: u32 = 3;

/// What looking for a flush takes; the context must be current.
pub(in crate::cuda) struct Means<'a> {
    pub symbols: &'a Symbols,
    pub device: &'a DeviceInfo,
    pub module: &'a Module,
    /// Our own stream.
    pub side: Stream,
}

/// What is used in one search after another.
#[derive(Default)]
pub(super) struct Probe {
    lines: Option<Result<LineProbe, Fault>>,
    /// What a search left that did not come to its end.
    watched: Option<Watched>,
}

/// A flush, as a search found it.
pub(super) struct Flush {
    pub method: Method,
    /// What it reads or writes, and the other kind does not: a clean flush that reads what a dirty one wrote
    /// would find it, and leave it dirty.
    pub zeros: FlushBuffer,
    pub seen: Result<Eviction, Unseen>,
}

/// Why there is no flush.
#[derive(Clone, Copy)]
pub(super) enum Unready {
    Memory(Fault),
    Fault(Fault),
}

/// Why nobody knows what a flush evicts.
#[derive(Clone, Copy)]
pub(super) enum Unseen {
    Fault(Fault),
    Busy,
    Disturbed,
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unseen::Fault(fault) => fault.fmt(f),
            Unseen::Busy => f.write_str("the GPU was busy"),
            Unseen::Disturbed => f.write_str("other work on the GPU evicted the lines to watch"),
        }
    }
}

impl Flush {
    /// The share of lines that it evicts, of those that it evicts least.
    fn evicts(&self) -> f64 {
        let least = |seen: &Eviction| seen.missed_after_read().min(seen.missed_after_write());
        self.seen.as_ref().map_or(0.0, least)
    }
}

/// The first flush that is seen to evict; the best that there is memory for, if none is; and where
/// nothing can be seen, the first. The buffer of an earlier search is used again.
pub(super) fn find(
    cold: Cold,
    means: &Means<'_>,
    room: Option<FlushBuffer>,
    probe: &mut Probe,
) -> Result<Flush, Unready> {
    let deadline = Instant::now() + PATIENCE;
    let mut memory = Memory { means, room, made: Vec::new() };
    let mut watched = None;
    let mut best: Option<Flush> = None;
    let mut unready = Unready::Memory(Fault::Exhausted);
    for (method, multiple) in Method::candidates(cold, means.module).map_err(Unready::Fault)? {
        let zeros = match memory.room_for(bytes(means.device, multiple)) {
            Ok(zeros) => zeros,
            // The next may need less.
            Err(fault) => {
                unready = Unready::Memory(fault);
                continue;
            }
        };
        method.make_ready(zeros, means.side);
        let lines = probe.lines.get_or_insert_with(|| {
            LineProbe::new(means.device, means.module.kernels()?, means.side)
        });
        // After the buffer: where there is little memory, a flush matters more than its proof.
        let watched = watched.get_or_insert_with(|| memory.watched(probe.watched.take()));
        let seen = match (lines, &*watched) {
            (Ok(lines), Ok(watched)) => look(
                || {
                    let evict = || method.evict(zeros, means.side);
                    lines.watch(*watched, evict, method.discarded(zeros), deadline)
                },
                |passes| passes.judge(method.name(), multiple, zeros.bytes()),
            ),
            (Err(fault), _) => Err(Unseen::Fault(*fault)),
            (_, Err(fault)) => Err(Unseen::Fault(*fault)),
        };
        match &seen {
            Err(Unseen::Fault(fault @ (Fault::ContextGone | Fault::Sticky))) => {
                return Err(Unready::Fault(*fault));
            }
            // What the GPU has not come to yet, nobody may take away.
            Err(Unseen::Fault(_) | Unseen::Busy) => {
                memory.made.clear();
                probe.watched = watched.ok();
            }
            _ => {}
        }
        let is_final = seen.as_ref().map_or(true, Eviction::proved);
        let flush = Flush { method, zeros, seen };
        if best.as_ref().is_none_or(|best| best.evicts() <= flush.evicts()) {
            best = Some(flush);
        }
        if is_final {
            break;
        }
    }
    let best = best.ok_or(unready)?;
    memory.keep(best.zeros);
    Ok(best)
}

/// The memory of one search.
struct Memory<'a> {
    means: &'a Means<'a>,
    /// The largest buffer so far; at first that of an earlier search, which is never given back: it may be
    /// enqueued elsewhere.
    room: Option<FlushBuffer>,
    /// What was allocated and can be given back.
    made: Vec<FlushBuffer>,
}

impl Memory<'_> {
    fn room_for(&mut self, bytes: u64) -> Result<FlushBuffer, Fault> {
        if let Some(room) = self.room.filter(|room| room.bytes() >= bytes) {
            return Ok(room.first(bytes));
        }
        let made = self.allocate(bytes)?;
        self.room = Some(made);
        Ok(made)
    }

    fn watched(&mut self, left: Option<Watched>) -> Result<Watched, Fault> {
        if let Some(left) = left {
            self.made.push(left.all());
            return Ok(left);
        }
        Watched::of(self.means.device, |bytes| self.allocate(bytes))
    }

    fn allocate(&mut self, bytes: u64) -> Result<FlushBuffer, Fault> {
        if bytes == 0 {
            return Err(Fault::Exhausted);
        }
        let made = FlushBuffer::allocate(bytes, self.means.device, self.means.side)?;
        self.made.push(made);
        Ok(made)
    }

    /// Gives all back that was allocated but these.
    fn keep(self, zeros: FlushBuffer) {
        for made in self.made.iter().filter(|made| made.address() != zeros.address()) {
            made.free(self.means.symbols, self.means.side);
        }
    }
}

/// Watches lines until the passes can be judged.
fn look(
    mut passes: impl FnMut() -> Result<Option<Passes>, Fault>,
    judge: impl Fn(&Passes) -> Option<Eviction>,
) -> Result<Eviction, Unseen> {
    for _ in 0..ROUNDS {
        if let Some(seen) = judge(&passes().map_err(Unseen::Fault)?.ok_or(Unseen::Busy)?) {
            return Ok(seen);
        }
    }
    Err(Unseen::Disturbed)
}

/// So many times the L2, in whole lines.
fn bytes(device: &DeviceInfo, multiple: u32) -> u64 {
    device.l2_bytes / DISCARDED_LINE * DISCARDED_LINE * u64::from(multiple)
}
