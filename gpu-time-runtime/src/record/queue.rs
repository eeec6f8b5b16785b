//! The queue in which threads leave launches without taking a lock.

pub(super) use crossbeam_queue::ArrayQueue;
