//! The odds that a call inside an opened call would have been recorded, and the number of calls that it represents.
//!
//! A call is recorded if it or a call around it is opened. If calls are chosen independently of each other, those
//! recorded stand for all if each is multiplied by one divided by the probability that it is recorded (the
//! Horvitz–Thompson estimator). Inside an opened call the sampler is not asked about functions with `sample`. Had
//! the outermost call not been opened, then a function that the sampler passes over would have had no part in the
//! choice, and one on a stream that it chooses would have been timed by events, so that nothing inside would have been
//! opened by itself. The right weight is the mean over both cases of the weight in each.

use crate::base::random::happens;

/// The odds of a call inside certain others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Odds {
    /// The probability that none of the calls around would have been chosen. Leaves out functions on streams that
    /// only sampling would have kept from being timed by events.
    missed: f64,
    /// The probability that none of the functions around would have been timed by events.
    free: f64,
    /// The sum over those that would: the probability that it is the outermost such function, multiplied by the weight
    /// of what is inside.
    bound: f64,
}

/// One of the calls around others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct OddsAround {
    /// The probability of opening the call if the sampler chooses it.
    pub share: f64,
    /// The probability that the sampler would choose it; 1 if it was asked.
    pub sampled: f64,
    /// Events time the call if it is not opened.
    pub by_events: bool,
}

impl Odds {
    /// Returns the odds of an outermost timed call. At least one of the calls around it, which were not chosen, would
    /// have been chosen with the probability `hit`.
    pub fn outermost(hit: f64) -> Odds {
        Odds { missed: 1.0 - hit, free: 1.0, bound: 0.0 }
    }

    /// Returns the number of calls that such a call represents, if it would be opened by itself with the probability
    /// `share`.
    pub fn weight(&self, share: f64) -> f64 {
        self.bound + self.free_weight(1.0, share)
    }

    /// Returns the weight of a call with this `share` if nothing around it is timed by events, multiplied by the
    /// probability of that and of something else.
    fn free_weight(&self, probability: f64, share: f64) -> f64 {
        match self.free * probability {
            0.0 => 0.0,
            probability => probability / (1.0 - self.missed * (1.0 - share)),
        }
    }

    /// Returns the odds of a call inside `around`, which itself has the odds `self`.
    pub fn inside(self, around: OddsAround) -> Odds {
        // A random choice between the two cases has the right mean, and needs no list of all combinations.
        let is_chosen = around.by_events || around.sampled >= 1.0 || happens(around.sampled);
        self.inside_if(around, is_chosen)
    }

    /// Does the same as [`inside`](Self::inside). Unless events would time `around`, `is_chosen` says whether the
    /// sampler would choose it.
    fn inside_if(self, around: OddsAround, is_chosen: bool) -> Odds {
        let OddsAround { share, sampled, by_events } = around;
        if by_events {
            let bound = self.bound + self.free_weight(sampled, share);
            Odds { free: self.free * (1.0 - sampled), bound, ..self }
        } else if is_chosen {
            Odds { missed: self.missed * (1.0 - share), ..self }
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALWAYS: OddsAround = OddsAround { share: 1.0, sampled: 1.0, by_events: false };

    /// Returns the expected weight of the innermost of these nested calls if the outermost opened one is the first,
    /// which the sampler has chosen, with the probability that this happens.
    fn inside_opened(odds: Odds, calls: &[OddsAround]) -> f64 {
        let [around, inner @ ..] = calls else { unreachable!() };
        if inner.is_empty() {
            return odds.weight(around.share);
        }
        let choices = match around.by_events || around.sampled == 1.0 {
            true => vec![(1.0, true)],
            false => vec![(around.sampled, true), (1.0 - around.sampled, false)],
        };
        let inside = |is_chosen| inside_opened(odds.inside_if(*around, is_chosen), inner);
        choices.into_iter().map(|(chance, is_chosen)| chance * inside(is_chosen)).sum()
    }

    /// Returns the expected sum of the weights with which the innermost of these nested calls is recorded. `hit` is
    /// the probability that one of the calls around them would have been chosen.
    fn expected(hit: f64, calls: &[OddsAround]) -> f64 {
        let [first, inner @ ..] = calls else { return 0.0 };
        let asked = OddsAround { sampled: 1.0, ..*first };
        let opened = if inner.is_empty() {
            // Weighted by the sampler as well.
            Odds::outermost(hit).weight(first.share) / first.sampled
        } else {
            inside_opened(Odds::outermost(hit).inside(asked), inner)
        };
        let not_opened = match first.by_events {
            true => 0.0,
            false => expected(1.0 - (1.0 - hit) * (1.0 - first.share), inner),
        };
        let sampled = match first.share {
            0.0 => not_opened,
            share => share * opened + (1.0 - share) * not_opened,
        };
        first.sampled * sampled + (1.0 - first.sampled) * expected(hit, inner)
    }

    #[test]
    fn recorded_calls_stand_for_all() {
        let with = |share, sampled, by_events| OddsAround { share, sampled, by_events };
        let outer = with(0.1, 1.0, false);
        let mut functions = Vec::new();
        for share in [0.0, 0.3, 1.0] {
            for sampled in [0.1, 0.6, 1.0] {
                functions.extend([with(share, sampled, true), with(share, sampled, false)]);
            }
        }
        for &middle in &functions {
            for &other in &functions {
                for innermost in [ALWAYS, with(0.2, 1.0, false), with(0.2, 0.5, false)] {
                    for calls in [
                        &[outer, middle, innermost][..],
                        &[outer, middle, other, innermost],
                        &[outer, middle, outer, other, innermost],
                    ] {
                        let sum = expected(0.0, calls);
                        assert!((sum - 1.0).abs() < 1e-9, "{sum}: {calls:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn rarely_timed_inner_function_opens_by_itself() {
        let [outer, middle] = [(1.0, false), (0.1, true)].map(|(sampled, by_events)| OddsAround {
            share: if by_events { 0.0 } else { 0.1 },
            sampled,
            by_events,
        });
        let inside = Odds::outermost(0.0).inside(outer).inside(middle);
        // Ten where events would time the function around it, and else one.
        assert!((inside.weight(1.0) - 1.9).abs() < 1e-9, "{inside:?}");
    }

    #[test]
    fn sampled_outer_function_changes_odds_when_chosen() {
        let middle = OddsAround { share: 0.5, sampled: 0.25, by_events: false };
        let odds = Odds::outermost(0.0);
        let halved = (0..4_000).filter(|_| odds.inside(middle).missed == 0.5).count();
        // The deviation is 27.
        assert!((850..1_150).contains(&halved), "{halved}");
    }
}
