//! The GPU's way through the brackets of one stream, in the host's time.
//!
//! A sample is fed when the GPU reached its start only after the host had enqueued its stop. That the
//! start still reads pending then would not show it, because the host sees what the GPU does a
//! microsecond or two late; so the times of both are compared.
//!
//! To ask the driver for the time of a start costs as much as to ask for the raw time itself, so not every
//! start is asked for. Brackets follow each other on a stream: a start comes no earlier than the stop before
//! it, and earlier than the starts after it by all that the brackets in between took. In a long queue the
//! first of these shows that the samples are fed, and where the GPU waits for the host the second that they
//! are starved.

use crate::gpu::{Event, EventPair, Gpu};

/// How the device's time lies in the host's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ClockFit {
    /// The event that the device's time is counted from.
    pub anchor: Event,
    /// The host's time by which the GPU had passed the anchor, at the earliest.
    pub zero_ns: f64,
    /// Host nanoseconds in a device nanosecond, and how far off that may be.
    pub rate: f64,
    pub rate_error: f64,
    /// How much longer than at best the GPU may take to see what the host has enqueued.
    pub margin_ns: f64,
    /// The GPU passed the anchor no earlier than this time of the host's, and no more than so much later.
    pub early_ns: f64,
    pub window_ns: f64,
}

/// A time on the device as one of the host's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Moment {
    pub host_ns: f64,
    /// How far off it may be, before or after.
    pub error_ns: f64,
}

impl ClockFit {
    /// The host's time at which the GPU was `device_ns` after the anchor, at the earliest.
    fn earliest_ns(&self, device_ns: f64) -> f64 {
        self.zero_ns + device_ns * self.rate - device_ns.abs() * self.rate_error
    }

    /// The host's time at which the GPU reached the start of a bracket, at the earliest.
    fn reached_ns<G: Gpu>(&self, gpu: &G, crossing: &Crossing) -> Option<f64> {
        let pair = EventPair { start: self.anchor, stop: crossing.start };
        gpu.since(&pair).map(|device_ns| self.earliest_ns(device_ns))
    }

    /// The host's time at which the GPU was `device_ns` after the anchor.
    fn moment(&self, device_ns: f64) -> Moment {
        Moment {
            host_ns: self.early_ns + self.window_ns / 2.0 + device_ns * self.rate,
            error_ns: self.window_ns / 2.0 + device_ns.abs() * self.rate_error,
        }
    }
}

/// A bracket that the GPU has passed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Crossing {
    pub start: Event,
    pub raw_ns: f64,
    /// The host's time after the stop record.
    pub stopped_ns: u64,
    /// Events of another bracket may lie inside, so that its start may have come before the stop of the one
    /// before it.
    pub is_nested: bool,
}

impl Crossing {
    /// In the place of one.
    pub const NONE: Crossing =
        Crossing { start: Event::new(0), raw_ns: 0.0, stopped_ns: 0, is_nested: false };
}

/// Where the GPU is known to have been in a stream. Brackets are passed in the order of their stops.
pub(crate) struct Passage {
    fit: Option<ClockFit>,
    /// The first event that was dated, and its time since the anchor.
    dated: Option<(Event, f64)>,
    /// The host's time at which the GPU passed the last stop, at the earliest.
    passed_ns: Option<f64>,
    /// The last bracket was starved, and so most likely is the next.
    is_starving: bool,
    ahead: Option<Ahead>,
}

/// What the start of a later bracket says of the next one.
#[derive(Clone, Copy)]
struct Ahead {
    /// The host's time at which the GPU reached the next start, at the latest.
    latest_ns: f64,
    /// So many brackets come before the one whose start was asked for.
    left: usize,
}

impl Passage {
    /// The beginning of a walk through a stream's brackets in their order.
    pub fn new(fit: Option<ClockFit>) -> Passage {
        Passage { fit, dated: None, passed_ns: None, is_starving: false, ahead: None }
    }

    /// Passes the first of these brackets, behind which the others come. Answers whether the GPU reached its
    /// start only after the host had enqueued its stop.
    #[inline]
    pub fn reaches<G: Gpu>(&mut self, gpu: &G, crossings: &[Crossing]) -> bool {
        let (Some(fit), Some(next)) = (self.fit, crossings.first()) else { return false };
        let enough_ns = next.stopped_ns as f64 + fit.margin_ns;
        if !next.is_nested
            && let Some(passed_ns) = self.passed_ns
            && passed_ns > enough_ns
        {
            self.pass(next, Some(passed_ns));
            return true;
        }
        if self.ahead.is_none() && self.is_starving {
            self.ahead = look_ahead(&fit, gpu, crossings);
        }
        match self.ahead {
            Some(Ahead { latest_ns, .. }) if latest_ns <= enough_ns => {
                let not_before = self.passed_ns.filter(|_| !next.is_nested);
                self.pass(next, not_before);
                return false;
            }
            // That is the one that was asked for.
            Some(Ahead { latest_ns, left: 0 }) => self.pass(next, Some(latest_ns)),
            _ => return self.reaches_when_asked(gpu, next),
        }
        self.is_starving = false;
        true
    }

    /// The same for one bracket, whose start is asked for, so that it is known when the GPU passed it.
    #[inline]
    pub fn reaches_when_asked<G: Gpu>(&mut self, gpu: &G, next: &Crossing) -> bool {
        let started_ns = self.fit.and_then(|fit| fit.reached_ns(gpu, next));
        self.pass(next, started_ns);
        let enough_ns = self.fit.map(|fit| next.stopped_ns as f64 + fit.margin_ns);
        let is_late = started_ns.zip(enough_ns).is_some_and(|(started, enough)| started > enough);
        self.is_starving = !is_late;
        is_late
    }

    /// Passes a bracket of which nothing is to be known.
    #[inline]
    pub fn skip(&mut self, next: &Crossing) {
        self.pass(next, None);
    }

    /// Passes a bracket that the GPU reached no earlier than at this time of the host's.
    #[inline]
    fn pass(&mut self, next: &Crossing, started_ns: Option<f64>) {
        self.passed_ns = started_ns.map(|started_ns| started_ns + next.raw_ns);
        self.ahead = self.ahead.and_then(|Ahead { latest_ns, left }| {
            let left = left.checked_sub(1)?;
            Some(Ahead { latest_ns: latest_ns + next.raw_ns, left })
        });
    }

    /// When the GPU passed a bracket of `raw_ns`: its start and its stop.
    ///
    /// Event times are 32-bit floats, which say little long after the anchor. So only the first start is
    /// counted from there, and those after it from that one.
    pub fn date<G: Gpu>(&mut self, gpu: &G, start: &Event, raw_ns: f64) -> Option<[Moment; 2]> {
        let fit = self.fit?;
        let (from, from_ns) = self.dated.unwrap_or((fit.anchor, 0.0));
        let start_ns = from_ns + gpu.since(&EventPair { start: from, stop: *start })?;
        self.dated.get_or_insert((*start, start_ns));
        Some([start_ns, start_ns + raw_ns].map(|ns| fit.moment(ns)))
    }

    /// Whether the GPU passed the last stop after this moment of the host's.
    #[inline]
    pub fn is_past(&self, host_ns: Option<u64>) -> bool {
        match (self.passed_ns, host_ns) {
            (Some(passed_ns), Some(host_ns)) => passed_ns > host_ns as f64,
            _ => false,
        }
    }
}

/// Asks for the last start that can tell of the first: none does from behind a bracket that another lies in, or
/// of which the time is unknown.
#[cold]
fn look_ahead<G: Gpu>(fit: &ClockFit, gpu: &G, crossings: &[Crossing]) -> Option<Ahead> {
    let is_sound = |crossing: &&Crossing| !crossing.is_nested && crossing.raw_ns >= 0.0;
    let behind = crossings.iter().skip(1).take_while(is_sound).count();
    let reached_ns = fit.reached_ns(gpu, crossings.get(behind)?)?;
    let between_ns: f64 = crossings.iter().take(behind).map(|crossing| crossing.raw_ns).sum();
    Some(Ahead { latest_ns: reached_ns - between_ns, left: behind })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeGpu;
    use proptest::prelude::*;

    const FIT: ClockFit = ClockFit {
        anchor: Event::new(1),
        zero_ns: 50_000.0,
        rate: 1.1,
        rate_error: 0.01,
        margin_ns: 100.0,
        early_ns: 49_200.0,
        window_ns: 4_800.0,
    };

    /// The fake's events are a thousand nanoseconds apart.
    #[test]
    fn brackets_are_dated_in_the_middle_of_what_is_possible() {
        let gpu = FakeGpu::default();
        let mut passage = Passage::new(Some(FIT));
        let [start, stop] = passage.date(&gpu, &Event::new(11), 500.0).unwrap();
        assert_eq!(start, Moment { host_ns: 50_000.0 + 1_600.0 + 11_000.0, error_ns: 2_500.0 });
        assert_eq!(stop.host_ns - start.host_ns, 550.0);
        let [next, _] = passage.date(&gpu, &Event::new(13), 500.0).unwrap();
        assert_eq!(next.host_ns - start.host_ns, 2_200.0);
        assert!(Passage::new(None).date(&gpu, &Event::new(11), 500.0).is_none());
    }

    /// Host and device count from the same moment.
    const SAME: ClockFit =
        ClockFit { anchor: Event::new(0), zero_ns: 0.0, rate: 1.0, rate_error: 0.0, ..FIT };

    /// A bracket that the GPU passes from one microsecond to the other, and whose stop the host had
    /// enqueued at the third.
    fn crossing(from_us: u64, to_us: u64, stopped_us: u64, is_nested: bool) -> Crossing {
        Crossing {
            start: Event::new(from_us as usize),
            raw_ns: (to_us - from_us) as f64 * 1e3,
            stopped_ns: stopped_us * 1_000,
            is_nested,
        }
    }

    /// Which are reached late enough, and how often the driver was asked.
    fn walk(crossings: &[Crossing], stretch: usize) -> (Vec<bool>, usize) {
        let (gpu, mut passage) = (FakeGpu::default(), Passage::new(Some(SAME)));
        let mut reached = Vec::new();
        for stretch in crossings.chunks(stretch) {
            reached.extend((0..stretch.len()).map(|at| passage.reaches(&gpu, &stretch[at..])));
        }
        (reached, gpu.take_log().len())
    }

    #[test]
    fn not_every_start_is_asked_for() {
        let row = |late_us: u64| -> Vec<Crossing> {
            let at = |n: u64| 1_000 + 10 * n;
            (0..32).map(|n| crossing(at(n), at(n) + 9, at(n) + 4 - late_us, false)).collect()
        };
        // The GPU comes to each as soon as it is enqueued; or much later.
        assert_eq!(walk(&row(0), 4), (vec![false; 32], 1 + 1 + 28 / 4));
        assert_eq!(walk(&row(500), 4), (vec![true; 32], 1));
        // It comes just in time, which nothing but its own start shows.
        assert_eq!(walk(&row(5), 4), (vec![true; 32], 32));
    }

    #[test]
    fn a_time_that_makes_no_sense_says_nothing_of_those_before() {
        let mut row: Vec<_> =
            (1..5).map(|n| crossing(10 * n, 10 * n + 9, 10 * n - 5, false)).collect();
        row[2].raw_ns = f64::NAN;
        let (gpu, mut passage) = (FakeGpu::default(), Passage::new(Some(SAME)));
        assert!(passage.reaches(&gpu, &row) && passage.reaches(&gpu, &row[1..]));
        passage.skip(&row[2]);
        assert!(passage.reaches(&gpu, &row[3..]));
    }

    proptest! {
        /// What is concluded is what asking for every start would have said.
        #[test]
        fn bounds_say_what_asking_would(
            steps in prop::collection::vec((0u64..12, 1u64..20, -15i64..15, prop::bool::weighted(0.2)), 1..60),
            stretch in 1usize..9,
        ) {
            let mut now_us = 1_000;
            let mut inner_us = now_us;
            let mut row = Vec::new();
            for (gap, takes, late, is_nested) in steps {
                // One that another lies in began before that.
                let from = if is_nested { inner_us - 1 } else { now_us + gap };
                let to = from.max(now_us) + takes;
                row.push(crossing(from, to, from.saturating_add_signed(late), is_nested));
                (inner_us, now_us) = (from, to);
            }
            let asked: Vec<bool> = row.iter().map(|next| {
                Passage::new(Some(SAME)).reaches_when_asked(&FakeGpu::default(), next)
            }).collect();
            prop_assert_eq!(walk(&row, stretch).0, asked);
        }
    }
}
