//! Detection of persisting lines: those that the application asked the L2 to keep, and that no
//! flush evicts.
//!
//! The driver can reset such lines (`cuCtxResetPersistingL2Cache`), but does so at once and not in
//! the order of a stream: work that is enqueued already would create new ones before the flush, and
//! work that runs would lose what it asked for. So they are only detected.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use cudarc::driver::sys::CUlimit;

use crate::cuda::context_guard::inside;
use crate::cuda::result::{check, raw};
use crate::cuda::symbols::{StreamAttribute, Symbols};
use crate::types::handles::Stream;

/// The sixteenths of the L2 that driver 580 sets aside for persisting lines on an H200 by default.
/// Programs that use such lines ask for more, or give a stream a window.
const USUAL_SIXTEENTHS: u64 = 3;
/// Interval at which the driver is asked for the share that is set aside. Programs change it once.
const INTERVAL_NS: u64 = 100_000_000;
/// `CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW`.
const WINDOW: c_int = 1;
/// `CU_ACCESS_PROPERTY_PERSISTING`.
const KEEP: c_int = 2;

/// The evidence of persisting lines in one context.
pub(super) struct PersistingLines {
    symbols: &'static Symbols,
    handle: usize,
    l2_bytes: u64,
    /// At some flush, more of the L2 was set aside than the driver does by itself, or the stream
    /// had a window. The persisting lines from then may still be in the L2.
    seen: AtomicBool,
    /// The bytes that were set aside when the driver was last asked, and when that was. Asking
    /// costs microseconds.
    bytes: AtomicU64,
    asked_ns: AtomicU64,
}

impl PersistingLines {
    /// Asks nothing yet. `handle` is that of the context.
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

    /// Returns `true` if there may be persisting lines, now that a call flushes on this stream.
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

    /// Returns the bytes of the L2 that may be set aside for persisting lines, as of a moment ago.
    /// Devices without such lines answer with an error, which counts as 0.
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

    /// Returns `true` if the stream has a window whose accesses persist. There is no way to ask about
    /// windows of single launches, or about hints in a kernel's code.
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
