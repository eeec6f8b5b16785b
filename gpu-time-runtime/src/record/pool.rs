//! One thread's idle brackets.

use std::ptr;

use crate::gpu::{Fault, Gpu};
use crate::record::bracket::{Bracket, BracketSubject};

/// The maximum number of brackets per thread and context, idle or in use. The driver itself queues
/// about a thousand commands on a stream before it makes the caller wait.
pub(crate) const MAX_BRACKETS: usize = 2_048;

/// The number of brackets to create when the first one is needed: one batch, plus those closed
/// while the GPU is working on it.
const FIRST_ORDER: usize = 48;

/// Brackets, boxed because they go on to scopes and queues without being moved.
type Brackets<G> = Vec<Box<Bracket<G>>>;

/// Idle brackets by context. The most recently used bracket is on top, because it is still in the
/// caches.
pub(crate) struct Pools<G: Gpu>(Vec<ContextPool<G>>);

struct ContextPool<G: Gpu> {
    gpu: &'static G,
    idle: Brackets<G>,
    /// The number of this thread's brackets in this context: idle, in use or on order.
    made: usize,
}

impl<G: Gpu> Default for Pools<G> {
    fn default() -> Self {
        Pools(Vec::new())
    }
}

impl<G: Gpu> Pools<G> {
    /// Takes an idle bracket, if there is one, and assigns it the subject.
    #[inline(always)]
    pub fn take(
        &mut self,
        gpu: &'static G,
        subject: impl FnOnce() -> BracketSubject,
    ) -> Option<Box<Bracket<G>>> {
        let mut bracket = self.of(gpu).idle.pop()?;
        bracket.assign(subject());
        Some(bracket)
    }

    /// Returns the number of brackets to create when none is idle, or 0 at the limit. They count as
    /// made from now on.
    pub fn order(&mut self, gpu: &'static G) -> usize {
        let pool = self.of(gpu);
        // Double the pool, because the GPU's lag varies and small variations should not cause an
        // allocation each time.
        let ordered = pool.made.max(FIRST_ORDER).min(MAX_BRACKETS.saturating_sub(pool.made));
        pool.made += ordered;
        ordered
    }

    /// Adds the brackets created for an order. There may be fewer than ordered.
    pub fn supply(&mut self, gpu: &'static G, ordered: usize, new: Brackets<G>) {
        let pool = self.of(gpu);
        pool.made = pool.made.saturating_sub(ordered - new.len());
        // Reversed, so that they are used in the order in which they were created.
        pool.idle.extend(new.into_iter().rev());
        // Reserve space for all of them, so that `put` never allocates.
        pool.idle.reserve(pool.made.saturating_sub(pool.idle.len()));
    }

    /// Returns a bracket to the pool. It must be neither open nor pending.
    #[inline]
    pub fn put(&mut self, bracket: Box<Bracket<G>>) {
        self.of(bracket.gpu).idle.push(bracket);
    }

    /// Removes a bracket whose events return errors. The context may be gone.
    pub fn remove(&mut self, bracket: &Bracket<G>) {
        let pool = self.of(bracket.gpu);
        pool.made = pool.made.saturating_sub(1);
    }

    #[inline]
    fn of(&mut self, gpu: &'static G) -> &mut ContextPool<G> {
        let at = match self.0.iter().position(|pool| ptr::eq(pool.gpu, gpu)) {
            Some(at) => at,
            None => {
                // A program may create contexts over and over, so drop the pools of those that are
                // gone.
                self.0.retain(|pool| !pool.gpu.is_gone());
                self.0.push(ContextPool { gpu, idle: Vec::new(), made: 0 });
                self.0.len() - 1
            }
        };
        &mut self.0[at]
    }
}

/// Creates the ordered number of brackets, or fewer if the driver fails. Returns the fault if not
/// even one could be created.
///
/// The caller must not hold a recorder's lock, because the driver may be slow with many threads.
#[cold]
pub(crate) fn make<G: Gpu>(
    gpu: &'static G,
    ordered: usize,
    subject: BracketSubject,
) -> Result<Brackets<G>, Fault> {
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
    fn destroyed_contexts_leave_no_pools() {
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
        assert_eq!(pools.of(stays).made, FIRST_ORDER);
    }
}
