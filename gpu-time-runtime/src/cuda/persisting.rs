//! Detects persisting lines: lines that the application asked the L2 to keep, and that no flush
//! evicts.
//!
//! The runtime does not reset them. `cuCtxResetPersistingL2Cache` takes effect immediately rather
//! than in stream order: work already enqueued would create new persisting lines before the flush,
//! and running work would lose the lines that it asked to keep.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use cudarc::driver::sys::CUlimit;

use crate::cuda::context_guard::inside;
use crate::cuda::result::{check, raw};
use crate::cuda::symbols::{StreamAttribute, Symbols};
use crate::types::handles::Stream;

/// The share of the L2, in sixteenths, that driver 580 reserves for persisting lines on an H200 by
/// default. Programs that use such lines reserve more, or set an access policy window on a stream.
const USUAL_SIXTEENTHS: u64 = 3;
/// The interval at which the driver is queried for the reserved size. Programs usually change it
/// once.
const INTERVAL_NS: u64 = 100_000_000;
/// `CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW`.
const WINDOW: c_int = 1;
/// `CU_ACCESS_PROPERTY_PERSISTING`.
const KEEP: c_int = 2;

/// Signs of persisting lines in one context.
pub(super) struct PersistingLines {
    symbols: &'static Symbols,
    handle: usize,
    l2_bytes: u64,
    /// Set once a flush finds more of the L2 reserved than the driver's default, or a window on its
    /// stream. Never reset, because the persisting lines may still be in the L2.
    seen: AtomicBool,
    /// The number of bytes reserved according to the last query, and the time of that query. Cached
    /// because a query takes microseconds.
    bytes: AtomicU64,
    asked_ns: AtomicU64,
}

impl PersistingLines {
    /// Creates a detector without querying the driver. `handle` is the context's handle.
    pub fn new(symbols: &'static Symbols, handle: usize, l2_bytes: u64) -> PersistingLines {
        PersistingLines {
            symbols,
            handle,
            l2_bytes,
            seen: AtomicBool::new(false),
            bytes: AtomicU64::new(0),
            asked_ns: AtomicU64::new(0),
        }
    }

    /// Returns `true` if persisting lines may survive a flush that is enqueued now on this stream.
    pub fn may_exist(&self, stream: Stream) -> bool {
        let usual = self.l2_bytes / 16 * USUAL_SIXTEENTHS;
        let is_new =
            !self.seen.load(Relaxed) && (self.set_aside() > usual || self.has_window(stream));
        if is_new {
            self.seen.store(true, Relaxed);
        }
        is_new || self.seen.load(Relaxed)
    }

    pub fn warning(&self) -> Option<String> {
        self.seen.load(Relaxed).then(|| {
            "persisting lines of the application may be in the L2, which no flush evicts: `cold` \
             calls are `partial`"
                .to_owned()
        })
    }

    /// Returns the number of L2 bytes reserved for persisting lines, at most [`INTERVAL_NS`] old.
    /// On devices without such lines, the driver returns an error, which counts as 0.
    fn set_aside(&self) -> u64 {
        let (now_ns, asked_ns) = (self.symbols.now_ns(), self.asked_ns.load(Relaxed));
        if asked_ns == 0 || now_ns.saturating_sub(asked_ns) > INTERVAL_NS {
            self.bytes.store(self.limit(), Relaxed);
            self.asked_ns.store(now_ns.max(1), Relaxed);
        }
        self.bytes.load(Relaxed)
    }

    fn limit(&self) -> u64 {
        let Some(limit) = self.symbols.context_limit else { return 0 };
        let bytes = inside(self.handle, || {
            let mut bytes = 0;
            // SAFETY: writes one integer.
            check(unsafe { limit(&raw mut bytes, CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE) })?;
            Ok(bytes as u64)
        });
        bytes.unwrap_or(0)
    }

    /// Returns `true` if the stream has an access policy window with persisting hits. Windows set
    /// for a single launch, and cache hints in a kernel's code, cannot be queried.
    fn has_window(&self, stream: Stream) -> bool {
        let Some(attribute) = self.symbols.stream_attribute else { return false };
        let has_window = inside(self.handle, || {
            let mut window = StreamAttribute {
                base: std::ptr::null_mut(),
                bytes: 0,
                hit_ratio: 0.0,
                hit: 0,
                miss: 0,
                rest: [0; 16],
            };
            // SAFETY: the stream is live; writes one attribute.
            check(unsafe { attribute(raw(stream), WINDOW, &raw mut window) })?;
            Ok(window.bytes > 0 && window.hit == KEEP && window.hit_ratio > 0.0)
        });
        has_window.unwrap_or(false)
    }
}
