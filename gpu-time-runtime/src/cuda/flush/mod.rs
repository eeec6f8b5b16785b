//! The flushes of a context: found when they are wanted, and what was seen of each.

mod method;
mod search;

pub(super) use search::Means;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::base::lock::{Mutex, Rank, locked};
use crate::gpu::Fault;
use crate::types::attribute::Cold;
use crate::types::handles::Stream;
use gpu_time_report::{Eviction, FlushProof};
use search::{Flush, Probe, Unready, Unseen};

/// So often a flush of which nothing could be seen is looked for: by the first cold call, and at reports.
const SEARCHES: usize = 4;

/// The flushes of one context, each found when it is first wanted and kept for as long as the context.
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

impl Default for Flushes {
    fn default() -> Self {
        Flushes {
            clean: Found::default(),
            dirty: Found::default(),
            probe: Mutex::new(Rank::FlushProbe, Probe::default()),
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

    fn find(&self, cold: Cold, means: &Means<'_>, probe: &mut Probe) -> Result<Flush, Unready> {
        search::find(cold, means, self.flush(cold).map(|flush| flush.zeros), probe)
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
