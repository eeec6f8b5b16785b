//! The idle brackets of one lane.

use std::ptr;

use crate::bracket::{Bracket, Subject};
use crate::gpu::{Fault, Gpu};

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
    /// A bracket for the subject, made if none is idle and the bound allows.
    #[inline]
    pub fn take(&mut self, gpu: &'static G, subject: Subject) -> Result<Box<Bracket<G>>, Fault> {
        let pool = self.of(gpu);
        if let Some(mut bracket) = pool.idle.pop() {
            bracket.renew(subject);
            return Ok(bracket);
        }
        pool.make(subject)
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
                self.0.push(Pool { gpu, idle: Vec::new(), made: 0 });
                self.0.len() - 1
            }
        };
        &mut self.0[at]
    }
}

impl<G: Gpu> Pool<G> {
    /// Makes brackets, and gives one of them.
    #[cold]
    fn make(&mut self, subject: Subject) -> Result<Box<Bracket<G>>, Fault> {
        if self.made >= MOST {
            return Err(Fault::Exhausted);
        }
        // As many again as there are: how far the GPU falls behind varies, and what varies a little
        // should not allocate again and again.
        for _ in 0..self.made.max(FEWEST).min(MOST - self.made) {
            match Bracket::new(self.gpu, subject) {
                Ok(bracket) => self.idle.push(bracket),
                Err(fault) if self.idle.is_empty() => return Err(fault),
                Err(_) => break,
            }
            self.made += 1;
        }
        // The first is used first, as long as none has come back.
        self.idle.reverse();
        // Room for all, so that coming back never allocates.
        self.idle.reserve(self.made);
        self.idle.pop().ok_or(Fault::Exhausted)
    }
}
