//! Pages of host memory that are mapped into a context, so that the GPU can read and write them,
//! and a pool for their reuse.
//!
//! The runtime allocates the pages and registers them with the driver. Memory allocated by the
//! driver would be freed together with the context, but another thread may still write to a page
//! after that, to release a hold. Pages are therefore never freed. When a context has been
//! destroyed, its pages return to their pool for the next context, because a program may create
//! contexts again and again.

use std::ffi::c_void;
use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use cudarc::driver::sys::{
    self, CU_MEMHOSTREGISTER_DEVICEMAP, CU_MEMHOSTREGISTER_PORTABLE, CUdeviceptr, CUresult,
};

use crate::base::lock::{Mutex, Rank, locked};
use crate::cuda::result::check;
use crate::gpu::Fault;

const ALREADY_REGISTERED: Fault =
    Fault::Code(CUresult::CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED as u32);

/// The pages of one kind that no context uses.
///
/// The driver locks whole pages, so `T` should fill whole pages. A thread may still use a page for
/// a destroyed context when the next context already has it. The contents must therefore be
/// accessed only through atomics, and `T` must bound the effect of such a late access on the new
/// context.
pub(super) struct PagePool<T: 'static> {
    idle: Mutex<Vec<&'static T>>,
}

/// A page mapped into one context.
pub(super) struct MappedPage<T: Sync + 'static> {
    page: &'static T,
    pool: &'static PagePool<T>,
    address: CUdeviceptr,
    is_given_back: AtomicBool,
}

impl<T: Sync> PagePool<T> {
    pub const fn new() -> PagePool<T> {
        PagePool { idle: Mutex::new(Rank::Pages, Vec::new()) }
    }

    /// Maps an idle page into the current context, or a page made by `new` if none is idle.
    /// `register` is [`register`], except in tests.
    pub fn map(
        &'static self,
        register: impl Fn(&'static T) -> Result<CUdeviceptr, Fault>,
        new: impl FnOnce() -> T,
    ) -> Result<MappedPage<T>, Fault> {
        let mut refused = Vec::new();
        let (page, address) = loop {
            let idle = locked(&self.idle).pop();
            let page = match idle {
                Some(page) => page,
                None => break (Box::leak(Box::new(new())) as &'static T, None),
            };
            match register(page) {
                // The previous context of the page has failed or is being destroyed, and the page
                // is still registered with it.
                Err(ALREADY_REGISTERED) => refused.push(page),
                answer => break (page, Some(answer)),
            }
        };
        locked(&self.idle).append(&mut refused);
        match address.unwrap_or_else(|| register(page)) {
            Ok(address) => {
                Ok(MappedPage { page, pool: self, address, is_given_back: AtomicBool::new(false) })
            }
            Err(fault) => {
                locked(&self.idle).push(page);
                Err(fault)
            }
        }
    }
}

impl<T: Sync> MappedPage<T> {
    /// Returns the page's device address.
    pub fn address(&self) -> CUdeviceptr {
        self.address
    }

    /// Returns the page to its pool. Further calls do nothing. Must be called only after the
    /// context has been destroyed: the GPU then no longer writes to the page, and the page is no
    /// longer registered.
    pub fn give_back(&self) {
        if !self.is_given_back.swap(true, Relaxed) {
            locked(&self.pool.idle).push(self.page);
        }
    }
}

impl<T: Sync> Deref for MappedPage<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.page
    }
}

/// Returns the page to the pool if the context could not be set up.
impl<T: Sync> Drop for MappedPage<T> {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Registers a page with the current context and returns its device address.
pub(super) fn register<T: Sync>(page: &'static T) -> Result<CUdeviceptr, Fault> {
    let host = ptr::from_ref(page).cast_mut().cast::<c_void>();
    let flags = CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP;
    // SAFETY: the memory has `size_of::<T>()` bytes, is never freed, and is accessed only through
    // atomics.
    check(unsafe { sys::cuMemHostRegister_v2(host, size_of::<T>(), flags) })?;
    let mut address: CUdeviceptr = 0;
    // SAFETY: `host` was registered as mapped memory; writes one address.
    check(unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut address, host, 0) }).inspect_err(
        |_| {
            // SAFETY: `host` was registered above, and the GPU does not know its address.
            _ = check(unsafe { sys::cuMemHostUnregister(host) });
        },
    )?;
    Ok(address)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn pool() -> &'static PagePool<u64> {
        Box::leak(Box::new(PagePool::new()))
    }

    #[test]
    fn pages_of_destroyed_contexts_are_reused() {
        let (pool, made) = (pool(), Cell::new(0));
        let map = || {
            let new = || {
                made.set(made.get() + 1);
                0
            };
            pool.map(|_| Ok(4_096), new).unwrap()
        };
        for _ in 0..10_000 {
            let (holds, lines) = (map(), map());
            holds.give_back();
            holds.give_back();
            drop((holds, lines));
        }
        assert_eq!((made.get(), locked(&pool.idle).len()), (2, 2));
    }

    #[test]
    fn page_that_is_still_registered_is_passed_over() {
        let pool = pool();
        let first = pool.map(|_| Ok(4_096), || 1).unwrap();
        first.give_back();
        let refuse_first = |page: &'static u64| match page {
            1 => Err(ALREADY_REGISTERED),
            _ => Ok(8_192),
        };
        let second = pool.map(refuse_first, || 2).unwrap();
        assert_eq!((*second, second.address()), (2, 8_192));
        assert_eq!(*locked(&pool.idle), [&1]);
    }

    #[test]
    fn failed_registration_keeps_the_page_for_the_next_context() {
        let pool = pool();
        let fail = |_: &'static u64| Err(Fault::ContextGone);
        assert_eq!(pool.map(fail, || 1).err(), Some(Fault::ContextGone));
        assert_eq!(pool.map(fail, || 2).err(), Some(Fault::ContextGone));
        assert_eq!(*pool.map(|_| Ok(4_096), || 3).unwrap(), 1);
    }
}
