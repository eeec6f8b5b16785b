//! Holding a stream until the host has enqueued a bracket.

use std::ffi::c_void;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::Release};

use cudarc::driver::sys::CUdeviceptr;
use gpu_time_kernels::hold_max_cycles;

use crate::cuda::mapped;
use crate::cuda::module::{Kernel, Module};
use crate::gpu::{Fault, Held, HoldResult};
use crate::types::handles::Stream;

/// Streams that can be held at once in one context; slot 0 serves the holds of fixed length.
const SLOTS: usize = 64;
/// Each slot remembers the deadlines of so many holds.
const EXPIRED: usize = 8;
const WORDS: usize = 16;

/// The holds of one context.
///
/// Invariants: a slot is claimed by one hold at a time; its tickets rise, so that a release can free
/// no later hold and a late hold can be freed by any later release.
#[derive(Default)]
pub(super) struct Holds(OnceLock<Result<Page, Fault>>);

/// Words that the host writes and the GPU reads, or the other way round; on pages of their own,
/// because the driver locks whole ones.
#[repr(align(4096))]
struct Words([[AtomicU64; WORDS]; SLOTS]);

/// Words in mapped host memory.
///
/// Invariant: the memory is ours and not the driver's, because the driver takes its own away when
/// the context goes, and a hold may be released after that.
struct Page {
    words: &'static Words,
    address: CUdeviceptr,
    kernel: Kernel,
    /// The last ticket of each slot.
    tickets: [AtomicU64; SLOTS],
    /// The ticket of each slot that was let go before its bracket had been enqueued.
    let_go: [AtomicU64; SLOTS],
    /// A bit for each slot that is claimed.
    claimed: AtomicU64,
}

impl Holds {
    pub fn is_ready(&self) -> bool {
        matches!(self.0.get(), Some(Ok(_)))
    }

    /// Allocates the words, loads the kernel and runs it once; the context must be current.
    pub fn prepare(&self, module: &Module, side: Stream) -> Result<(), Fault> {
        self.0.get_or_init(|| Page::new(module, side)).as_ref().map(|_| ()).map_err(|fault| *fault)
    }

    pub fn hold(&self, stream: Stream, deadline_ns: u64) -> Result<Held, Fault> {
        let page = self.page()?;
        let slot = page.claim().ok_or(Fault::Exhausted)?;
        let ticket = page.tickets[slot].fetch_add(1, Relaxed) + 1;
        match page.launch(stream, slot, ticket, deadline_ns) {
            Ok(()) => Ok(Held { slot: slot as u32, ticket }),
            Err(fault) => {
                page.unclaim(slot);
                Err(fault)
            }
        }
    }

    pub fn delay(&self, stream: Stream, ns: u64) -> Result<(), Fault> {
        self.page()?.launch(stream, 0, u64::MAX, ns)
    }

    pub fn release(&self, held: Held) -> HoldResult {
        let Held { slot, ticket } = held;
        if let Ok(page) = self.page()
            && let Some(words) = page.words.0.get(slot as usize)
        {
            words[0].fetch_max(ticket, Release);
            page.unclaim(slot as usize);
        }
        HoldResult { slot, ticket }
    }

    pub fn has_expired(&self, hold: HoldResult) -> bool {
        let Ok(page) = self.page() else { return true };
        let Some(words) = page.words.0.get(hold.slot as usize) else { return true };
        if page.let_go.get(hold.slot as usize).is_some_and(|t| t.load(Relaxed) == hold.ticket) {
            return true;
        }
        // A later ticket in the same word hides what became of this one: take it as expired.
        words[EXPIRED + hold.ticket as usize % EXPIRED].load(Relaxed) >= hold.ticket
    }

    pub fn release_all(&self, for_ever: bool) {
        let Ok(page) = self.page() else { return };
        let claimed = page.claimed.load(Relaxed);
        for (slot, words) in page.words.0.iter().enumerate() {
            let ticket = page.tickets[slot].load(Relaxed);
            if claimed >> slot & 1 == 1 {
                page.let_go[slot].store(ticket, Relaxed);
            }
            words[0].fetch_max(if for_ever { u64::MAX - 1 } else { ticket }, Release);
        }
    }

    pub fn warning(&self) -> Option<String> {
        let fault = self.0.get()?.as_ref().err()?;
        Some(format!("streams could not be held ({fault}): `sleep` was left out"))
    }

    fn page(&self) -> Result<&Page, Fault> {
        match self.0.get() {
            Some(Ok(page)) => Ok(page),
            _ => Err(Fault::Exhausted),
        }
    }
}

impl Page {
    fn new(module: &Module, side: Stream) -> Result<Page, Fault> {
        let kernel = module.kernels()?.hold;
        let zeros = [const { [const { AtomicU64::new(0) }; WORDS] }; SLOTS];
        let words: &Words = Box::leak(Box::new(Words(zeros)));
        let address = mapped::map(words)?;
        let page = Page {
            words,
            address,
            kernel,
            tickets: [const { AtomicU64::new(0) }; SLOTS],
            let_go: [const { AtomicU64::new(0) }; SLOTS],
            claimed: AtomicU64::new(1),
        };
        // The first launch of a kernel may load it, which waits for the GPU: here, where nothing is
        // held. Ticket 0 is released already.
        page.launch(side, 0, 0, 1)?;
        Ok(page)
    }

    fn claim(&self) -> Option<usize> {
        let mut claimed = self.claimed.load(Relaxed);
        loop {
            let slot = claimed.trailing_ones();
            if slot as usize >= SLOTS {
                return None;
            }
            match self.claimed.compare_exchange_weak(claimed, claimed | 1 << slot, Relaxed, Relaxed)
            {
                Ok(_) => return Some(slot as usize),
                Err(now) => claimed = now,
            }
        }
    }

    fn unclaim(&self, slot: usize) {
        self.claimed.fetch_and(!(1 << slot), Release);
    }

    fn launch(&self, stream: Stream, slot: usize, ticket: u64, max_ns: u64) -> Result<(), Fault> {
        let word = |index: usize| self.address + ((slot * WORDS + index) * 8) as u64;
        let (mut released, mut ticket) = (word(0), ticket);
        let (mut max_ns, mut max_cycles) = (max_ns, hold_max_cycles(max_ns));
        let mut expired = word(EXPIRED + ticket as usize % EXPIRED);
        let mut parameters: [*mut c_void; 5] = [
            (&raw mut released).cast(),
            (&raw mut ticket).cast(),
            (&raw mut max_ns).cast(),
            (&raw mut max_cycles).cast(),
            (&raw mut expired).cast(),
        ];
        // SAFETY: the parameters of `HOLD` in their order; both words lie in memory never freed.
        unsafe { self.kernel.launch(stream, (1, 1), &mut parameters) }
    }
}
