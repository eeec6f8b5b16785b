//! Interning of work: equal kernels, copies and memsets share one description.

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::cupti::names;
use crate::cupti::records::{Shape, Work};
use crate::types::activity::GpuWork;

/// The maximum number of distinct kernels, whose descriptions are never freed. All others share
/// [`OTHER`].
const MOST: usize = 4_096;

/// The description of all kernels beyond [`MOST`].
static OTHER: LazyLock<GpuWork> =
    LazyLock::new(|| gpu_work("<other>".to_owned(), Shape::default()));

/// Every distinct piece of work seen so far, with at most [`MOST`] kernels.
#[derive(Debug, Default)]
pub(super) struct Interned {
    /// The number of each symbol, by which `kernels` refers to it. Has only the symbols of kernels
    /// in `kernels`.
    symbols: HashMap<Box<[u8]>, usize>,
    kernels: HashMap<(usize, Shape), &'static GpuWork>,
    /// The kernels of the current drain, by the address of their symbol, which is faster than a
    /// look-up by a long template name. After the drain, the same address may hold another symbol.
    recent: HashMap<(usize, Shape), &'static GpuWork>,
    /// Copies and memsets. There are only a few, one for each static description.
    memory: Vec<&'static GpuWork>,
}

impl Interned {
    /// Forgets the addresses of symbols. Must be called at the beginning of a drain.
    pub fn forget_addresses(&mut self) {
        self.recent.clear();
    }

    /// Returns the description of this work, which has the same address for equal work.
    pub fn get(&mut self, work: &Work) -> &'static GpuWork {
        match *work {
            Work::Kernel { name, shape } => {
                let key = (name.as_ptr().addr(), shape);
                if let Some(recent) = self.recent.get(&key) {
                    return recent;
                }
                let work = self.kernel(name.to_bytes(), shape);
                if self.recent.len() < MOST {
                    self.recent.insert(key, work);
                }
                work
            }
            Work::Memory(name) => self.memory(name),
        }
    }

    fn kernel(&mut self, symbol: &[u8], shape: Shape) -> &'static GpuWork {
        let number = self.symbols.get(symbol).copied();
        if let Some(known) = number.and_then(|number| self.kernels.get(&(number, shape))) {
            return known;
        }
        if self.kernels.len() >= MOST {
            return &OTHER;
        }
        let number = number.unwrap_or_else(|| {
            let number = self.symbols.len();
            self.symbols.insert(symbol.into(), number);
            number
        });
        let work = leaked(names::demangled(symbol), shape);
        self.kernels.insert((number, shape), work);
        work
    }

    fn memory(&mut self, name: &'static str) -> &'static GpuWork {
        if let Some(known) = self.memory.iter().find(|work| work.name == name) {
            return known;
        }
        let work = leaked(name.to_owned(), Shape::default());
        self.memory.push(work);
        work
    }
}

fn leaked(name: String, shape: Shape) -> &'static GpuWork {
    Box::leak(Box::new(gpu_work(name, shape)))
}

fn gpu_work(name: String, shape: Shape) -> GpuWork {
    let Shape { grid, block, registers, shared_bytes } = shape;
    GpuWork { name, grid, block, registers, shared_bytes }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::ptr;

    use super::*;

    fn kernel(name: &CStr, x: u32) -> Work<'_> {
        Work::Kernel { name, shape: Shape { grid: [x, 1, 1], ..Shape::default() } }
    }

    #[test]
    fn equal_work_has_one_address() {
        let mut interned = Interned::default();
        let copy = c"_Z4axpyIfEvPT_i".to_owned();
        let first = interned.get(&kernel(c"_Z4axpyIfEvPT_i", 1));
        assert_eq!((&*first.name, first.grid), ("void axpy<float>(float*, int)", [1, 1, 1]));
        assert!(ptr::eq(first, interned.get(&kernel(&copy, 1))));
        assert!(!ptr::eq(first, interned.get(&kernel(&copy, 2))));
        assert!(!ptr::eq(first, interned.get(&kernel(c"_Z4axpyIdEvPT_i", 1))));
        let memset = interned.get(&Work::Memory("[memset]"));
        assert!(ptr::eq(memset, interned.get(&Work::Memory("[memset]"))));
        assert_ne!(memset, interned.get(&Work::Memory("[copy HtoD]")));
    }

    #[test]
    fn address_of_another_symbol_is_noticed_in_the_next_drain() {
        let mut interned = Interned::default();
        let mut symbol = *b"one\0";
        let mut name_at_once = |symbol: &[u8]| {
            interned.forget_addresses();
            &*interned.get(&kernel(CStr::from_bytes_with_nul(symbol).unwrap(), 1)).name
        };
        assert_eq!(name_at_once(&symbol), "one");
        symbol = *b"two\0";
        assert_eq!(name_at_once(&symbol), "two");
    }

    #[test]
    fn work_beyond_the_bound_is_other() {
        let mut interned = Interned::default();
        let last = MOST as u32 - 1;
        let known: Vec<_> = (0..=last).map(|x| interned.get(&kernel(c"k", x))).collect();
        assert_eq!((&*known[last as usize].name, known[last as usize].grid[0]), ("k", last));
        for work in [kernel(c"k", last + 1), kernel(c"new", 0)] {
            assert_eq!(interned.get(&work).name, "<other>");
            assert!(ptr::eq(interned.get(&work), &raw const *OTHER));
        }
        assert!(ptr::eq(interned.get(&kernel(c"k", 0)), known[0]));
        assert_eq!(interned.get(&Work::Memory("[memset]")).name, "[memset]");
        assert_eq!((interned.symbols.len(), interned.kernels.len()), (1, MOST));
    }
}
