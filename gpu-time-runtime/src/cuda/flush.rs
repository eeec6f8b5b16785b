//! The flushes of a context: how each evicts the L2, and with a buffer as small as it may be.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
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
/// So long the host waits at most, in each search.
const PATIENCE: Duration = Duration::from_millis(200);
/// So often a size is tried while other work evicts the lines that are watched.
const ROUNDS: u32 = 3;

/// So often a flush of which nothing could be seen is looked for: by the first cold call, and at reports.
const SEARCHES: usize = 4;

/// The flushes of one context, each found when it is first wanted and kept for as long as the context.
#[derive(Default)]
pub(super) struct Flushes {
    clean: Found,
    dirty: Found,
    /// Locked while one is looked for, since the lines are watched for one flush at a time.
    probe: Mutex<Probe>,
}

/// What each search for one kind of flush found. The last flush is the one that counts: an earlier one may
/// still be enqueued, so it stays as it is.
#[derive(Default)]
struct Found {
    searches: [OnceLock<Result<Flush, Unready>>; SEARCHES],
    /// A cold call came before the flush was found, and went without.
    has_left_out: AtomicBool,
}

#[derive(Default)]
struct Probe {
    lines: Option<Result<LineProbe, Fault>>,
    /// What a search left that did not come to its end.
    watched: Option<Watched>,
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

    /// Finds the flush of this kind, once. Calls of other threads that want one wait for it: what they enqueued
    /// meanwhile would evict the lines to watch.
    ///
    /// This waits for our own stream, for some milliseconds if the GPU is idle, and not for ever if it is
    /// not.
    pub fn prepare(&self, cold: Cold, means: &Means<'_>) -> Result<(), Fault> {
        let [first, ..] = &self.found(cold).searches;
        match first.get_or_init(|| self.find(cold, means, &mut locked(&self.probe))) {
            Ok(_) => Ok(()),
            Err(Unready::Memory(fault) | Unready::Fault(fault)) => Err(*fault),
        }
    }

    /// A cold call goes without a flush, for as long as there is none.
    pub fn leave_out(&self, cold: Cold) {
        self.found(cold).has_left_out.store(true, Relaxed);
    }

    /// Whether nothing could be seen of a flush that there is.
    pub fn is_in_doubt(&self, cold: Cold) -> bool {
        self.found(cold).doubt().is_some()
    }

    /// Looks again for a flush of which nothing could be seen; what was enqueued on our own stream must
    /// have been done. Nobody waits for another who does so.
    pub fn search_again(&self, cold: Cold, means: &Means<'_>) {
        let Ok(mut probe) = self.probe.try_lock() else { return };
        let found = self.found(cold);
        if found.doubt().is_some()
            && let Some(next) = found.searches.iter().find(|search| search.get().is_none())
        {
            next.get_or_init(|| self.find(cold, means, &mut probe));
        }
    }

    /// Enqueues the eviction; the context must be current.
    pub fn enqueue(&self, stream: Stream, cold: Cold) -> Result<(), Fault> {
        let flush = self.flush(cold).ok_or(Fault::Exhausted)?;
        flush.method.evict(flush.zeros, stream)
    }

    /// Whether the flush was seen to empty the L2.
    pub fn is_proved(&self, cold: Cold) -> bool {
        self.flush(cold).is_some_and(|flush| flush.seen.as_ref().is_ok_and(Eviction::proved))
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
        let kinds = [&self.clean, &self.dirty].into_iter();
        let short = kinds.filter(|found| found.flush().is_none()).find_map(|found| {
            match found.searches.first()?.get()? {
                Err(Unready::Memory(fault)) => Some(fault),
                _ => None,
            }
        });
        if let Some(fault) = short {
            return vec![format!(
                "no flush buffer could be allocated ({fault}): `cold` calls were timed as found"
            )];
        }
        let kinds = [(Cold::Clean, "`cold`"), (Cold::Dirty, "`cold = \"dirty\"`")];
        let is_left_out = |(cold, _): &(Cold, _)| self.found(*cold).is_left_out();
        let left_out = kinds.into_iter().filter(is_left_out).map(|(_, key)| {
            format!(
                "{key} calls were timed as found: a bracket was open whenever one began, and how to flush \
                 is found out while none is"
            )
        });
        let doubts = kinds.into_iter().filter_map(|(cold, key)| match &self.flush(cold)?.seen {
            Ok(seen) if seen.proved() => self.found(cold).first_doubt().map(|why| {
                format!(
                    "that {key} empties the L2 was not shown at first: {why}; calls until then are \
                         `partial`"
                )
            }),
            Ok(seen) => Some(format!(
                "{key} could not empty the L2, with {} times its size: {:.1} % of lines were gone \
                     after they had been read, {:.1} % after they had been written; such calls are \
                     `partial`",
                seen.multiple(),
                100.0 * seen.missed_after_read(),
                100.0 * seen.missed_after_write(),
            )),
            Err(why) => Some(format!(
                "that {key} empties the L2 was not shown: {why}; such calls are `partial`"
            )),
        });
        left_out.chain(doubts).collect()
    }

    fn found(&self, cold: Cold) -> &Found {
        match cold {
            Cold::Clean => &self.clean,
            Cold::Dirty => &self.dirty,
        }
    }

    fn flush(&self, cold: Cold) -> Option<&Flush> {
        self.found(cold).flush()
    }

    /// The first flush that is seen to evict; the best that there is memory for, if none is; and where
    /// nothing can be seen, the first.
    fn find(&self, cold: Cold, means: &Means<'_>, probe: &mut Probe) -> Result<Flush, Unready> {
        let deadline = Instant::now() + PATIENCE;
        let room = self.flush(cold).map(|flush| flush.zeros);
        let mut memory = Memory { means, room, made: Vec::new() };
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
}

impl Found {
    fn flush(&self) -> Option<&Flush> {
        self.searches.iter().rev().filter_map(OnceLock::get).find_map(|found| found.as_ref().ok())
    }

    /// Whether calls went without, and nobody has come to look for one.
    fn is_left_out(&self) -> bool {
        self.has_left_out.load(Relaxed) && self.searches[0].get().is_none()
    }

    /// Why nobody knows what the flush evicts, if so.
    fn doubt(&self) -> Option<Unseen> {
        self.flush()?.seen.as_ref().err().copied()
    }

    /// The same when it was first looked for.
    fn first_doubt(&self) -> Option<Unseen> {
        self.searches.first()?.get()?.as_ref().ok()?.seen.as_ref().err().copied()
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
    /// The largest buffer so far; at first that of an earlier search, which is never given back: it may be
    /// enqueued elsewhere.
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

    fn watched(&mut self, left: Option<Watched>) -> Result<Watched, Fault> {
        if let Some(left) = left {
            self.made.push(left.all());
            return Ok(left);
        }
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
