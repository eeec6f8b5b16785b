//! The flushes of a context: how each evicts the L2, and with a buffer as small as it may be.

use std::fmt;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use gpu_time_kernels::DISCARDED_LINE;

use super::device::DeviceInfo;
use super::library::Symbols;
use super::line_probe::{LineProbe, Watched};
use super::module::{Kernel, Module};
use super::zeros::Zeros;
use crate::eviction::Passes;
use crate::gpu::{Fault, Stream};
use crate::report::{Eviction, FlushProof};
use crate::site::{Cold, locked};

/// So many times the reported L2 a flush is at most.
const LARGEST: u32 = 4;
/// The same of one that writes and discards. What that does not empty, reading may: it needs no more
/// memory traffic then.
const LARGEST_DISCARD: u32 = 2;
/// So long the host waits at most, once for each kind of flush.
const PATIENCE: Duration = Duration::from_millis(200);
/// So often a size is tried while other work evicts the lines that are watched.
const ROUNDS: u32 = 3;

/// The flushes of one context, each found when it is first wanted and kept for as long as the context.
#[derive(Default)]
pub(super) struct Flushes {
    clean: OnceLock<Result<Flush, Unready>>,
    dirty: OnceLock<Result<Flush, Unready>>,
    /// Locked while one is looked for, since the lines are watched for one flush at a time.
    probe: Mutex<Option<Result<LineProbe, Fault>>>,
}

/// What looking for a flush takes; the context must be current.
pub(super) struct Means<'a> {
    pub symbols: &'a Symbols,
    pub device: &'a DeviceInfo,
    pub module: &'a Module,
    /// Our own stream.
    pub side: Stream,
}

/// One way to evict the L2.
struct Flush {
    method: Method,
    /// What it reads or writes, and the other kind does not: a clean flush that reads what a dirty one wrote
    /// would find it, and leave it dirty.
    zeros: Zeros,
    seen: Result<Eviction, Unseen>,
}

/// How lines are evicted.
#[derive(Clone, Copy)]
enum Method {
    /// Leaves clean lines.
    Read(Kernel),
    /// Leaves dirty ones.
    Write,
    /// Leaves none. By writing, dirty lines are evicted as easily as clean ones; by reading they are not.
    WriteDiscard(Kernel),
}

/// Why there is no flush.
#[derive(Clone, Copy)]
enum Unready {
    Memory(Fault),
    Fault(Fault),
}

/// Why nobody knows what a flush evicts.
#[derive(Clone, Copy)]
enum Unseen {
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

impl Flushes {
    pub fn is_ready_for(&self, cold: Cold) -> bool {
        self.flush(cold).is_some()
    }

    /// Finds the flush of this kind, once.
    ///
    /// This waits for our own stream, for some milliseconds if the GPU is idle, and not for ever if it is
    /// not.
    pub fn prepare(&self, cold: Cold, means: &Means<'_>) -> Result<(), Fault> {
        match self.slot(cold).get_or_init(|| self.find(cold, means)) {
            Ok(_) => Ok(()),
            Err(Unready::Memory(fault) | Unready::Fault(fault)) => Err(*fault),
        }
    }

    /// Enqueues the eviction; the context must be current.
    pub fn enqueue(&self, stream: Stream, cold: Cold) -> Result<(), Fault> {
        let flush = self.flush(cold).ok_or(Fault::Exhausted)?;
        flush.method.evict(flush.zeros, stream)
    }

    /// Whether lines were seen to outlast every flush that could be tried.
    pub fn is_partial(&self, cold: Cold) -> bool {
        self.flush(cold).is_some_and(|flush| flush.seen.as_ref().is_ok_and(|seen| !seen.proved()))
    }

    /// How much the larger one of the flushes reads or writes.
    pub fn bytes(&self) -> Option<u64> {
        let flushes = [Cold::Clean, Cold::Dirty].into_iter().filter_map(|cold| self.flush(cold));
        flushes.map(|flush| flush.zeros.bytes()).max()
    }

    /// What the flushes were seen to evict.
    pub fn proof(&self) -> Option<FlushProof> {
        let seen = |cold| self.flush(cold)?.seen.clone().ok();
        let proof = FlushProof { clean: seen(Cold::Clean), dirty: seen(Cold::Dirty) };
        (proof != FlushProof::default()).then_some(proof)
    }

    pub fn warnings(&self) -> Vec<String> {
        let slots = [Cold::Clean, Cold::Dirty].map(|cold| self.slot(cold).get());
        let short = slots.into_iter().flatten().find_map(|slot| match slot {
            Err(Unready::Memory(fault)) => Some(fault),
            _ => None,
        });
        if let Some(fault) = short {
            return vec![format!(
                "no flush buffer could be allocated ({fault}): `cold` calls were timed as found"
            )];
        }
        let doubts = [(Cold::Clean, "`cold`"), (Cold::Dirty, "`cold = \"dirty\"`")];
        doubts
            .into_iter()
            .filter_map(|(cold, key)| match &self.flush(cold)?.seen {
                Ok(seen) if seen.proved() => None,
                Ok(seen) => Some(format!(
                    "{key} could not empty the L2, with {} times its size: {:.1} % of lines were gone \
                     after they had been read, {:.1} % after they had been written; such calls are \
                     `partial`",
                    seen.multiple(),
                    100.0 * seen.missed_after_read(),
                    100.0 * seen.missed_after_write(),
                )),
                Err(why) => Some(format!("that {key} empties the L2 was not shown: {why}")),
            })
            .collect()
    }

    fn slot(&self, cold: Cold) -> &OnceLock<Result<Flush, Unready>> {
        match cold {
            Cold::Clean => &self.clean,
            Cold::Dirty => &self.dirty,
        }
    }

    fn flush(&self, cold: Cold) -> Option<&Flush> {
        self.slot(cold).get()?.as_ref().ok()
    }

    /// The first flush that is seen to evict; the best that there is memory for, if none is; and where
    /// nothing can be seen, the first.
    fn find(&self, cold: Cold, means: &Means<'_>) -> Result<Flush, Unready> {
        let mut probe = locked(&self.probe);
        let deadline = Instant::now() + PATIENCE;
        let mut memory = Memory { means, room: None, made: Vec::new() };
        let mut watched = None;
        let mut best: Option<Flush> = None;
        let mut unready = Unready::Memory(Fault::Exhausted);
        for (method, multiple) in Method::candidates(cold, means).map_err(Unready::Fault)? {
            let zeros = match memory.room_for(bytes(means.device, multiple)) {
                Ok(zeros) => zeros,
                // The next may need less.
                Err(fault) => {
                    unready = Unready::Memory(fault);
                    continue;
                }
            };
            method.make_ready(zeros, means.side);
            let probe = probe.get_or_insert_with(|| {
                LineProbe::new(means.device, means.module.kernels()?, means.side)
            });
            // After the buffer: where there is little memory, a flush matters more than its proof.
            let watched = watched.get_or_insert_with(|| memory.watched());
            let seen = match (probe, watched) {
                (Ok(probe), Ok(watched)) => look(
                    || {
                        let evict = || method.evict(zeros, means.side);
                        probe.watch(*watched, evict, method.discarded(zeros), deadline)
                    },
                    |passes| passes.judge(method.name(), multiple, zeros.bytes()),
                ),
                (Err(fault), _) | (_, Err(fault)) => Err(Unseen::Fault(*fault)),
            };
            match &seen {
                Err(Unseen::Fault(fault @ (Fault::ContextGone | Fault::Sticky))) => {
                    return Err(Unready::Fault(*fault));
                }
                // What the GPU has not come to yet, nobody may take away.
                Err(Unseen::Fault(_) | Unseen::Busy) => memory.made.clear(),
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
}

impl Flush {
    /// The share of lines that it evicts, of those that it evicts least.
    fn evicts(&self) -> f64 {
        let least = |seen: &Eviction| seen.missed_after_read().min(seen.missed_after_write());
        self.seen.as_ref().map_or(0.0, least)
    }
}

impl Method {
    /// Those of this kind of flush, each with how many times the L2 it reads or writes, in the order in
    /// which they are tried.
    fn candidates(cold: Cold, means: &Means<'_>) -> Result<Vec<(Method, u32)>, Fault> {
        let up_to = |most, method: Method| (1..=most).map(move |multiple| (method, multiple));
        Ok(match cold {
            Cold::Dirty => up_to(LARGEST, Method::Write).collect(),
            Cold::Clean => {
                let read = Method::Read(means.module.kernels()?.flush_read);
                let discard = means.module.discard().map(Method::WriteDiscard);
                let discards =
                    discard.into_iter().flat_map(|method| up_to(LARGEST_DISCARD, method));
                discards.chain(up_to(LARGEST, read)).collect()
            }
        })
    }

    /// As the report calls it.
    fn name(self) -> &'static str {
        match self {
            Method::Read(_) => "read",
            Method::Write => "write",
            Method::WriteDiscard(_) => "write-discard",
        }
    }

    /// The first launch of a kernel may load it: here, and not in a user's stream. What fails here fails
    /// again where it counts.
    fn make_ready(self, zeros: Zeros, side: Stream) {
        _ = match self {
            // An earlier trial may have discarded them.
            Method::Read(reader) => {
                zeros.write(side).and_then(|()| zeros.first(0).read(reader, side))
            }
            Method::Write => Ok(()),
            Method::WriteDiscard(discarder) => zeros.first(0).discard(discarder, side),
        };
    }

    fn evict(self, zeros: Zeros, stream: Stream) -> Result<(), Fault> {
        match self {
            Method::Read(reader) => zeros.read(reader, stream),
            Method::Write => zeros.write(stream),
            Method::WriteDiscard(discarder) => {
                zeros.write(stream)?;
                zeros.discard(discarder, stream)
            }
        }
    }

    /// What it should have taken out again: a line that the L2 does not hold is not dirty.
    fn discarded(self, zeros: Zeros) -> Option<Zeros> {
        matches!(self, Method::WriteDiscard(_)).then_some(zeros)
    }
}

/// The memory of one search.
struct Memory<'a> {
    means: &'a Means<'a>,
    /// The largest buffer so far.
    room: Option<Zeros>,
    /// What was allocated and can be given back.
    made: Vec<Zeros>,
}

impl Memory<'_> {
    fn room_for(&mut self, bytes: u64) -> Result<Zeros, Fault> {
        if let Some(room) = self.room.filter(|room| room.bytes() >= bytes) {
            return Ok(room.first(bytes));
        }
        let made = self.allocate(bytes)?;
        self.room = Some(made);
        Ok(made)
    }

    fn watched(&mut self) -> Result<Watched, Fault> {
        Watched::of(self.means.device, |bytes| self.allocate(bytes))
    }

    fn allocate(&mut self, bytes: u64) -> Result<Zeros, Fault> {
        if bytes == 0 {
            return Err(Fault::Exhausted);
        }
        let made = Zeros::allocate(bytes, self.means.device, self.means.side)?;
        self.made.push(made);
        Ok(made)
    }

    /// Gives all back that was allocated but these.
    fn keep(self, zeros: Zeros) {
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
