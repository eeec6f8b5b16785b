//! The call site for one annotated function.

#[cfg(feature = "nvtx")]
use std::ffi::{CStr, CString};
use std::sync::OnceLock;
use std::sync::atomic::{
    AtomicU8, AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};

use crate::base::lock::{Mutex, MutexGuard, Rank, locked};
use crate::site::cost::{self, CostMeter};
use crate::site::counters::{CallCounters, Warmups};
use crate::site::series_id::{SeriesCell, SeriesId, SeriesIdentity};
use crate::site::trials::Trials;
use crate::stats::effect::LEFT_ALONE;
use crate::stats::{hold_deadline::HoldDeadline, sampling::CurrentRate, series::SeriesData};
use crate::types::attribute::{Clock, Cold, Hold, Spec};
use crate::types::sampling::Sampling;
use crate::types::settings::Settings;
use crate::types::{device::DeviceId, key::Keys, label::label};

/// One annotated function: its attribute, its settings and its series.
///
/// Generated code declares it as a `static`, so a call needs no lookup. The first call registers
/// and configures it. It is reconfigured when the program changes the configuration.
#[repr(C)] // the fields that every call reads come first, in one cache line
pub struct CallSite {
    /// 1-based index in the registry; 0 if unregistered.
    id: AtomicU32,
    interest: AtomicU8,
    pub(crate) rate: CurrentRate,
    pub(crate) spec: Spec,
    /// The [`Settings`], packed.
    settings: AtomicU64,
    warmup: AtomicU32,
    name: OnceLock<String>,
    #[cfg(feature = "nvtx")]
    c_name: OnceLock<CString>,
    /// Counters for calls on threads without their own counters for this site, such as threads that
    /// are exiting.
    shared_counters: OnceLock<Mutex<CallCounters>>,
    /// All series, under one lock.
    series: Mutex<Vec<SeriesCell>>,
    pub(crate) warmups: Warmups,
    hold_deadline: Mutex<HoldDeadline>,
    /// Set to `true` if captured launches get timing nodes.
    nodes: OnceLock<bool>,
    /// Skipped calls that interrupted the runtime on a thread without counters.
    pub(crate) skipped_inside: AtomicU64,
    /// Timed calls whose `bytes` or `flops` were invalid.
    pub(crate) invalid_workloads: AtomicU64,
    /// The type of a stream that may return any handle.
    pub(crate) unknown_stream: OnceLock<&'static str>,
    pub(crate) keys: Keys,
    pub(crate) cost: CostMeter,
    pub(crate) trials: Trials,
}

/// The configuration of one site.
pub(crate) struct SiteConfig {
    pub on: bool,
    pub warmup: u32,
    pub cold: Option<Cold>,
    pub hold: Option<Hold>,
    /// Calls in phases are opened.
    pub is_recorded: bool,
    pub sampling: Sampling,
    /// Only some calls are timed, or a budget may reduce the number of timed calls.
    pub is_sampled: bool,
}

// Values of `interest`, the part of the timing decision that depends only on the configuration.
const UNKNOWN: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;
/// With `ON`: the site has no `warmup`, `cold`, `sleep` or `graph`.
const PLAIN: u8 = 4;
/// With `ON`: only some calls are timed.
const SAMPLED: u8 = 8;
/// With `ON`: calls in phases are opened.
const OPENED: u8 = 16;
/// With `OPENED`: the next timed call is opened as the first one, in a phase or not.
const OPENED_FIRST: u8 = 32;
/// The first timed call has been or will be opened.
const HAS_FIRST: u8 = 64;

impl CallSite {
    /// Creates a site that has not been called yet.
    pub const fn new(spec: Spec) -> Self {
        CallSite {
            id: AtomicU32::new(0),
            interest: AtomicU8::new(UNKNOWN),
            rate: CurrentRate::new(),
            spec,
            settings: AtomicU64::new(Settings::NONE),
            warmup: AtomicU32::new(0),
            name: OnceLock::new(),
            #[cfg(feature = "nvtx")]
            c_name: OnceLock::new(),
            shared_counters: OnceLock::new(),
            series: Mutex::new(Rank::Series, Vec::new()),
            warmups: Warmups::new(),
            hold_deadline: Mutex::new(Rank::HoldDeadline, HoldDeadline::new()),
            nodes: OnceLock::new(),
            skipped_inside: AtomicU64::new(0),
            invalid_workloads: AtomicU64::new(0),
            unknown_stream: OnceLock::new(),
            keys: Keys::new(),
            cost: CostMeter::new(),
            trials: Trials::new(),
        }
    }

    /// Returns the 1-based index in the registry; 0 if unregistered.
    #[inline(always)]
    pub(crate) fn id(&self) -> u32 {
        self.id.load(Relaxed)
    }

    pub(crate) fn set_id(&self, id: u32) {
        self.id.store(id, Relaxed);
    }

    /// Returns `true` if calls are timed. `false` until the site is configured.
    #[inline(always)]
    pub(crate) fn is_on(&self) -> bool {
        // Pairs with the store in `configure`, which makes the id and the settings visible as well.
        self.interest.load(Acquire) & ON != 0
    }

    /// Returns `true` once the site is configured, by its first call.
    #[inline(always)]
    pub(crate) fn is_configured(&self) -> bool {
        self.interest.load(Acquire) != UNKNOWN
    }

    /// Returns `true` if the site has no `warmup`, `cold`, `sleep` or `graph`, so its settings need
    /// not be read.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.interest.load(Relaxed) & PLAIN != 0
    }

    /// Returns `true` if only some calls are timed.
    #[inline(always)]
    pub(crate) fn is_sampled(&self) -> bool {
        self.interest.load(Relaxed) & SAMPLED != 0
    }

    /// Returns `true` if calls in phases are opened. Reads the same atomic as [`is_on`](Self::is_on).
    #[inline(always)]
    pub(crate) fn is_opened(&self) -> bool {
        cfg!(feature = "kernels") && self.interest.load(Relaxed) & OPENED != 0
    }

    /// Returns `true` if the function needs records, because there is no other source of its times.
    pub(crate) fn needs_records(&self) -> bool {
        self.spec.clock == Clock::Kernels
    }

    /// Returns `true` if events time the function, outside of phases.
    pub(crate) fn needs_events(&self) -> bool {
        matches!(self.spec.clock, Clock::Events | Clock::Sync)
    }

    /// Returns `true` if the first timed call is opened outside of phases, and this is it. If the call cannot be
    /// opened, [`opens_next`](Self::opens_next) must follow.
    pub(crate) fn opens_first(&self) -> bool {
        self.interest.load(Relaxed) & OPENED_FIRST != 0
            && self.interest.fetch_and(!OPENED_FIRST, Relaxed) & OPENED_FIRST != 0
    }

    /// Returns `true` if the first call was opened.
    pub(crate) fn was_opened(&self) -> bool {
        self.interest.load(Relaxed) & (HAS_FIRST | OPENED_FIRST) == HAS_FIRST
    }

    /// Lets the next timed call be opened instead of the first one, unless no call is opened any more.
    pub(crate) fn opens_next(&self) {
        let opens = |interest: u8| {
            let has_first = interest & OPENED != 0 && interest & HAS_FIRST != 0;
            has_first.then_some(interest | OPENED_FIRST)
        };
        // Pairs with the load in `is_on`, like the store in `configure`, whose order it must keep.
        _ = self.interest.fetch_update(AcqRel, Relaxed, opens);
    }

    /// Returns the fraction of calls that is timed now.
    pub(crate) fn timed_share(&self) -> f64 {
        let is_compared = cost::is_on() && self.trials.known().unit.is_some();
        self.rate.get().rate() * if is_compared { 1.0 - LEFT_ALONE } else { 1.0 }
    }

    /// Sets the fraction of calls to time.
    pub(crate) fn set_rate(&self, rate: f64) {
        if let Some(sampling) = Sampling::of_share(rate) {
            self.rate.set(sampling);
        }
    }

    /// Sets which calls are timed, and how.
    pub(crate) fn configure(&self, config: SiteConfig) {
        let settings = Settings {
            cold: config.cold,
            // With `clock = "sync"`, a barrier would wait for the kernel that holds the stream. An
            // async function would hold the stream across an await.
            hold: config.hold.filter(|_| !self.spec.is_async && self.spec.clock == Clock::Events),
        };
        self.warmup.store(config.warmup, Relaxed);
        self.settings.store(settings.pack(), Relaxed);
        let is_plain = config.warmup == 0 && settings == Settings::default() && !self.spec.graph;
        self.rate.set(config.sampling);
        self.rate.renew();
        let has_first = config.is_recorded && self.needs_records();
        let with = |flag: u8, is_set: bool| if is_set { flag } else { 0 };
        let interest = |before: u8| {
            // An unrelated change does not open the first call again.
            let opens_first = has_first && (before & HAS_FIRST == 0 || before & OPENED_FIRST != 0);
            let first = with(HAS_FIRST, has_first) | with(OPENED_FIRST, opens_first);
            let on = ON
                | with(PLAIN, is_plain)
                | with(SAMPLED, config.is_sampled)
                | with(OPENED, config.is_recorded);
            Some(first | if config.on { on } else { OFF })
        };
        // Always succeeds. A call on another thread may become the first one meanwhile.
        _ = self.interest.fetch_update(Release, Relaxed, interest);
    }

    /// Returns `true` if the site is a span of `tracing`.
    pub(crate) fn is_span(&self) -> bool {
        self.spec.is_span
    }

    /// Returns the name used in reports.
    pub(crate) fn name(&self) -> &str {
        self.name
            .get_or_init(|| self.spec.name.map_or_else(|| label((self.spec.path)()), str::to_owned))
    }

    /// Returns the name as a C string, without any NUL in it.
    #[cfg(feature = "nvtx")]
    pub(crate) fn c_name(&self) -> &CStr {
        self.c_name.get_or_init(|| CString::new(self.name().replace('\0', "")).unwrap_or_default())
    }

    /// Returns the preparation for each bracket. Empty before the site is configured.
    pub(crate) fn settings(&self) -> Settings {
        Settings::unpack(self.settings.load(Relaxed))
    }

    /// Returns the number of warm-up calls per device and key.
    pub(crate) fn warmup(&self) -> u32 {
        self.warmup.load(Relaxed)
    }

    /// Returns the series with this identity, creating it on first use.
    pub(crate) fn series_id(&self, identity: SeriesIdentity) -> &'static SeriesId {
        let mut series = self.series();
        if let Some(cell) = series.iter().find(|cell| **cell.id == identity) {
            return cell.id;
        }
        let clock = if identity.device == DeviceId::Host {
            Clock::Host
        } else if identity.on_default {
            Clock::Events
        } else {
            self.spec.clock
        };
        let id = Box::leak(Box::new(SeriesId::new(identity, clock, series.len())));
        series.push(SeriesCell { id, series: SeriesData::new() });
        id
    }

    /// Returns `true` if captured launches get timing nodes. The first capture decides, based on
    /// `wanted`, and later ones follow. If a graph is captured again, it must have the same shape,
    /// or it cannot update the executable graph.
    pub(crate) fn gets_nodes(&self, wanted: bool) -> bool {
        *self.nodes.get_or_init(|| wanted)
    }

    /// Returns the first capture's decision, if there was one.
    pub(crate) fn has_nodes(&self) -> Option<bool> {
        self.nodes.get().copied()
    }

    /// Locks and returns the counters for calls on threads without their own counters for this
    /// site.
    pub(crate) fn shared_counters(&self) -> MutexGuard<'_, CallCounters> {
        let new = || Mutex::new(Rank::Sampler, CallCounters::default());
        locked(self.shared_counters.get_or_init(new))
    }

    /// Locks and returns all series, ordered by index.
    pub(crate) fn series(&self) -> MutexGuard<'_, Vec<SeriesCell>> {
        locked(&self.series)
    }

    /// Locks and returns the deadline for the site's holds.
    pub(crate) fn hold_deadline(&self) -> MutexGuard<'_, HoldDeadline> {
        locked(&self.hold_deadline)
    }
}
