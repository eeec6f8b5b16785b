//! The flushes of a context, which empty the L2 before a cold call. Each flush is searched for when
//! first needed, and kept together with its measured effect.

mod method;
mod search;

pub(super) use search::Resources;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use crate::base::lock::{Mutex, Rank, locked, locked_by, try_locked};
use crate::cuda::no_result::NoResult;
use crate::gpu::Fault;
use crate::types::{attribute::Cold, handles::Stream};
use gpu_time_report::{FlushProof, value};
use search::{Flush, SearchError, SearchState};

/// The maximum number of searches for one kind of flush: one at the first cold call and, while the
/// effect of the flush could not be measured, one for each report.
const SEARCHES: usize = 4;

/// The flushes of one context. They live as long as the context.
pub(crate) struct Flushes {
    clean: Searches,
    dirty: Searches,
    /// Locked during a search, because lines can be timed for only one flush at a time.
    state: Mutex<SearchState>,
}

impl Default for Flushes {
    fn default() -> Self {
        Flushes {
            clean: Searches::default(),
            dirty: Searches::default(),
            state: Mutex::new(Rank::FlushProbe, SearchState::default()),
        }
    }
}

/// The results of all searches for one kind of flush. The last flush found is the one in use.
/// Earlier ones are kept, because they may still be enqueued.
#[derive(Default)]
struct Searches {
    results: [OnceLock<Result<Box<Flush>, SearchError>>; SEARCHES],
    /// Set once a cold call has been timed without a flush.
    has_left_out: AtomicBool,
}

impl Flushes {
    pub fn is_ready_for(&self, cold: Cold) -> bool {
        self.flush(cold).is_some()
    }

    /// Returns `true` once the search for a flush of this kind has ended.
    pub fn has_searched(&self, cold: Cold) -> bool {
        let [first, ..] = &self.searches(cold).results;
        first.get().is_some()
    }

    /// Searches for a flush of this kind, unless that has been done. Other threads that need a
    /// flush wait, because their work would evict the lines timed by this search.
    ///
    /// The search waits for the runtime's own stream: some milliseconds if the GPU is idle, a
    /// bounded time if it is busy. The context must be current.
    pub(in crate::cuda) fn prepare(
        &self,
        cold: Cold,
        resources: &Resources<'_>,
    ) -> Result<(), Fault> {
        let [first, ..] = &self.searches(cold).results;
        match first.get_or_init(|| self.search(cold, resources, &mut locked(&self.state))) {
            Ok(_) => Ok(()),
            Err(SearchError::Memory(fault) | SearchError::Fault(fault)) => Err(*fault),
        }
    }

    /// Records that a cold call was timed without a flush.
    pub fn leave_out(&self, cold: Cold) {
        self.searches(cold).has_left_out.store(true, Relaxed);
    }

    /// Returns `true` if there is a flush whose effect could not be measured.
    pub fn is_in_doubt(&self, cold: Cold) -> bool {
        self.searches(cold).doubt().is_some()
    }

    /// Searches again for a flush whose effect could not be measured. The context must be current,
    /// and the runtime's own stream idle. Returns immediately if another thread is searching.
    pub(in crate::cuda) fn search_again(&self, cold: Cold, resources: &Resources<'_>) {
        let Some(mut state) = try_locked(&self.state) else { return };
        let searches = self.searches(cold);
        if searches.doubt().is_some()
            && let Some(next) = searches.results.iter().find(|result| result.get().is_none())
        {
            next.get_or_init(|| self.search(cold, resources, &mut state));
        }
    }

    /// Frees the host memory used by searches. Must be called only after the context has been
    /// destroyed. Returns `false` if another thread is searching.
    pub fn retire(&self) -> bool {
        let state = locked_by(&self.state, Instant::now());
        state.map(|mut state| *state = SearchState::default()).is_some()
    }

    /// Enqueues a flush. The context must be current.
    pub fn enqueue(&self, stream: Stream, cold: Cold) -> Result<(), Fault> {
        let flush = self.flush(cold).ok_or(Fault::Exhausted)?;
        flush.method.evict(flush.buffer, stream)
    }

    /// Returns `true` if measurements have shown that the flush empties the L2.
    pub fn is_proved(&self, cold: Cold) -> bool {
        self.flush(cold)
            .is_some_and(|flush| flush.eviction.as_ref().is_ok_and(|eviction| eviction.proved))
    }

    /// Returns the number of bytes that the larger of the two flushes reads or writes, or `None` if
    /// there is no flush.
    pub fn bytes(&self) -> Option<u64> {
        let flushes = [Cold::Clean, Cold::Dirty].into_iter().filter_map(|cold| self.flush(cold));
        flushes.map(|flush| flush.buffer.bytes()).max()
    }

    /// Returns the measured effects of the flushes, if there are any.
    pub fn proof(&self) -> Option<FlushProof> {
        let eviction = |cold| self.flush(cold)?.eviction.clone().ok();
        let proof =
            value!(FlushProof { clean: eviction(Cold::Clean), dirty: eviction(Cold::Dirty) });
        (proof != FlushProof::default()).then_some(proof)
    }

    pub fn warnings(&self) -> Vec<String> {
        let kinds = [&self.clean, &self.dirty].into_iter();
        let short =
            kinds.filter(|searches| searches.flush().is_none()).find_map(|searches| match searches
                .results
                .first()?
                .get()?
            {
                Err(SearchError::Memory(fault)) => Some(fault),
                _ => None,
            });
        if let Some(fault) = short {
            return vec![format!(
                "no flush buffer could be allocated ({fault}): `cold` calls were timed without a flush"
            )];
        }
        let kinds = [(Cold::Clean, "`cold`"), (Cold::Dirty, "`cold = \"dirty\"`")];
        let is_left_out = |(cold, _): &(Cold, _)| self.searches(*cold).is_left_out();
        let left_out = kinds.into_iter().filter(is_left_out).map(|(_, key)| {
            format!(
                "{key} calls were timed without a flush: a bracket was open at each of them, and a flush \
                 can only be prepared while no bracket is open"
            )
        });
        let doubts = kinds.into_iter().filter_map(|(cold, key)| match &self.flush(cold)?.eviction {
            Ok(eviction) if eviction.proved => self.searches(cold).first_doubt().map(|why| {
                format!(
                    "at first it could not be shown that {key} empties the L2 ({why}): earlier calls \
                     are `partial`"
                )
            }),
            Ok(eviction) => Some(format!(
                "{key} did not empty the L2, with a buffer of {} times its size: {:.1}% of lines \
                 were evicted after a read, {:.1}% after a write; such calls are `partial`",
                eviction.multiple,
                100.0 * eviction.missed_after_read,
                100.0 * eviction.missed_after_write,
            )),
            Err(why) => Some(format!(
                "it could not be shown that {key} empties the L2 ({why}): such calls are `partial`"
            )),
        });
        left_out.chain(doubts).collect()
    }

    fn searches(&self, cold: Cold) -> &Searches {
        match cold {
            Cold::Clean => &self.clean,
            Cold::Dirty => &self.dirty,
        }
    }

    fn flush(&self, cold: Cold) -> Option<&Flush> {
        self.searches(cold).flush()
    }

    fn search(
        &self,
        cold: Cold,
        resources: &Resources<'_>,
        state: &mut SearchState,
    ) -> Result<Box<Flush>, SearchError> {
        let buffer = self.flush(cold).map(|flush| flush.buffer);
        search::search(cold, resources, buffer, state).map(Box::new)
    }
}

impl Searches {
    fn flush(&self) -> Option<&Flush> {
        let results = self.results.iter().rev().filter_map(OnceLock::get);
        results.filter_map(|result| result.as_ref().ok()).next().map(Box::as_ref)
    }

    /// Returns `true` if calls were timed without a flush, and no search has been made.
    fn is_left_out(&self) -> bool {
        self.has_left_out.load(Relaxed) && self.results[0].get().is_none()
    }

    /// Returns the reason if the effect of the flush is unknown.
    fn doubt(&self) -> Option<NoResult> {
        self.flush()?.eviction.as_ref().err().copied()
    }

    /// Returns the reason if the first search could not measure the effect of its flush.
    fn first_doubt(&self) -> Option<NoResult> {
        self.results.first()?.get()?.as_ref().ok()?.eviction.as_ref().err().copied()
    }
}
