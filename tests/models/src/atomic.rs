//! Loom's atomics, with a `const` constructor.

use std::sync::OnceLock;

pub use loom::sync::atomic::{Ordering, fence};

macro_rules! atomic {
    ($($name:ident: $value:ty),+) => {$(
        /// Creates loom's atomic on the first access, which must happen before all other accesses;
        /// otherwise, loom panics. Boxed, because the stacks of loom's threads are small.
        #[derive(Default)]
        pub struct $name {
            initial: $value,
            made: OnceLock<Box<loom::sync::atomic::$name>>,
        }

        impl $name {
            pub const fn new(initial: $value) -> Self {
                $name { initial, made: OnceLock::new() }
            }
        }

        impl std::ops::Deref for $name {
            type Target = loom::sync::atomic::$name;

            fn deref(&self) -> &Self::Target {
                self.made.get_or_init(|| Box::new(loom::sync::atomic::$name::new(self.initial)))
            }
        }
    )+};
}

atomic!(AtomicBool: bool, AtomicU8: u8, AtomicU32: u32, AtomicU64: u64, AtomicUsize: usize);
