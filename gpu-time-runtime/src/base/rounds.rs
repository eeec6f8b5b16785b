//! Reads locked state in short rounds, and lets threads that wait for a lock take it in between.

use std::thread;
use std::time::Duration;

/// The pause after each round, in which a waiting thread can take its lock. Mutexes are not fair: if the
/// reader locked one again at once, another thread might wait until everything is read.
const PAUSE: Duration = Duration::from_micros(50);

/// Visits the items in rounds, and drops an item when `visit` returns `false` for it. Each visit should hold
/// the item's lock only for a bounded amount of work.
pub(crate) fn in_rounds<T>(items: Vec<T>, visit: impl FnMut(&mut T) -> bool) {
    in_rounds_with(items, visit, || thread::sleep(PAUSE));
}

fn in_rounds_with<T>(
    mut items: Vec<T>,
    mut visit: impl FnMut(&mut T) -> bool,
    mut pause: impl FnMut(),
) {
    loop {
        items.retain_mut(&mut visit);
        if items.is_empty() {
            return;
        }
        pause();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn no_item_is_visited_twice_between_pauses() {
        let log = RefCell::new(Vec::new());
        let items = vec![('a', 1), ('b', 3), ('c', 2)];
        let visit = |(name, left): &mut (char, u32)| {
            log.borrow_mut().push(*name);
            *left -= 1;
            *left > 0
        };
        in_rounds_with(items, visit, || log.borrow_mut().push('|'));
        assert_eq!(log.into_inner().iter().collect::<String>(), "abc|bc|b");
    }

    #[test]
    fn nothing_is_read_without_a_pause() {
        in_rounds_with(Vec::<()>::new(), |()| true, || panic!("a pause"));
    }
}
