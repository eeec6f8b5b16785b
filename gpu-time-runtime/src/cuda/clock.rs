//! The device's clock against the host's.
//!
//! Now and then an event is recorded on our own idle stream, and the host's time after that call is
//! noted. The GPU passes such an event a microsecond or so later; the least delay of a few of them is
//! what an idle GPU takes at best, and tells how the clocks lie. The host's clock and the device's also
//! run at slightly different rates, which shows from one such round to the next.

use std::sync::TryLockError;

use cudarc::driver::sys::{self, CUevent};

use crate::base::lock::{Mutex, Rank, locked};
use crate::cuda::event::{create_event, elapsed};
use crate::cuda::result::check;
use crate::cuda::result::raw;
use crate::cuda::symbols::Symbols;
use crate::gpu::Fault;
use crate::stats::clock_fit::ClockFit;
use crate::types::handles::{Event, Stream};

/// Events in a round. The first is the one that the device's time is counted from.
const PROBES: usize = 8;
/// How often the first round asks whether the GPU has passed an event before it goes on without.
const ATTEMPTS: u32 = 20_000;
/// A round is due so long after the one before, at first sooner, because that tells the rates.
const INTERVALS_NS: [u64; 3] = [10_000_000, 100_000_000, 1_000_000_000];
/// By how much rates may differ that nobody has compared, and by how much no clocks do.
const UNKNOWN_RATE: f64 = 50e-6;
const ABSURD_RATE: f64 = 500e-6;
/// Event times are 32-bit floats: over a long time they say no more than this share of it.
const LEAST_RATE_ERROR: f64 = 1e-6;

/// The alignment of one context's device with the host.
pub(super) struct DeviceClock {
    symbols: &'static Symbols,
    side: Option<Stream>,
    state: Mutex<State>,
    /// The state's fit, for those who come while it is being looked after.
    fit: Mutex<Option<ClockFit>>,
}

#[derive(Default)]
struct State {
    /// Two rounds' events: one round is in use while the next is made.
    events: [Vec<Event>; 2],
    rounds: usize,
    /// The probes of the round that is being made, and whether the last of them was not seen yet.
    probes: Vec<Probe>,
    is_pending: bool,
    due_ns: u64,
    /// The host's time when somebody last looked.
    looked_ns: u64,
    last: Option<Round>,
    /// The shortest time between which and which the GPU passed a round's anchor.
    least_width_ns: Option<f64>,
    fit: Option<ClockFit>,
}

/// One event.
#[derive(Clone, Copy)]
struct Probe {
    /// The host's time before it was enqueued, and after.
    asked_ns: u64,
    enqueued_ns: u64,
    /// The host's time after it was seen that the GPU had passed it.
    seen_ns: u64,
    /// The device's time since the first of the round.
    device_ns: f64,
}

/// What a round showed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Round {
    anchor: Event,
    /// The host's time at which the anchor would have been enqueued, had it met the least delay.
    zero_ns: f64,
    /// How much longer than at best most of them took.
    spread_ns: f64,
    /// The host's times between which the GPU passed the anchor.
    early_ns: f64,
    late_ns: f64,
    /// How much later than most calls say the first of these is.
    early_spread_ns: f64,
}

impl DeviceClock {
    /// Makes the first round, which takes some tens of microseconds on a GPU that has nothing else to
    /// do for our stream; the context must be current. Where the GPU does not come to it, the round is
    /// left to later.
    pub fn start(symbols: &'static Symbols, side: Result<Stream, Fault>) -> DeviceClock {
        let side = side.ok();
        let events = || (0..PROBES).map(|_| create_event()).collect::<Result<Vec<_>, _>>();
        let state = match (side, events(), events()) {
            (Some(_), Ok(one), Ok(other)) => State { events: [one, other], ..State::default() },
            _ => State::default(),
        };
        let state = State { probes: Vec::with_capacity(PROBES), ..state };
        let clock = DeviceClock {
            symbols,
            side,
            state: Mutex::new(Rank::DeviceClock, state),
            fit: Mutex::new(Rank::ClockFit, None),
        };
        for _ in 0..ATTEMPTS {
            if clock.fit().is_some() {
                break;
            }
        }
        clock
    }

    /// How the clocks lay when somebody last looked.
    pub fn known(&self) -> Option<ClockFit> {
        *locked(&self.fit)
    }

    /// How the clocks lie, as far as that is known. The context must be there. Looks after the round that is being made, or
    /// begins one that is due; never waits.
    pub fn fit(&self) -> Option<ClockFit> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another thread looks after it.
            Err(TryLockError::WouldBlock) => return *locked(&self.fit),
        };
        let before = state.fit;
        state.step(self.symbols, self.side);
        if state.fit != before {
            *locked(&self.fit) = state.fit;
        }
        state.fit
    }
}

impl State {
    /// Takes the round one step further, if one is under way or due.
    fn step(&mut self, symbols: &Symbols, side: Option<Stream>) {
        let now_ns = symbols.now_ns();
        if now_ns < self.looked_ns {
            self.start_again();
        }
        self.looked_ns = now_ns;
        let events = &self.events[self.rounds % 2];
        let (Some(side), Some(anchor)) = (side, events.first()) else { return };
        if self.is_pending {
            let Some((event, probe)) =
                events.get(self.probes.len() - 1).zip(self.probes.last_mut())
            else {
                return;
            };
            match elapsed(symbols, anchor, event) {
                Ok(Some(device_ns)) => {
                    (probe.device_ns, probe.seen_ns) = (device_ns, symbols.now_ns());
                }
                Ok(None) => return,
                Err(_) => return self.give_up(),
            }
            self.is_pending = false;
            if self.probes.len() == PROBES {
                let round = Round::of(*anchor, &self.probes);
                return self.finish(symbols, round);
            }
        } else if self.probes.is_empty() && now_ns < self.due_ns {
            return;
        }
        let Some(event) = self.events[self.rounds % 2].get(self.probes.len()) else { return };
        let asked_ns = symbols.now_ns();
        // SAFETY: event and stream were made in the same context and are never destroyed.
        let recorded = check(unsafe { sys::cuEventRecord(event.handle() as CUevent, raw(side)) });
        if recorded.is_err() {
            return self.give_up();
        }
        let enqueued_ns = symbols.now_ns();
        self.probes.push(Probe { asked_ns, enqueued_ns, seen_ns: 0, device_ns: 0.0 });
        self.is_pending = true;
    }

    fn finish(&mut self, symbols: &Symbols, round: Round) {
        let rate = self.last.and_then(|last| {
            let device_ns = elapsed(symbols, &last.anchor, &round.anchor).ok().flatten()?;
            rate(last, round, device_ns)
        });
        let (rate, rate_error) = rate.unwrap_or((1.0, UNKNOWN_RATE));
        // What an idle GPU takes at best is the same in every round, but not in every round somebody
        // looks at once.
        let width_ns = round.late_ns - round.early_ns;
        let least_ns = self.least_width_ns.map_or(width_ns, |least| least.min(width_ns));
        self.least_width_ns = Some(least_ns);
        self.fit = Some(ClockFit {
            anchor: round.anchor,
            zero_ns: round.zero_ns,
            rate,
            rate_error,
            margin_ns: round.spread_ns,
            early_ns: round.early_ns,
            window_ns: width_ns.min(least_ns + round.early_spread_ns),
        });
        self.last = Some(round);
        let interval = INTERVALS_NS.get(self.rounds).or(INTERVALS_NS.last()).copied();
        self.due_ns = symbols.now_ns() + interval.unwrap_or_default();
        self.rounds += 1;
        self.probes.clear();
    }

    /// The host's clock has stepped back: nothing is aligned any more.
    #[cold]
    fn start_again(&mut self) {
        (self.fit, self.last, self.least_width_ns) = (None, None, None);
        (self.rounds, self.due_ns, self.is_pending) = (0, 0, false);
        self.probes.clear();
    }

    /// Makes no more rounds: the context is no more, or something is wrong with it.
    fn give_up(&mut self) {
        self.due_ns = u64::MAX;
        self.probes.clear();
        self.is_pending = false;
    }
}

impl Round {
    fn of(anchor: Event, probes: &[Probe]) -> Round {
        let (zero_ns, spread_ns) = latest(probes, |probe| probe.enqueued_ns);
        // The GPU passed an event between the call that recorded it and the one that saw it passed.
        let (early_ns, early_spread_ns) = latest(probes, |probe| probe.asked_ns);
        let seen = probes.iter().map(|probe| probe.seen_ns as f64 - probe.device_ns);
        let late_ns = seen.fold(f64::INFINITY, f64::min).max(early_ns);
        Round { anchor, zero_ns, spread_ns, early_ns, late_ns, early_spread_ns }
    }
}

/// The latest time of the host's that a probe gives for the anchor, and how much later than most.
fn latest(probes: &[Probe], host_ns: impl Fn(&Probe) -> u64) -> (f64, f64) {
    let times = probes.iter().map(|probe| host_ns(probe) as f64 - probe.device_ns);
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    let latest_ns = times.last().copied().unwrap_or_default();
    // A quarter of them may have met something unusual, such as a thread that was not running.
    let usual_ns = times.get(times.len() / 4).copied().unwrap_or(latest_ns);
    (latest_ns, latest_ns - usual_ns)
}

/// Host nanoseconds in a device nanosecond and how far off that may be, if two rounds tell more than
/// is known of any clocks.
fn rate(last: Round, round: Round, device_ns: f64) -> Option<(f64, f64)> {
    let rate = (round.zero_ns - last.zero_ns) / device_ns;
    let error = (last.spread_ns + round.spread_ns) / device_ns + LEAST_RATE_ERROR;
    ((rate - 1.0).abs() < ABSURD_RATE && error < UNKNOWN_RATE).then_some((rate, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probes(of: &[(u64, f64)]) -> Vec<Probe> {
        of.iter()
            .map(|&(enqueued_ns, device_ns)| Probe {
                asked_ns: enqueued_ns - 800,
                enqueued_ns,
                seen_ns: 54_000 + device_ns as u64,
                device_ns,
            })
            .collect()
    }

    #[test]
    fn the_least_delay_aligns_the_clocks() {
        // Delays of 1,000 ns more or less around a device that started at the host's 50,000.
        let delays = [300, 0, 100, 200, 9_000, 50, 100, 100];
        let probes: Vec<_> = delays
            .iter()
            .enumerate()
            .map(|(i, delay)| {
                let enqueued = 50_000 + 10_000 * i as u64;
                (enqueued, (10_000 * i as u64 + delay) as f64)
            })
            .collect();
        let round = Round::of(Event::new(1), &self::probes(&probes));
        assert_eq!((round.zero_ns, round.spread_ns), (50_000.0, 200.0));
        assert_eq!((round.early_ns, round.late_ns), (49_200.0, 54_000.0));
    }

    #[test]
    fn a_rate_is_believed_when_the_rounds_lie_far_enough_apart() {
        let anchor = Event::new(1);
        let last = Round { zero_ns: 1e6, spread_ns: 300.0, ..Round::of(anchor, &[]) };
        let after = |device_ns: f64, rate: f64| {
            let round = Round { zero_ns: 1e6 + device_ns * rate, ..last };
            super::rate(last, round, device_ns)
        };
        assert_eq!(after(1e7, 1.0), None, "600 ns of 10 ms are 60 ppm");
        let (rate, error) = after(1e9, 1.000_02).unwrap();
        assert!((rate - 1.000_02).abs() < 1e-9 && (error - 1.6e-6).abs() < 1e-9, "{rate} {error}");
        assert_eq!(after(1e9, 1.01), None, "no clock is off by a hundredth");
    }
}
