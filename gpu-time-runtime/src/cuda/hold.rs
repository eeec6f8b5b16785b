//! Kernels that hold a stream until the host has enqueued a bracket.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};

use gpu_time_kernels::hold_max_cycles;

use crate::cuda::mapped::{MappedPage, PagePool, register};
use crate::cuda::module::{LoadedKernel, Module};
use crate::gpu::{Fault, HoldResult, StreamHold};
use crate::types::handles::Stream;

/// The number of slots in one context. Each held stream occupies a slot. Slot 0 is reserved for
/// holds with a fixed duration, which are never released.
const SLOTS: usize = 64;
const WORDS: usize = 16;
/// The ticket in a hold's result if another thread released the hold before its bracket had been
/// enqueued. No actual hold has this ticket.
const LET_GO: u64 = 0;

/// Slot word: the ticket up to which holds have been released. Written by the host, polled by the
/// GPU.
const RELEASED: usize = 0;
/// Slot word: the last ticket. Used only by the host.
const LAST_TICKET: usize = 1;
/// Slot words: the tickets of recent holds that expired. Written by the GPU.
const EXPIRED: usize = 8;
/// The number of `EXPIRED` words.
const EXPIRED_WORDS: usize = 8;

/// The holds of one context.
///
/// Invariants: a slot is claimed by one hold at a time. A slot's tickets only increase, even when
/// its page passes from one context to the next. A release therefore never frees a later hold, and
/// a hold that starts late is freed by any later release.
#[derive(Default)]
pub(super) struct Holds(OnceLock<Result<Slots, Fault>>);

/// The words of all slots.
#[repr(align(4096))]
struct Words([[AtomicU64; WORDS]; SLOTS]);

static PAGES: PagePool<Words> = PagePool::new();

struct Slots {
    words: MappedPage<Words>,
    kernel: LoadedKernel,
    /// One bit for each claimed slot.
    claimed: AtomicU64,
}

impl Holds {
    pub fn is_ready(&self) -> bool {
        self.slots().is_ok()
    }

    /// Returns `true` once [`Holds::prepare`] has succeeded or failed.
    pub fn has_tried(&self) -> bool {
        self.0.get().is_some()
    }

    /// Maps the page of words, loads the kernel and runs it once. The context must be current.
    pub fn prepare(&self, module: &Module, own_stream: Stream) -> Result<(), Fault> {
        let slots = self.0.get_or_init(|| Slots::new(module, own_stream));
        slots.as_ref().map_or_else(|fault| Err(*fault), |_| Ok(()))
    }

    /// Returns the page of words to its pool, after the context has been destroyed.
    ///
    /// Another thread may still release a hold of this context, or try to begin one. The tickets
    /// continue in the next context, so a late release cannot free a hold of that context, and a
    /// late hold cannot be mistaken for one.
    pub fn retire(&self) {
        if let Ok(slots) = self.slots() {
            slots.words.give_back();
        }
    }

    pub fn hold(&self, stream: Stream, deadline_ns: u64) -> Result<StreamHold, Fault> {
        let slots = self.slots()?;
        let slot = slots.claim().ok_or(Fault::Exhausted)?;
        let ticket = slots.words.0[slot][LAST_TICKET].fetch_add(1, Relaxed) + 1;
        slots.launch(stream, slot, ticket, deadline_ns).inspect_err(|_| slots.unclaim(slot))?;
        Ok(StreamHold { slot: slot as u32, ticket })
    }

    pub fn delay(&self, stream: Stream, ns: u64) -> Result<(), Fault> {
        self.slots()?.launch(stream, 0, u64::MAX, ns)
    }

    pub fn release(&self, hold: StreamHold) -> HoldResult {
        let StreamHold { slot, mut ticket } = hold;
        if let Ok(slots) = self.slots()
            && let Some(words) = slots.words.0.get(slot as usize)
        {
            // One atomic step. Between a check and a store, another thread could release the hold,
            // which would then seem to have been kept until now.
            if words[RELEASED].fetch_max(ticket, Release) >= ticket {
                ticket = LET_GO;
            }
            slots.unclaim(slot as usize);
        }
        HoldResult { slot, ticket }
    }

    pub fn has_expired(&self, hold: HoldResult) -> bool {
        let Ok(slots) = self.slots() else { return true };
        let Some(words) = slots.words.0.get(hold.slot as usize) else { return true };
        if hold.ticket == LET_GO {
            return true;
        }
        // A later ticket may have overwritten the word. This hold then counts as expired.
        words[expired_word(hold.ticket)].load(Relaxed) >= hold.ticket
    }

    /// Releases every hold. With `forever`, later holds are released as well.
    pub fn release_all(&self, forever: bool) {
        let Ok(slots) = self.slots() else { return };
        for words in &slots.words.0 {
            let ticket = words[LAST_TICKET].load(Relaxed);
            words[RELEASED].fetch_max(if forever { u64::MAX - 1 } else { ticket }, Release);
        }
    }

    pub fn warning(&self) -> Option<String> {
        let fault = self.0.get()?.as_ref().err()?;
        Some(format!("streams could not be held ({fault}): `sleep` was left out"))
    }

    fn slots(&self) -> Result<&Slots, Fault> {
        self.0.get().and_then(|slots| slots.as_ref().ok()).ok_or(Fault::Exhausted)
    }
}

impl Slots {
    fn new(module: &Module, own_stream: Stream) -> Result<Slots, Fault> {
        let kernel = module.kernels()?.hold;
        let zeros = || Words([const { [const { AtomicU64::new(0) }; WORDS] }; SLOTS]);
        let words = PAGES.map(register, zeros)?;
        let slots = Slots { words, kernel, claimed: AtomicU64::new(1) };
        // The first launch of a kernel may load it, which waits for the GPU. Launch it now, while
        // no stream is held. Ticket 0 counts as released from the start.
        slots.launch(own_stream, 0, 0, 1)?;
        Ok(slots)
    }

    fn claim(&self) -> Option<usize> {
        let free = |claimed: u64| Some(claimed.trailing_ones() as usize).filter(|at| *at < SLOTS);
        let claim = |claimed| Some(claimed | 1 << free(claimed)?);
        free(self.claimed.fetch_update(Relaxed, Relaxed, claim).ok()?)
    }

    fn unclaim(&self, slot: usize) {
        self.claimed.fetch_and(!(1 << slot), Release);
    }

    fn launch(&self, stream: Stream, slot: usize, ticket: u64, max_ns: u64) -> Result<(), Fault> {
        let word = |index: usize| self.words.address() + ((slot * WORDS + index) * 8) as u64;
        let (released, expired) = (word(RELEASED), word(expired_word(ticket)));
        let parameters = [released, ticket, max_ns, hold_max_cycles(max_ns), expired];
        // SAFETY: the parameters match `HOLD`; both words lie in memory that is never freed.
        unsafe { self.kernel.launch(stream, (1, 1), parameters) }
    }
}

/// Returns the index of the word that shows whether the hold with this ticket expired.
fn expired_word(ticket: u64) -> usize {
    EXPIRED + ticket as usize % EXPIRED_WORDS
}
