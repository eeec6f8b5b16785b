//! Random numbers that do not disturb the program's own generators.

use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};

use fastrand::Rng;

use crate::base::thread_id;

/// Returns a random generator that continues from the given state, or a newly seeded one if the
/// state is 0. The thread's global generator is not used: drawing from it would change the
/// program's own random sequence, and if the program seeded it, all threads would draw the same
/// values.
pub(crate) fn generator(state: u64) -> Rng {
    Rng::with_seed(match state {
        0 => RandomState::new().hash_one(thread_id::current()),
        state => state,
    })
}

/// Returns `true` with this probability, by a random generator of the thread.
pub(crate) fn happens(probability: f64) -> bool {
    thread_local! {
        static SEED: Cell<u64> = const { Cell::new(0) };
    }
    SEED.with(|seed| {
        let mut rng = generator(seed.get());
        let happens = rng.f64() < probability;
        seed.set(rng.get_seed());
        happens
    })
}
