//! The spans of a thread that are not inside of others, and which of them open a call.

use std::cell::Cell;
use std::thread::LocalKey;

use crate::base::{fork, inside, room, switches};
use crate::control::active;
use crate::cupti;
use crate::lifecycle::exit;
use crate::record::{call_tree, opened};
use crate::stats::sampling::Sampler;
use crate::types::attribute::Clock;
use crate::types::{kernel_rate::KernelRate, sampling::Sampling};

/// The most spans that are passed over without asking again, so that a change of the configuration
/// has its effect.
const LONGEST_GAP: u64 = 1_024;

thread_local! {
    /// The spans that are entered on this thread.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    // Without destructors, so that they can be used as long as the thread runs at all.
    static CREATED: Draws = Draws::default();
    static ENTERED: Draws = Draws::default();
}

/// The choice among events of a thread.
#[derive(Default)]
struct Draws {
    /// The number of events to pass over next.
    skip: Cell<u64>,
    /// The number of events that were passed over since the last one that was chosen.
    passed: Cell<u64>,
    sampler: Sampler,
}

/// Notes that a span is entered. Returns `true` if no other one is.
#[inline]
pub(super) fn enter() -> bool {
    let depth = DEPTH.get();
    DEPTH.set(depth.saturating_add(1));
    depth == 0
}

/// Notes that a span is left.
#[inline]
pub(super) fn exit() {
    DEPTH.set(DEPTH.get().saturating_sub(1));
}

/// A root that was chosen to open a call.
#[derive(Clone, Copy)]
pub(super) struct Chosen {
    /// The probability of choosing it.
    pub share: f64,
    /// The number of roots on its thread that were passed over since the last one that was chosen.
    pub passed: u64,
}

/// Decides about a new span without an explicit parent. `None` if it is not a root, or not chosen.
#[inline]
pub(super) fn choose_new(rate: KernelRate) -> Option<Chosen> {
    if DEPTH.get() > 0 { None } else { choose(&CREATED, rate) }
}

/// Decides about the entry of a span, while no other one is entered, should it be one that is kept.
#[inline]
pub(super) fn choose_entered(rate: KernelRate) -> Option<Chosen> {
    choose(&ENTERED, rate)
}

#[inline]
fn choose(draws: &'static LocalKey<Draws>, rate: KernelRate) -> Option<Chosen> {
    // Otherwise nothing can be recorded, and nothing is to be counted.
    if opened::is_inside() || !opened::is_outermost() {
        return None;
    }
    draws.with(|draws| match draws.skip.get().checked_sub(1) {
        Some(skip) => {
            draws.skip.set(skip);
            None
        }
        None => draws.draw(rate),
    })
}

impl Draws {
    #[cold]
    fn draw(&self, rate: KernelRate) -> Option<Chosen> {
        // In a forked child, another thread may have held a lock at the fork.
        if !switches::is_on() || fork::is_forked() {
            return None;
        }
        let _inside = inside::try_enter()?;
        fork::mark_children();
        let config = room::with_room(|| {
            let config = active::config();
            // The report is due even if no span is recorded.
            if config.is_on {
                exit::arm()
            } else {
                exit::arm_while_off()
            }
            config
        });
        let rate = match config.is_on {
            true => KernelRate::resolved(config.kernels, Some(rate), Clock::Kernels),
            false => KernelRate::OFF,
        };
        let sampling = Sampling::of_share(rate.get(Clock::Kernels))?;
        if (f64::MIN_POSITIVE..1.0).contains(&sampling.get()) {
            call_tree::note_sampled_spans();
        }
        let draw = self.sampler.draw(sampling, LONGEST_GAP);
        self.skip.set(draw.skips);
        let Some(weight) = draw.weight else {
            self.passed.set(self.passed.get() + 1 + draw.skips);
            return None;
        };
        // Loads it. Without it, the call is lost when it is entered.
        room::with_room(cupti::is_available);
        Some(Chosen { share: f64::from(weight).recip(), passed: self.passed.replace(draw.skips) })
    }
}
