//! The last so many of things that are numbered as they come.

/// Invariant: its memory is taken once, and holds the things with the highest numbers.
pub(super) struct Ring<T> {
    items: Vec<T>,
    most: usize,
    /// The number of the first.
    first: u64,
    pushed: u64,
}

impl<T: Copy> Ring<T> {
    /// An empty one with room for `most`, at least one, and numbers from `first`.
    pub fn new(most: usize, first: u64) -> Self {
        let most = most.max(1);
        Ring { items: Vec::with_capacity(most), most, first, pushed: 0 }
    }

    /// Adds something in the place of the oldest, and gives its number.
    pub fn push(&mut self, item: T) -> u64 {
        let number = self.next();
        let at = self.at(number);
        match self.items.get_mut(at) {
            Some(oldest) => *oldest = item,
            None => self.items.push(item),
        }
        self.pushed += 1;
        number
    }

    /// The thing of this number, if it is still there.
    pub fn get_mut(&mut self, number: u64) -> Option<&mut T> {
        if !(self.oldest()..self.next()).contains(&number) {
            return None;
        }
        let at = self.at(number);
        self.items.get_mut(at)
    }

    /// Adds up to `most` things to `copies`, from this number on or the oldest that is left, each with
    /// its number. Answers the number to go on with.
    pub fn copy(&self, from: u64, most: usize, copies: &mut Vec<(u64, T)>) -> u64 {
        let from = from.max(self.oldest());
        let to = self.next().min(from + most as u64);
        let there =
            (from..to).filter_map(|number| Some((number, *self.items.get(self.at(number))?)));
        copies.extend(there);
        to
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// How many there ever were.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// The number of the next.
    pub fn next(&self) -> u64 {
        self.first + self.pushed
    }

    fn oldest(&self) -> u64 {
        self.next() - self.items.len() as u64
    }

    fn at(&self, number: u64) -> usize {
        ((number - self.first) % self.most as u64) as usize
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
    fn the_last_are_kept() {
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
    fn what_is_no_longer_there_is_not_taken_for_what_is() {
        let mut ring = Ring::new(2, 0);
        for number in 0..4 {
            ring.push(number);
        }
        assert_eq!(ring.get_mut(1), None);
        assert_eq!(ring.get_mut(2), Some(&mut 2));
        assert_eq!(ring.get_mut(4), None);
    }

    #[test]
    fn one_goes_on_with_the_numbers_of_another() {
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
    fn its_memory_is_taken_once() {
        let mut ring = Ring::new(100, 0);
        let before = ring.items.capacity();
        (0..1_000).for_each(|number| _ = ring.push(number));
        assert_eq!(ring.items.capacity(), before);
    }
}
