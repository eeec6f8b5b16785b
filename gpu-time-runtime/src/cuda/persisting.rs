//! Lines that the application has asked the L2 to keep, which no flush evicts.
//!
//! The driver can let them go (`cuCtxResetPersistingL2Cache`), but does so at once and not in the order of a
//! stream: work that is enqueued already would make them anew before the flush, and work that runs would
//! lose what it asked for. So they are looked for, and left alone.

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use cudarc::driver::sys::{CUcontext, CUlimit};

use crate::cuda::context_guard::{relaxed, with_current};
use crate::cuda::result::{check, raw};
use crate::cuda::stream_attribute::Attribute;
use crate::cuda::symbols::Symbols;
use crate::gpu::Fault;
use crate::types::handles::Stream;

/// So many sixteenths of the L2 driver 580 lets persisting lines take on an H200 where nobody has
/// asked for it. Programs that use such lines ask for more, or give a stream a window.
const USUAL_SIXTEENTHS: u64 = 3;
/// Programs ask for more once; so often it is looked whether they did.
const INTERVAL_NS: u64 = 100_000_000;
/// `CU_STREAM_ATTRIBUTE_ACCESS_POLICY_WINDOW`.
const WINDOW: c_int = 1;
/// `CU_ACCESS_PROPERTY_PERSISTING`.
const KEEP: c_int = 2;

/// The context whose L2 is asked about.
pub(super) struct L2<'a> {
    pub symbols: &'a Symbols,
    pub handle: usize,
    pub l2_bytes: u64,
}

/// What was seen of them in one context.
#[derive(Default)]
pub(super) struct Persisting {
    /// A flush met with more of the L2 set aside than the driver does by itself, or came after a call whose
    /// stream has a window. What that has brought in stays, whoever comes next.
    seen: AtomicBool,
    /// How much was set aside when somebody last asked, and when; asking costs microseconds.
    bytes: AtomicU64,
    asked_ns: AtomicU64,
}

impl Persisting {
    /// Whether there may be such lines, now that a call flushes on this stream.
    pub fn may_be_there(&self, at: &L2<'_>, stream: Stream) -> bool {
        let usual = at.l2_bytes / 16 * USUAL_SIXTEENTHS;
        let is_new =
            !self.seen.load(Relaxed) && (self.set_aside(at) > usual || has_window(at, stream));
        if is_new {
            self.seen.store(true, Relaxed);
        }
        is_new || self.seen.load(Relaxed)
    }

    pub fn warning(&self) -> Option<String> {
        self.seen.load(Relaxed).then(|| {
            "persisting lines of the application may be in the L2, which no flush evicts: `cold` calls \
             are `partial`"
                .to_owned()
        })
    }

    /// How much of the L2 may be set aside for persisting lines, as of a moment ago. Devices that know
    /// of none answer an error.
    fn set_aside(&self, at: &L2<'_>) -> u64 {
        let (now_ns, asked_ns) = (at.symbols.now_ns(), self.asked_ns.load(Relaxed));
        if asked_ns == 0 || now_ns.saturating_sub(asked_ns) > INTERVAL_NS {
            self.bytes.store(limit(at), Relaxed);
            self.asked_ns.store(now_ns.max(1), Relaxed);
        }
        self.bytes.load(Relaxed)
    }
}

fn limit(at: &L2<'_>) -> u64 {
    let Some(limit) = at.symbols.context_limit else { return 0 };
    let asked = inside(at.handle, || {
        let mut bytes = 0;
        // SAFETY: writes one integer.
        check(unsafe { limit(&raw mut bytes, CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE) })?;
        Ok(bytes as u64)
    });
    asked.unwrap_or(0)
}

/// Whether accesses of what is enqueued on the stream are to persist. Windows of single launches and hints
/// in a kernel's code nobody tells of.
fn has_window(at: &L2<'_>, stream: Stream) -> bool {
    let Some(attribute) = at.symbols.stream_attribute else { return false };
    let asked = inside(at.handle, || {
        let mut window = Attribute {
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
    asked.unwrap_or(false)
}

fn inside<R>(handle: usize, f: impl FnOnce() -> Result<R, Fault>) -> Result<R, Fault> {
    with_current(handle as CUcontext, || relaxed(f))
}
