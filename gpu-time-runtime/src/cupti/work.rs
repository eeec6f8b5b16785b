//! Interning of work: equal kernels, copies and memsets share one description.

use std::collections::HashMap;

use crate::cupti::names;
use crate::cupti::records::{RecordedWork, Shape};
use crate::types::activity::GpuWork;
use gpu_time_report as report;

/// The maximum number of distinct pairs of a kernel and its [`Shape`]. Their descriptions are never
/// freed. Beyond it, all shapes of a kernel share one description.
const MAX_SHAPES: usize = 4_096;
/// The maximum number of descriptions of kernels. All kernels beyond it share [`OTHER`].
const MAX_KERNELS: usize = 2 * MAX_SHAPES;

/// The description of all kernels beyond [`MAX_KERNELS`].
static OTHER: GpuWork = GpuWork::shapeless(report::Kernel::OTHER);

/// Every distinct piece of work seen so far, with at most [`MAX_KERNELS`] descriptions of kernels.
#[derive(Debug, Default)]
pub(super) struct InternedWork {
    /// The demangled name of each symbol. `kernels` refers to a name by its address. Has only the symbols of
    /// kernels in `kernels`.
    symbols: HashMap<Box<[u8]>, &'static str>,
    kernels: HashMap<(usize, Shape), &'static GpuWork>,
    /// The kernels of the current drain, by the address of their symbol, which is faster than a
    /// look-up by a long template name. After the drain, the same address may hold another symbol.
    recent: HashMap<(usize, Shape), &'static GpuWork>,
    /// Copies and memsets. There are only a few, one for each static description.
    memory: Vec<&'static GpuWork>,
}

impl InternedWork {
    /// Forgets the addresses of symbols. Must be called at the beginning of a drain.
    pub fn forget_addresses(&mut self) {
        self.recent.clear();
    }

    /// Returns the description of this work, which has the same address for equal work.
    pub fn get(&mut self, work: &RecordedWork) -> &'static GpuWork {
        match *work {
            RecordedWork::Kernel { name, shape } => {
                let key = (name.as_ptr().addr(), shape);
                if let Some(recent) = self.recent.get(&key) {
                    return recent;
                }
                let work = self.kernel(name.to_bytes(), shape);
                if self.recent.len() < MAX_KERNELS {
                    self.recent.insert(key, work);
                }
                work
            }
            RecordedWork::Memory(name) => self.memory(name),
        }
    }

    fn kernel(&mut self, symbol: &[u8], shape: Shape) -> &'static GpuWork {
        if let Some(known) = self.known(symbol, shape) {
            return known;
        }
        let shape = if self.kernels.len() < MAX_SHAPES { shape } else { Shape::default() };
        if let Some(known) = self.known(symbol, shape) {
            return known;
        }
        if self.kernels.len() >= MAX_KERNELS {
            return &OTHER;
        }
        let name = self.symbols.get(symbol).copied().unwrap_or_else(|| {
            let name = names::demangled(symbol).leak();
            self.symbols.insert(symbol.into(), name);
            name
        });
        let Shape { grid, block, registers, shared_bytes } = shape;
        let work = GpuWork { grid, block, registers, shared_bytes, ..GpuWork::shapeless(name) };
        let work = leaked(work);
        self.kernels.insert((name.as_ptr().addr(), shape), work);
        work
    }

    fn known(&self, symbol: &[u8], shape: Shape) -> Option<&'static GpuWork> {
        let name = self.symbols.get(symbol)?;
        self.kernels.get(&(name.as_ptr().addr(), shape)).copied()
    }

    fn memory(&mut self, name: &'static str) -> &'static GpuWork {
        if let Some(known) = self.memory.iter().find(|work| work.name == name) {
            return known;
        }
        let work = leaked(GpuWork { is_kernel: false, ..GpuWork::shapeless(name) });
        self.memory.push(work);
        work
    }
}

fn leaked(work: GpuWork) -> &'static GpuWork {
    Box::leak(Box::new(work))
}

#[cfg(test)]
mod tests {
    use std::ffi::{CStr, CString};
    use std::ptr;

    use super::*;

    fn kernel(name: &CStr, x: u32) -> RecordedWork<'_> {
        RecordedWork::Kernel { name, shape: Shape { grid: [x, 1, 1], ..Shape::default() } }
    }

    #[test]
    fn equal_work_has_one_address() {
        let mut interned = InternedWork::default();
        let copy = c"_Z4axpyIfEvPT_i".to_owned();
        let first = interned.get(&kernel(c"_Z4axpyIfEvPT_i", 1));
        assert_eq!((first.name, first.grid), ("void axpy<float>(float*, int)", [1, 1, 1]));
        assert!(ptr::eq(first, interned.get(&kernel(&copy, 1))));
        assert!(!ptr::eq(first, interned.get(&kernel(&copy, 2))));
        assert!(!ptr::eq(first, interned.get(&kernel(c"_Z4axpyIdEvPT_i", 1))));
        let memset = interned.get(&RecordedWork::Memory("[memset]"));
        assert!(ptr::eq(memset, interned.get(&RecordedWork::Memory("[memset]"))));
        assert_ne!(memset, interned.get(&RecordedWork::Memory("[copy HtoD]")));
    }

    #[test]
    fn reused_symbol_address_is_noticed_in_next_drain() {
        let mut interned = InternedWork::default();
        let mut symbol = *b"one\0";
        let mut name_at_once = |symbol: &[u8]| {
            interned.forget_addresses();
            interned.get(&kernel(CStr::from_bytes_with_nul(symbol).unwrap(), 1)).name
        };
        assert_eq!(name_at_once(&symbol), "one");
        symbol = *b"two\0";
        assert_eq!(name_at_once(&symbol), "two");
    }

    #[test]
    fn shapes_beyond_the_bound_are_one() {
        let mut interned = InternedWork::default();
        let last = MAX_SHAPES as u32;
        let known: Vec<_> = (1..=last).map(|x| interned.get(&kernel(c"k", x))).collect();
        assert_eq!((known[0].name, known[last as usize - 1].grid[0]), ("k", last));
        let [shapeless, new] = [c"k", c"new"].map(|name| interned.get(&kernel(name, last + 1)));
        for (work, name) in [(shapeless, "k"), (new, "new")] {
            assert_eq!((work.name, work.grid, work.is_kernel), (name, [0; 3], true));
        }
        assert!(ptr::eq(interned.get(&kernel(c"k", last + 2)), shapeless));
        assert!(ptr::eq(interned.get(&kernel(c"k", 1)), known[0]));
    }

    #[test]
    fn kernels_beyond_the_bound_are_other() {
        let mut interned = InternedWork::default();
        for number in 0..MAX_KERNELS {
            let name = CString::new(format!("k{number}")).unwrap();
            interned.forget_addresses();
            assert_eq!(interned.get(&kernel(&name, 1)).name.as_bytes(), name.as_bytes());
        }
        interned.forget_addresses();
        let other = interned.get(&kernel(c"new", 1));
        assert_eq!((other.name, other.is_kernel), (report::Kernel::OTHER, true));
        assert!(ptr::eq(interned.get(&kernel(c"newer", 2)), other));
        let memset = interned.get(&RecordedWork::Memory("[memset]"));
        assert_eq!((memset.name, memset.is_kernel), ("[memset]", false));
        assert_eq!((interned.symbols.len(), interned.kernels.len()), (MAX_KERNELS, MAX_KERNELS));
    }
}
