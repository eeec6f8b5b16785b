//! The idle brackets of one lane.

use std::ptr;

use crate::gpu::{Fault, Gpu};
use crate::record::bracket::{Bracket, Subject};

/// Brackets that a lane may have at once in one context; the driver itself lets about a thousand
/// commands queue on a stream before it makes the caller wait.
pub(crate) const MOST: usize = 2_048;

/// How many are made when the first is needed: a batch, and what comes while the GPU works on that.
const FEWEST: usize = 48;

/// Idle brackets by context, the one used last on top, because it is still in the caches.
pub(crate) struct Pools<G: Gpu>(Vec<Pool<G>>);

struct Pool<G: Gpu> {
    gpu: &'static G,
    #[expect(clippy::vec_box, reason = "they go on to scopes and queues without being moved")]
    idle: Vec<Box<Bracket<G>>>,
    made: usize,
}

impl<G: Gpu> Default for Pools<G> {
    fn default() -> Self {
        Pools(Vec::new())
    }
}

impl<G: Gpu> Pools<G> {
    /// An idle bracket for the subject, if there is one.
    #[inline(always)]
    pub fn take(
        &mut self,
        gpu: &'static G,
        subject: impl FnOnce() -> Subject,
    ) -> Option<Box<Bracket<G>>> {
        let mut bracket = self.of(gpu).idle.pop()?;
        bracket.renew(subject());
        Some(bracket)
    }

    /// Where none is idle: how many are to be made, which count as made from here on; none where the bound
    /// is reached.
    pub fn order(&mut self, gpu: &'static G) -> usize {
        let pool = self.of(gpu);
        // As many again as there are: how far the GPU falls behind varies, and what varies a little
        // should not allocate again and again.
        let ordered = pool.made.max(FEWEST).min(MOST.saturating_sub(pool.made));
        pool.made += ordered;
        ordered
    }

    /// Takes in what was made of an order.
    #[expect(clippy::vec_box, reason = "they go on to scopes and queues without being moved")]
    pub fn supply(&mut self, gpu: &'static G, ordered: usize, new: Vec<Box<Bracket<G>>>) {
        let pool = self.of(gpu);
        pool.made = pool.made.saturating_sub(ordered - new.len());
        // The first is used first, as long as none has come back.
        pool.idle.extend(new.into_iter().rev());
        // Room for all, so that coming back never allocates.
        pool.idle.reserve(pool.made.saturating_sub(pool.idle.len()));
    }

    /// Takes back a bracket that is neither open nor pending any more.
    #[inline]
    pub fn put(&mut self, bracket: Box<Bracket<G>>) {
        self.of(bracket.gpu).idle.push(bracket);
    }

    /// Gives up a bracket whose events answer with errors: their context may be no more.
    pub fn forget(&mut self, bracket: &Bracket<G>) {
        let pool = self.of(bracket.gpu);
        pool.made = pool.made.saturating_sub(1);
    }

    #[inline]
    fn of(&mut self, gpu: &'static G) -> &mut Pool<G> {
        let at = match self.0.iter().position(|pool| ptr::eq(pool.gpu, gpu)) {
            Some(at) => at,
            None => {
                // A program may make contexts again and again: what those had that are gone serves nobody.
                self.0.retain(|pool| !pool.gpu.is_gone());
                self.0.push(Pool { gpu, idle: Vec::new(), made: 0 });
                self.0.len() - 1
            }
        };
        &mut self.0[at]
    }
}

/// Makes so many brackets, or fewer where the driver fails; a fault where it fails at the first. Who calls
/// has no lane locked: beside many threads, the driver may take its time.
#[cold]
#[expect(clippy::vec_box, reason = "they go on to scopes and queues without being moved")]
pub(crate) fn make<G: Gpu>(
    gpu: &'static G,
    ordered: usize,
    subject: Subject,
) -> Result<Vec<Box<Bracket<G>>>, Fault> {
    let mut new = Vec::with_capacity(ordered);
    for _ in 0..ordered {
        match Bracket::new(gpu, subject) {
            Ok(bracket) => new.push(bracket),
            Err(fault) if new.is_empty() => return Err(fault),
            Err(_) => break,
        }
    }
    Ok(new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gpu::fake::FakeGpu;

    #[test]
    fn contexts_that_are_gone_leave_nothing() {
        let mut pools = Pools::<FakeGpu>::default();
        let stays = FakeGpu::leak();
        pools.order(stays);
        for _ in 0..10 {
            let gpu = FakeGpu::leak();
            let ordered = pools.order(gpu);
            gpu.destroy();
            pools.supply(gpu, ordered, Vec::new());
            assert!(pools.0.len() <= 3, "{}", pools.0.len());
        }
        assert_eq!(pools.of(stays).made, FEWEST);
    }
}
