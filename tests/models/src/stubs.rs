//! Stubs for items that the copied files import but the models do not need.

pub mod base {
    pub mod increment {
        use crate::atomic::{AtomicU64, Ordering::Relaxed};

        /// Increments a counter. As in the runtime, the increment is not atomic for other threads.
        pub fn increment(counter: &AtomicU64) {
            counter.store(counter.load(Relaxed) + 1, Relaxed);
        }
    }

    pub mod lock {
        pub use std::sync::MutexGuard;

        pub enum Rank {
            Sampler,
            Warmups,
        }

        pub struct Mutex<T>(std::sync::Mutex<T>);

        impl<T> Mutex<T> {
            pub const fn new(_: Rank, value: T) -> Self {
                Mutex(std::sync::Mutex::new(value))
            }
        }

        pub fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
            mutex.0.lock().unwrap()
        }
    }
}

pub mod cuda {
    pub mod mapped {
        use crate::stubs::gpu::Fault;

        pub fn register() {}

        pub struct PagePool<T>(std::marker::PhantomData<T>);

        pub struct MappedPage<T> {
            pub page: T,
        }

        impl<T> PagePool<T> {
            pub const fn new() -> Self {
                PagePool(std::marker::PhantomData)
            }

            pub fn map(&self, _: fn(), new: impl FnOnce() -> T) -> Result<MappedPage<T>, Fault> {
                Ok(MappedPage { page: new() })
            }
        }

        impl<T> MappedPage<T> {
            pub fn address(&self) -> u64 {
                0
            }

            pub fn give_back(&self) {}
        }

        impl<T> std::ops::Deref for MappedPage<T> {
            type Target = T;

            fn deref(&self) -> &T {
                &self.page
            }
        }
    }

    pub mod module {
        use crate::stubs::gpu::Fault;
        use crate::stubs::types::handles::Stream;

        pub struct Module;

        #[derive(Clone, Copy)]
        pub struct LoadedKernel;

        pub struct Kernels {
            pub hold: LoadedKernel,
        }

        impl Module {
            pub fn kernels(&self) -> Result<Kernels, Fault> {
                Ok(Kernels { hold: LoadedKernel })
            }
        }

        impl LoadedKernel {
            pub unsafe fn launch<const N: usize>(
                self,
                _: Stream,
                _: (u32, u32),
                _: [u64; N],
            ) -> Result<(), Fault> {
                Ok(())
            }
        }
    }
}

pub mod cupti {
    pub mod session {
        pub const SUCCESS: std::ffi::c_int = 0;

        pub struct Session;

        impl Session {
            pub fn switch_callback_on(&self, _: u32) -> std::ffi::c_int {
                SUCCESS
            }
        }
    }
}

pub mod gpu {
    #[derive(Clone, Copy, Debug)]
    pub enum Fault {
        Exhausted,
    }

    impl std::fmt::Display for Fault {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("exhausted")
        }
    }

    #[derive(Debug)]
    pub struct StreamHold {
        pub slot: u32,
        pub ticket: u64,
    }

    #[derive(Clone, Copy, Debug)]
    pub struct HoldResult {
        pub slot: u32,
        pub ticket: u64,
    }
}

pub mod stats {
    pub mod sampling {
        use crate::stubs::types::sampling::Sampling;

        pub struct Population;

        impl Population {
            pub fn add_unasked(&mut self, _: u64) {}
        }

        pub struct Draw {
            pub weight: Option<f32>,
            pub skips: u64,
        }

        #[derive(Default)]
        pub struct Sampler;

        impl Sampler {
            pub const fn new() -> Self {
                Sampler
            }

            pub fn draw(&self, _: Sampling, _: u64) -> Draw {
                Draw { weight: None, skips: 0 }
            }

            pub fn cut(&self, _: u64) {}

            pub fn count(&self, _: f64) {}

            pub fn reweigh(&self, _: f64, _: f64) {}

            pub fn take_back(&self, _: f64) {}

            pub fn sampled(&self) -> u64 {
                0
            }

            pub fn population(&self, _: u64) -> Population {
                Population
            }
        }
    }
}

pub mod types {
    pub mod device {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum DeviceId {
            Cuda(u32),
            Unknown,
            Host,
        }
    }

    pub mod handles {
        #[derive(Clone, Copy, PartialEq)]
        pub struct Stream(pub usize);

        impl Stream {
            pub const PER_THREAD: Stream = Stream(2);

            pub fn is_per_thread(self) -> bool {
                false
            }

            pub fn is_legacy(self) -> bool {
                false
            }
        }
    }

    pub mod key {
        #[derive(PartialEq, Clone, Copy)]
        pub struct SeriesKey;

        impl SeriesKey {
            pub fn index(self) -> usize {
                0
            }
        }
    }

    pub mod sample {
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub enum Lost {
            Cancelled,
            Failed,
        }

        #[derive(Clone, Copy)]
        pub struct Sample;

        impl Sample {
            pub const NOTHING: Sample = Sample;

            pub fn add(&mut self, _: Sample) {}
        }
    }

    pub mod sampling {
        #[derive(Clone, Copy)]
        pub struct Sampling;
    }

    pub mod workload {
        #[derive(Clone, Copy)]
        pub struct Workload;
    }
}
