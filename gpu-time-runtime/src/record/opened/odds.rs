//! The odds that a call inside an opened call would have been recorded, and the number of calls that it represents.
//!
//! A call is recorded if it or a call around it is opened. If calls are chosen independently of each other, those
//! recorded stand for all if each is multiplied by one divided by the probability that it is recorded (the
//! Horvitz–Thompson estimator). Inside an opened call the sampler is not asked about functions with `sample`. Had
//! the outermost call not been opened, then a function that the sampler passes over would have had no part in the
//! choice, and one on a stream that it chooses would have been timed by events, so that nothing inside would have been
//! opened by itself. The right weight is the mean over both cases of the weight in each.

use crate::base::random::happens;
use crate::record::opened::passed_over::MAX_DEPTH;

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
    /// The number of functions around that would have been passed over if none had been chosen.
    passed_over: usize,
}

/// One of several nested calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NestedCall {
    /// The probability of opening the call if the sampler chooses it.
    pub share: f64,
    /// The probability that the sampler would choose it; 1 if it was asked.
    pub sampled: f64,
    /// Events time the call if it is not opened.
    pub by_events: bool,
    /// The call is a span, which does not count for the depth.
    pub is_span: bool,
}

impl Odds {
    /// Returns the odds of an outermost timed call inside `passed_over` calls, which were not chosen. At least one of
    /// them would have been chosen with the probability `hit`.
    pub fn outermost(hit: f64, passed_over: usize) -> Odds {
        Odds { missed: 1.0 - hit, free: 1.0, bound: 0.0, passed_over }
    }

    /// Returns the number of calls that a call represents.
    pub fn weight(&self, call: NestedCall) -> f64 {
        self.bound + self.free_weight(1.0, self.share(call))
    }

    /// Returns the probability with which a call would be opened by itself if no call around it were chosen. Inside too
    /// many others it is not opened.
    fn share(&self, call: NestedCall) -> f64 {
        if self.passed_over <= MAX_DEPTH { call.share } else { 0.0 }
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
    pub fn inside(self, around: NestedCall) -> Odds {
        // A random choice between the two cases has the right mean, and needs no list of all combinations.
        let is_chosen = around.by_events || around.sampled >= 1.0 || happens(around.sampled);
        self.inside_if(around, is_chosen)
    }

    /// Does the same as [`inside`](Self::inside). Unless events would time `around`, `is_chosen` says whether the
    /// sampler would choose it.
    fn inside_if(self, around: NestedCall, is_chosen: bool) -> Odds {
        let NestedCall { sampled, by_events, is_span, .. } = around;
        let share = self.share(around);
        if by_events {
            let bound = self.bound + self.free_weight(sampled, share);
            Odds { free: self.free * (1.0 - sampled), bound, ..self }
        } else if is_chosen {
            // With a share of 0, the host clock times it.
            let passed_over = self.passed_over + usize::from(around.share > 0.0 && !is_span);
            Odds { missed: self.missed * (1.0 - share), passed_over, ..self }
        } else {
            self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALWAYS: NestedCall =
        NestedCall { share: 1.0, sampled: 1.0, by_events: false, is_span: false };

    /// Returns the expected weight of the innermost of these nested calls if the outermost opened one is the first,
    /// which the sampler has chosen, with the probability that this happens.
    fn inside_opened(odds: Odds, calls: &[NestedCall]) -> f64 {
        let [around, inner @ ..] = calls else { unreachable!() };
        if inner.is_empty() {
            return odds.weight(*around);
        }
        let choices = match around.by_events || around.sampled == 1.0 {
            true => vec![(1.0, true)],
            false => vec![(around.sampled, true), (1.0 - around.sampled, false)],
        };
        let inside = |is_chosen| inside_opened(odds.inside_if(*around, is_chosen), inner);
        choices.into_iter().map(|(chance, is_chosen)| chance * inside(is_chosen)).sum()
    }

    /// Returns the expected sum of the weights with which the innermost of these nested calls is recorded. `hit` is
    /// the probability that one of the `passed_over` calls around them would have been chosen.
    fn expected(hit: f64, passed_over: usize, calls: &[NestedCall]) -> f64 {
        let [first, inner @ ..] = calls else { return 0.0 };
        let asked = NestedCall { sampled: 1.0, ..*first };
        let outermost = Odds::outermost(hit, passed_over);
        let opened = if inner.is_empty() {
            // Weighted by the sampler as well.
            outermost.weight(asked) / first.sampled
        } else {
            inside_opened(outermost.inside(asked), inner)
        };
        let share = if passed_over > MAX_DEPTH { 0.0 } else { first.share };
        let not_opened = match first.by_events {
            true => 0.0,
            false => {
                let passed_over = passed_over + usize::from(first.share > 0.0);
                expected(1.0 - (1.0 - hit) * (1.0 - share), passed_over, inner)
            }
        };
        let sampled = match share {
            0.0 => not_opened,
            share => share * opened + (1.0 - share) * not_opened,
        };
        if first.sampled == 1.0 {
            return sampled;
        }
        first.sampled * sampled + (1.0 - first.sampled) * expected(hit, passed_over, inner)
    }

    #[test]
    fn recorded_calls_stand_for_all() {
        let with = |share, sampled, by_events| NestedCall { share, sampled, by_events, ..ALWAYS };
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
                        let sum = expected(0.0, 0, calls);
                        assert!((sum - 1.0).abs() < 1e-9, "{sum}: {calls:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn deeply_nested_calls_stand_for_all() {
        let some = NestedCall { share: 0.05, ..ALWAYS };
        for levels in [1, 16, 17, 18, 60] {
            let mut calls = vec![some; levels];
            calls.push(NestedCall { share: 0.3, ..ALWAYS });
            // Functions that the sampler passes over, or that the host clock times, do not count for the depth.
            for of_sampled in [1.0, 0.1] {
                calls[0] = NestedCall { sampled: of_sampled, ..some };
                calls[levels / 2].share = if levels > 1 { 0.0 } else { 0.05 };
                let sum = expected(0.0, 0, &calls);
                assert!((sum - 1.0).abs() < 1e-9, "{sum} with {levels} levels");
            }
        }
    }

    /// Spans inside many functions are not opened, as functions are not.
    #[test]
    fn deeply_nested_span_does_not_open_by_itself() {
        let around = NestedCall { share: 0.05, ..ALWAYS };
        let inside = (0..40).fold(Odds::outermost(0.0, 0), |odds, _| odds.inside(around));
        let span = NestedCall { is_span: true, ..ALWAYS };
        let weights = [ALWAYS, span].map(|call| inside.weight(call));
        assert!(
            weights.iter().all(|weight| (weight - 1.0 / (1.0 - 0.95_f64.powi(17))).abs() < 1e-9)
        );
    }

    #[test]
    fn rarely_timed_inner_function_opens_by_itself() {
        let [outer, middle] = [(1.0, false), (0.1, true)].map(|(sampled, by_events)| NestedCall {
            share: if by_events { 0.0 } else { 0.1 },
            sampled,
            by_events,
            ..ALWAYS
        });
        let inside = Odds::outermost(0.0, 0).inside(outer).inside(middle);
        // Ten where events would time the function around it, and else one.
        assert!((inside.weight(ALWAYS) - 1.9).abs() < 1e-9, "{inside:?}");
    }

    #[test]
    fn sampled_outer_function_changes_odds_when_chosen() {
        let middle = NestedCall { share: 0.5, sampled: 0.25, ..ALWAYS };
        let odds = Odds::outermost(0.0, 0);
        let halved = (0..4_000).filter(|_| odds.inside(middle).missed == 0.5).count();
        // The deviation is 27.
        assert!((850..1_150).contains(&halved), "{halved}");
    }
}
