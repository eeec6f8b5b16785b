//! The buffer that evicts the L2, as large as it has to be.

use std::fmt;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::device::DeviceInfo;
use super::line_probe::LineProbe;
use super::module::{Kernel, Module};
use super::zeros::Zeros;
use crate::eviction::Passes;
use crate::gpu::{Fault, Stream};
use crate::report::{Eviction, FlushProof};
use crate::site::{Cold, locked};

/// So many times the reported L2 a flush is at most.
const LARGEST: usize = 4;
/// So long the host waits at most, once for each kind of flush.
const PATIENCE: Duration = Duration::from_millis(200);
/// So often a size is tried while other work evicts the lines that are watched.
const ROUNDS: u32 = 3;

/// Memory to evict the L2 with, for the largest flush from the beginning, so that any is one launch. It
/// is kept for as long as its context.
#[derive(Default)]
pub(super) struct FlushBuffer {
    buffer: OnceLock<Result<Buffer, Fault>>,
    clean: OnceLock<Result<Flush, Fault>>,
    dirty: OnceLock<Result<Flush, Fault>>,
    /// Locked while a size is looked for, since the lines are watched for one flush at a time.
    probe: Mutex<Option<Result<LineProbe, Fault>>>,
}

/// As much of it as there was memory for.
#[derive(Clone, Copy)]
struct Buffer {
    zeros: Zeros,
    /// How many times the reported L2 that is.
    multiples: usize,
}

/// One way to evict the L2.
struct Flush {
    means: Means,
    /// What it reads or writes, and how many times the reported L2 that is.
    zeros: Zeros,
    multiple: usize,
    seen: Result<Eviction, Unseen>,
}

#[derive(Clone, Copy)]
enum Means {
    Read(Kernel),
    Write,
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

impl FlushBuffer {
    pub fn is_ready_for(&self, cold: Cold) -> bool {
        self.flush(cold).is_some()
    }

    /// Allocates the buffer, loads the kernels and finds the size, once; the context must be current.
    ///
    /// This waits for our own stream, for some milliseconds if the GPU is idle, and not for ever if it is
    /// not.
    pub fn prepare(
        &self,
        cold: Cold,
        device: &DeviceInfo,
        module: &Module,
        side: Stream,
    ) -> Result<(), Fault> {
        let find = || self.find(cold, device, module, side);
        self.slot(cold).get_or_init(find).as_ref().map(|_| ()).map_err(|fault| *fault)
    }

    /// Enqueues the eviction; the context must be current.
    pub fn enqueue(&self, stream: Stream, cold: Cold) -> Result<(), Fault> {
        let flush = self.flush(cold).ok_or(Fault::Exhausted)?;
        evict(flush.means, flush.zeros, stream)
    }

    /// Whether lines were seen to outlast the largest flush that could be tried.
    pub fn is_partial(&self, cold: Cold) -> bool {
        self.flush(cold).is_some_and(|flush| flush.seen.as_ref().is_ok_and(|seen| !seen.proved()))
    }

    /// How much the larger one of the flushes reads or writes.
    pub fn bytes(&self, device: &DeviceInfo) -> Option<u64> {
        let flushes = [Cold::Clean, Cold::Dirty].into_iter().filter_map(|cold| self.flush(cold));
        flushes.map(|flush| bytes(device, flush.multiple)).max()
    }

    /// What the flushes were seen to evict.
    pub fn proof(&self) -> Option<FlushProof> {
        let seen = |cold| self.flush(cold)?.seen.clone().ok();
        let proof = FlushProof { clean: seen(Cold::Clean), dirty: seen(Cold::Dirty) };
        (proof != FlushProof::default()).then_some(proof)
    }

    pub fn warnings(&self) -> Vec<String> {
        if let Some(Err(fault)) = self.buffer.get() {
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

    fn slot(&self, cold: Cold) -> &OnceLock<Result<Flush, Fault>> {
        match cold {
            Cold::Clean => &self.clean,
            Cold::Dirty => &self.dirty,
        }
    }

    fn flush(&self, cold: Cold) -> Option<&Flush> {
        self.slot(cold).get()?.as_ref().ok()
    }

    /// The smallest flush that is seen to evict; the largest that there is memory for, if none is; and
    /// where nothing can be seen, the one that could not be tried.
    fn find(
        &self,
        cold: Cold,
        device: &DeviceInfo,
        module: &Module,
        side: Stream,
    ) -> Result<Flush, Fault> {
        let mut probe = locked(&self.probe);
        let deadline = Instant::now() + PATIENCE;
        let buffer = (*self.buffer.get_or_init(|| Buffer::allocate(device, side)))?;
        let means = match cold {
            Cold::Clean => {
                let reader = module.kernels()?.flush_read;
                // The first launch of a kernel may load it: here, and not in a user's stream. What
                // fails here fails again where it counts.
                _ = buffer.zeros.first(0).read(reader, side);
                Means::Read(reader)
            }
            Cold::Dirty => Means::Write,
        };
        let probe = probe.get_or_insert_with(|| LineProbe::new(device, module.kernels()?, side));
        let mut best = None;
        for multiple in 1..=buffer.multiples {
            let zeros = buffer.zeros.first(bytes(device, multiple));
            let seen = match probe {
                Ok(probe) => {
                    let passes = || probe.watch(|| evict(means, zeros, side), deadline);
                    look(passes, |passes| passes.judge(multiple as u32, bytes(device, multiple)))
                }
                Err(fault) => Err(Unseen::Fault(*fault)),
            };
            if let Err(Unseen::Fault(fault @ (Fault::ContextGone | Fault::Sticky))) = seen {
                return Err(fault);
            }
            let is_final = seen.as_ref().map_or(true, Eviction::proved);
            best = Some(Flush { means, zeros, multiple, seen });
            if is_final {
                break;
            }
        }
        best.ok_or(Fault::Exhausted)
    }
}

impl Buffer {
    fn allocate(device: &DeviceInfo, side: Stream) -> Result<Buffer, Fault> {
        let mut failed = Fault::Exhausted;
        for multiples in (1..=LARGEST).rev().filter(|_| device.l2_bytes >= 16) {
            match Zeros::allocate(bytes(device, multiples), device, side) {
                Ok(zeros) => return Ok(Buffer { zeros, multiples }),
                Err(fault) => failed = fault,
            }
        }
        Err(failed)
    }
}

fn evict(means: Means, zeros: Zeros, stream: Stream) -> Result<(), Fault> {
    match means {
        Means::Read(reader) => zeros.read(reader, stream),
        Means::Write => zeros.write(stream),
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

/// How much a flush reads or writes, in whole words of its kernel.
fn bytes(device: &DeviceInfo, multiple: usize) -> u64 {
    device.l2_bytes / 16 * 16 * multiple as u64
}
