//! Simulated call times of about 20 µs, at 10,000 calls a second.

use std::f64::consts::TAU;
use std::fmt;

use fastrand::Rng;

/// The number of calls per second.
pub const RATE: f64 = 10_000.0;
/// The middle of the times.
const MIDDLE: f64 = 20_000.0;
/// The standard deviation: 1 %.
const SPREAD: f64 = 200.0;
/// The distance of the second mode from the first: 18 %.
const APART: f64 = 3_600.0;

/// A model of call times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Normal,
    Lognormal,
    /// Two modes, of 60 and 40 % of the calls in random order.
    Bimodal,
    /// Normal, in steps of 32 ns.
    Quantised,
    /// Normal, with this correlation between neighbours.
    Autoregressive(f64),
    /// Two modes that alternate, each for this number of calls.
    Modes(u64),
    /// A drift by this share per second.
    Drift(f64),
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Kind::Normal => "normal".to_owned(),
            Kind::Lognormal => "lognormal".to_owned(),
            Kind::Bimodal => "bimodal".to_owned(),
            Kind::Quantised => "quantised to 32 ns".to_owned(),
            Kind::Autoregressive(with) => format!("AR(1) {with}"),
            Kind::Modes(calls) => format!("modes of {calls} calls"),
            Kind::Drift(share) => format!("drift of {} % a second", 100.0 * share),
        };
        f.pad(&name)
    }
}

/// A source of times.
pub struct Source {
    kind: Kind,
    random: Rng,
    calls: u64,
    /// A random number of calls by which the modes are shifted.
    phase: u64,
    state: f64,
    /// A random shift of all times, so that they do not align with buckets or clock steps.
    shift: f64,
}

impl Source {
    pub fn new(kind: Kind, seed: u64) -> Source {
        let mut random = Rng::with_seed(seed);
        let shift = 1_000.0 * random.f64();
        let phase = random.u64(..2_000);
        let state = normal(&mut random);
        Source { kind, random, calls: 0, phase, state, shift }
    }

    /// Returns the time of the next call.
    pub fn next(&mut self) -> f64 {
        let noise = normal(&mut self.random);
        self.calls += 1;
        let ns = self.shift + MIDDLE + SPREAD * noise;
        match self.kind {
            Kind::Normal => ns,
            Kind::Lognormal => self.shift + MIDDLE * (0.3 * noise).exp(),
            Kind::Bimodal => ns + if self.random.f64() < 0.6 { 0.0 } else { APART },
            Kind::Quantised => (ns / 32.0).round() * 32.0,
            Kind::Autoregressive(with) => {
                self.state = with * self.state + (1.0 - with * with).sqrt() * noise;
                self.shift + MIDDLE + SPREAD * self.state
            }
            Kind::Modes(calls) => {
                ns + if ((self.phase + self.calls) / calls).is_multiple_of(2) { 0.0 } else { APART }
            }
            Kind::Drift(share) => ns + MIDDLE * share * self.calls as f64 / RATE,
        }
    }

    /// Returns `true` if the interval contains the median of the calls so far. Two equal modes do
    /// not have a single median, so the interval must reach into both.
    pub fn is_in(&self, [low, high]: [f64; 2]) -> bool {
        let middle = self.shift + MIDDLE;
        let (least, greatest) = match self.kind {
            // 0.6 Φ(0.9674) = 0.5
            Kind::Bimodal => (middle + 0.9674 * SPREAD, middle + 0.9674 * SPREAD),
            Kind::Modes(_) => (middle + 4.0 * SPREAD, middle + APART - 4.0 * SPREAD),
            Kind::Drift(share) => {
                let drifted = MIDDLE * share * self.calls as f64 / RATE;
                (middle + drifted / 2.0, middle + drifted / 2.0)
            }
            _ => (middle, middle),
        };
        low <= least && greatest <= high
    }
}

/// Returns a normal variable (Box and Muller).
pub fn normal(random: &mut Rng) -> f64 {
    (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (TAU * random.f64()).cos()
}
