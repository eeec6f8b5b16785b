//! Aligns the device clock with the host clock.
//!
//! From time to time, the host records several events on the runtime's own idle stream, and reads
//! its clock after each call. The GPU passes such an event about a microsecond later. The event
//! with the shortest delay aligns the clocks: it shows the best case of an idle GPU. The clocks
//! also run at slightly different rates, which the comparison of two such rounds reveals.

use std::time::Instant;

use crate::base::lock::{Mutex, Rank, locked, locked_by, try_locked};
use crate::cuda::objects::{create_event, elapsed, record_event};
use crate::cuda::symbols::Symbols;
use crate::gpu::Fault;
use crate::stats::clock_fit::ClockFit;
use crate::types::handles::{Event, Stream};

/// The number of events in a round. Device time is counted from the first one, the anchor.
const MARKERS: usize = 8;
/// The maximum number of steps taken at once in the first round. If they are not enough, the round
/// is finished later.
const ATTEMPTS: u32 = 20_000;
/// The intervals between rounds. The first ones are shorter, because two rounds are needed to find
/// the ratio of the rates.
const INTERVALS_NS: [u64; 3] = [10_000_000, 100_000_000, 1_000_000_000];
/// The error assumed while the rate is unknown, and a deviation from 1 that is too large for any
/// real clock.
const UNKNOWN_RATE: f64 = 50e-6;
const ABSURD_RATE: f64 = 500e-6;
/// The smallest error of a measured rate. It covers the rounding of long event times, which the
/// driver returns as `f32`.
const LEAST_RATE_ERROR: f64 = 1e-6;

/// The alignment of one context's device clock with the host clock.
pub(super) struct DeviceClock {
    symbols: &'static Symbols,
    own_stream: Option<Stream>,
    alignment: Mutex<AlignmentRounds>,
    /// A copy of the fit, for threads that need it while another thread is aligning the clocks.
    fit: Mutex<Option<ClockFit>>,
}

#[derive(Default)]
struct AlignmentRounds {
    /// The events for two rounds: the last round's anchor stays in use while the next round is
    /// measured.
    events: [Vec<Event>; 2],
    rounds: usize,
    /// The markers of the round in progress. `is_pending` is set until the GPU has passed the last
    /// one.
    markers: Vec<Marker>,
    is_pending: bool,
    due_ns: u64,
    /// The host time at the last step.
    stepped_ns: u64,
    last: Option<Round>,
    /// The shortest window in which the GPU passed an anchor, over all rounds.
    least_width_ns: Option<f64>,
    fit: Option<ClockFit>,
}

/// The times of one event.
#[derive(Clone, Copy)]
struct Marker {
    /// The host times before and after the event was enqueued.
    asked_ns: u64,
    enqueued_ns: u64,
    /// The host time at which a query found that the GPU had passed the event.
    seen_ns: u64,
    /// The device time since the round's anchor.
    device_ns: f64,
}

/// The result of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Round {
    anchor: Event,
    /// The host time at which the anchor would have been enqueued if its delay had been the
    /// shortest.
    zero_ns: f64,
    /// Upper bound on the amount by which the delays of most events exceed the shortest delay.
    spread_ns: f64,
    /// The GPU passed the anchor between these two host times.
    early_ns: f64,
    late_ns: f64,
    /// Upper bound on how much later `early_ns` is than the bounds that most events give.
    early_spread_ns: f64,
}

impl DeviceClock {
    /// Creates a clock and measures the first round. This takes some tens of microseconds if the
    /// GPU processes the runtime's stream immediately. Otherwise the round is finished later. The
    /// context must be current.
    pub fn start(symbols: &'static Symbols, own_stream: Result<Stream, Fault>) -> DeviceClock {
        let own_stream = own_stream.ok();
        let events = || (0..MARKERS).map(|_| create_event()).collect::<Result<Vec<_>, _>>();
        let events = match (own_stream, events(), events()) {
            (Some(_), Ok(one), Ok(other)) => [one, other],
            _ => <[Vec<Event>; 2]>::default(),
        };
        let markers = Vec::with_capacity(MARKERS);
        let alignment = Mutex::new(
            Rank::DeviceClock,
            AlignmentRounds { events, markers, ..AlignmentRounds::default() },
        );
        let clock =
            DeviceClock { symbols, own_stream, alignment, fit: Mutex::new(Rank::ClockFit, None) };
        for _ in 0..ATTEMPTS {
            if clock.fit().is_some() {
                break;
            }
        }
        clock
    }

    /// Returns the last fit.
    pub fn known(&self) -> Option<ClockFit> {
        *locked(&self.fit)
    }

    /// Continues the round in progress, or begins one that is due, and returns the latest fit.
    /// Never waits. The context must exist.
    pub fn fit(&self) -> Option<ClockFit> {
        let Some(mut alignment) = try_locked(&self.alignment) else {
            // Another thread is aligning the clocks.
            return *locked(&self.fit);
        };
        let before = alignment.fit;
        alignment.step(self.symbols, self.own_stream);
        if alignment.fit != before {
            *locked(&self.fit) = alignment.fit;
        }
        alignment.fit
    }

    /// Frees the lists of events after the context has been destroyed. Returns `false` if another
    /// thread is aligning the clocks.
    pub fn retire(&self) -> bool {
        let alignment = locked_by(&self.alignment, Instant::now());
        alignment.map(|mut alignment| *alignment = AlignmentRounds::default()).is_some()
    }
}

impl AlignmentRounds {
    /// Advances the round by one step, if one is in progress or due.
    fn step(&mut self, symbols: &Symbols, own_stream: Option<Stream>) {
        let now_ns = symbols.now_ns();
        if now_ns < self.stepped_ns {
            self.restart();
        }
        self.stepped_ns = now_ns;
        let events = &self.events[self.rounds % 2];
        let (Some(own_stream), Some(anchor)) = (own_stream, events.first()) else { return };
        if self.is_pending {
            let last = events.get(self.markers.len() - 1).zip(self.markers.last_mut());
            let Some((event, marker)) = last else { return };
            match elapsed(symbols, anchor, event) {
                Ok(Some(device_ns)) => {
                    (marker.device_ns, marker.seen_ns) = (device_ns, symbols.now_ns());
                }
                Ok(None) => return,
                Err(_) => return self.give_up(),
            }
            self.is_pending = false;
            if self.markers.len() == MARKERS {
                let round = Round::new(*anchor, &self.markers);
                return self.finish(symbols, round);
            }
        } else if self.markers.is_empty() && now_ns < self.due_ns {
            return;
        }
        let Some(event) = self.events[self.rounds % 2].get(self.markers.len()) else { return };
        let asked_ns = symbols.now_ns();
        if record_event(event, own_stream).is_err() {
            return self.give_up();
        }
        let enqueued_ns = symbols.now_ns();
        self.markers.push(Marker { asked_ns, enqueued_ns, seen_ns: 0, device_ns: 0.0 });
        self.is_pending = true;
    }

    fn finish(&mut self, symbols: &Symbols, round: Round) {
        let rate = self.last.and_then(|last| {
            let device_ns = elapsed(symbols, &last.anchor, &round.anchor).ok().flatten()?;
            rate(last, round, device_ns)
        });
        let (rate, rate_error) = rate.unwrap_or((1.0, UNKNOWN_RATE));
        // The best case of an idle GPU is the same in every round, but the host may notice late that the GPU
        // has passed an event. Hence the shortest window of all rounds bounds this one.
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
        self.markers.clear();
    }

    /// Starts over, because the host clock has gone backwards.
    #[cold]
    fn restart(&mut self) {
        (self.fit, self.last, self.least_width_ns) = (None, None, None);
        (self.rounds, self.due_ns, self.is_pending) = (0, 0, false);
        self.markers.clear();
    }

    /// Stops measuring, because the context is gone or has failed.
    fn give_up(&mut self) {
        self.due_ns = u64::MAX;
        self.markers.clear();
        self.is_pending = false;
    }
}

impl Round {
    fn new(anchor: Event, markers: &[Marker]) -> Round {
        let (zero_ns, spread_ns) = latest(markers, |marker| marker.enqueued_ns);
        // The GPU passed each event between the host call that recorded it and the query that found
        // it passed.
        let (early_ns, early_spread_ns) = latest(markers, |marker| marker.asked_ns);
        let seen = markers.iter().map(|marker| marker.seen_ns as f64 - marker.device_ns);
        let late_ns = seen.fold(f64::INFINITY, f64::min).max(early_ns);
        Round { anchor, zero_ns, spread_ns, early_ns, late_ns, early_spread_ns }
    }
}

/// Returns the latest host time that any marker implies for the anchor, and an upper bound on how much later
/// this is than the times that most markers imply.
fn latest(markers: &[Marker], host_ns: impl Fn(&Marker) -> u64) -> (f64, f64) {
    let times = markers.iter().map(|marker| host_ns(marker) as f64 - marker.device_ns);
    let mut times: Vec<f64> = times.collect();
    times.sort_by(f64::total_cmp);
    let latest_ns = times.last().copied().unwrap_or_default();
    // A quarter of the markers may have been delayed, for example while the thread was descheduled.
    let usual_ns = times.get(times.len() / 4).copied().unwrap_or(latest_ns);
    (latest_ns, latest_ns - usual_ns)
}

/// Returns the number of host nanoseconds per device nanosecond, and its error, or `None` if the two rounds
/// do not determine the rate more precisely than [`UNKNOWN_RATE`], which holds for any clock.
fn rate(last: Round, round: Round, device_ns: f64) -> Option<(f64, f64)> {
    let rate = (round.zero_ns - last.zero_ns) / device_ns;
    let error = (last.spread_ns + round.spread_ns) / device_ns + LEAST_RATE_ERROR;
    ((rate - 1.0).abs() < ABSURD_RATE && error < UNKNOWN_RATE).then_some((rate, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markers(of: &[(u64, f64)]) -> Vec<Marker> {
        of.iter()
            .map(|&(enqueued_ns, device_ns)| Marker {
                asked_ns: enqueued_ns - 800,
                enqueued_ns,
                seen_ns: 54_000 + device_ns as u64,
                device_ns,
            })
            .collect()
    }

    #[test]
    fn least_delay_aligns_clocks() {
        // Delays of up to 9,000 ns after the host time, on a device whose clock started at host
        // time 50,000.
        let delays = [300, 0, 100, 200, 9_000, 50, 100, 100];
        let times: Vec<_> = delays
            .iter()
            .enumerate()
            .map(|(i, delay)| {
                let enqueued = 50_000 + 10_000 * i as u64;
                (enqueued, (10_000 * i as u64 + delay) as f64)
            })
            .collect();
        let round = Round::new(Event::new(1), &markers(&times));
        assert_eq!((round.zero_ns, round.spread_ns), (50_000.0, 200.0));
        assert_eq!((round.early_ns, round.late_ns), (49_200.0, 54_000.0));
    }

    #[test]
    fn rate_of_close_rounds_is_rejected() {
        let anchor = Event::new(1);
        let last = Round { zero_ns: 1e6, spread_ns: 300.0, ..Round::new(anchor, &[]) };
        let after = |device_ns: f64, rate: f64| {
            let round = Round { zero_ns: 1e6 + device_ns * rate, ..last };
            super::rate(last, round, device_ns)
        };
        assert_eq!(after(1e7, 1.0), None, "600 ns in 10 ms are 60 ppm");
        let (rate, error) = after(1e9, 1.000_02).unwrap();
        assert!((rate - 1.000_02).abs() < 1e-9 && (error - 1.6e-6).abs() < 1e-9, "{rate} {error}");
        assert_eq!(after(1e9, 1.01), None, "no clock deviates by 1 %");
    }
}
