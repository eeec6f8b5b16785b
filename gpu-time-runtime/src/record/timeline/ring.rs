//! A ring buffer of numbered items.

use std::collections::VecDeque;

/// The last `capacity` items, numbered in the order in which they were pushed.
///
/// Invariant: memory is allocated at most once. The ring contains the items with the highest numbers.
pub(super) struct Ring<T> {
    items: VecDeque<T>,
    capacity: usize,
    /// The number of the first item pushed.
    first: u64,
    /// The number of the next item.
    next: u64,
}

impl<T: Copy> Ring<T> {
    /// An empty ring, before any item is pushed.
    pub const EMPTY: Self = Ring { items: VecDeque::new(), capacity: 1, first: 0, next: 0 };

    /// Creates an empty ring with space for `capacity` items, at least one, numbered from `first`.
    pub fn new(capacity: usize, first: u64) -> Self {
        let capacity = capacity.max(1);
        Ring { items: VecDeque::with_capacity(capacity), capacity, first, next: first }
    }

    /// Creates an empty ring like [`new`](Self::new), but allocates its memory with the first item.
    pub fn unallocated(capacity: usize, first: u64) -> Self {
        Ring { capacity: capacity.max(1), first, next: first, ..Self::EMPTY }
    }

    /// Adds an item, dropping the oldest if the ring is full. Returns the number of the new item.
    pub fn push(&mut self, item: T) -> u64 {
        if self.items.len() == self.capacity {
            self.items.pop_front();
        } else if self.items.capacity() == 0 {
            self.items.reserve_exact(self.capacity);
        }
        self.items.push_back(item);
        self.next += 1;
        self.next - 1
    }

    /// Returns the item with this number, unless it was dropped.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        let at = number.checked_sub(self.oldest())?;
        self.items.get_mut(at as usize)
    }

    /// Appends up to `most` items to `copies`, each with its number, starting at `from` or at the
    /// oldest item. Returns the number at which to continue.
    pub fn copy(&self, from: u64, most: usize, copies: &mut Vec<(u64, T)>) -> u64 {
        let from = from.max(self.oldest());
        let items = self.items.iter().skip((from - self.oldest()) as usize).take(most);
        copies.extend((from..).zip(items.copied()));
        self.next.min(from + most as u64)
    }

    /// Returns the number of items in the ring.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Returns the number of items ever pushed.
    pub fn pushed(&self) -> u64 {
        self.next - self.first
    }

    /// Returns the number of the next item.
    pub fn next(&self) -> u64 {
        self.next
    }

    fn oldest(&self) -> u64 {
        self.next - self.items.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(ring: &Ring<u32>, from: u64) -> Vec<(u64, u32)> {
        let (mut copies, mut next) = (Vec::new(), from);
        while next < ring.next() {
            next = ring.copy(next, 2, &mut copies);
        }
        copies
    }

    #[test]
    fn newest_items_remain() {
        let mut ring = Ring::new(3, 0);
        assert_eq!(all(&ring, 0), []);
        for number in 0..8 {
            assert_eq!(ring.push(10 * number as u32), number);
        }
        assert_eq!(all(&ring, 0), [(5, 50), (6, 60), (7, 70)]);
        assert_eq!(all(&ring, 6), [(6, 60), (7, 70)]);
        assert_eq!((ring.len(), ring.pushed()), (3, 8));
    }

    #[test]
    fn overwritten_item_is_not_found() {
        let mut ring = Ring::new(2, 0);
        for number in 0..4 {
            ring.push(number);
        }
        assert_eq!(ring.get_mut(1), None);
        assert_eq!(ring.get_mut(2), Some(&mut 2));
        assert_eq!(ring.get_mut(4), None);
    }

    #[test]
    fn numbers_continue_from_another_ring() {
        let mut ring = Ring::new(3, 7);
        assert_eq!(ring.get_mut(6), None);
        assert_eq!(ring.get_mut(7), None);
        for number in 7..11 {
            assert_eq!(ring.push(number as u32), number);
        }
        assert_eq!(all(&ring, 0), [(8, 8), (9, 9), (10, 10)]);
        assert_eq!(ring.get_mut(7), None);
        assert_eq!(ring.get_mut(8), Some(&mut 8));
        assert_eq!((ring.pushed(), ring.next()), (4, 11));
    }

    #[test]
    fn memory_is_allocated_once() {
        let mut ring = Ring::new(100, 0);
        let before = ring.items.capacity();
        (0..1_000).for_each(|number| _ = ring.push(number));
        assert_eq!(ring.items.capacity(), before);
    }

    #[test]
    fn unallocated_ring_gets_its_memory_with_the_first_item() {
        let mut ring = Ring::unallocated(100, 7);
        assert_eq!((ring.items.capacity(), all(&ring, 0)), (0, vec![]));
        assert_eq!(ring.push(0), 7);
        let first = ring.items.capacity();
        assert!(first >= 100);
        (0..1_000).for_each(|number| _ = ring.push(number));
        assert_eq!((ring.items.capacity(), ring.len()), (first, 100));
    }
}
