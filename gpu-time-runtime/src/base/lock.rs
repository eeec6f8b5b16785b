//! How mutexes are locked: through the poison of a panic, and where nobody may wait for ever, by a deadline.

use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

/// Locks, through the poison that a panicking user thread may have left.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The same, unless somebody keeps it locked until the deadline.
pub(crate) fn locked_by<T>(mutex: &Mutex<T>, deadline: Instant) -> Option<MutexGuard<'_, T>> {
    const PAUSE: Duration = Duration::from_micros(50);
    loop {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return None,
        }
    }
}
