//! A call site: one annotated function, with its counts and its series.

use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed,
    Ordering::Release,
};
use std::sync::{Mutex, MutexGuard, OnceLock};

use crate::base::lock::locked;
use crate::site::cost::CostMeter;
use crate::site::counters::SharedCounts;
use crate::site::series_id::{SeriesCell, SeriesId};
use crate::stats::hold_deadline::HoldDeadline;
use crate::stats::sampling::CurrentRate;
use crate::stats::series::Series;
use crate::types::attribute::{Clock, Cold, Hold, Spec};
use crate::types::device::DeviceId;
use crate::types::key::{Keys, SeriesKey};
use crate::types::label::label;
use crate::types::sample::CacheState;
use crate::types::sampling::Sampling;
use crate::types::settings::Settings;

/// One annotated function: its specification, its counts and its series.
///
/// Lives in a `static` that generated code declares, so that a call reaches it without a look-up.
#[repr(C)] // what every call looks at comes first, together
pub struct CallSite {
    /// 0 until registered, then its place in the registry, from 1.
    id: AtomicU32,
    mode: AtomicU8,
    pace: CurrentRate,
    pub(crate) spec: Spec,
    /// The settings, packed.
    settings: AtomicU64,
    warmup: AtomicU32,
    name: OnceLock<String>,
    /// Counts of calls that no lane can count: on threads that are being torn down.
    pub(crate) shared_counts: SharedCounts,
    /// Rows and what is kept of them under one lock, so that there is no order to take two in.
    series: Mutex<Vec<SeriesCell>>,
    /// How many calls served to warm up, by device, or are leased.
    warmups: Mutex<Vec<(DeviceId, u32)>>,
    hold_policy: Mutex<HoldDeadline>,
    /// Whether its captured launches get nodes of ours.
    nodes: AtomicU8,
    /// Timed calls whose `bytes` or `flops` were no amount.
    nonsense: AtomicU64,
    pub(crate) keys: Keys,
    pub(crate) meter: CostMeter,
}

/// The settings that the configuration comes to for one site.
pub(crate) struct Mode {
    pub on: bool,
    pub warmup: u32,
    pub cold: Option<Cold>,
    pub hold: Option<Hold>,
    pub sampling: Sampling,
    /// Not every call is timed.
    pub is_sampled: bool,
}

const UNKNOWN: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;
/// With `ON`: nothing is asked of a timed call but to be timed.
const PLAIN: u8 = 4;
/// With `ON`: not every call is timed.
const SAMPLED: u8 = 8;

impl CallSite {
    /// A site that nobody has called yet.
    pub const fn new(spec: Spec) -> Self {
        CallSite {
            id: AtomicU32::new(0),
            mode: AtomicU8::new(UNKNOWN),
            pace: CurrentRate::new(),
            spec,
            settings: AtomicU64::new(Settings::NONE),
            warmup: AtomicU32::new(0),
            name: OnceLock::new(),
            shared_counts: SharedCounts::new(),
            series: Mutex::new(Vec::new()),
            warmups: Mutex::new(Vec::new()),
            hold_policy: Mutex::new(HoldDeadline::new()),
            nodes: AtomicU8::new(UNKNOWN),
            nonsense: AtomicU64::new(0),
            keys: Keys::new(),
            meter: CostMeter::new(),
        }
    }

    /// Its place in the registry, from 1; 0 before it was registered.
    #[inline]
    pub(crate) fn id(&self) -> u32 {
        self.id.load(Relaxed)
    }

    pub(crate) fn set_id(&self, id: u32) {
        self.id.store(id, Relaxed);
    }

    /// Whether calls are timed, or `None` before anyone asked the configuration.
    #[inline]
    pub(crate) fn is_on(&self) -> Option<bool> {
        // Whoever sees the mode sees the id and the settings that were made before it.
        match self.mode.load(Acquire) {
            UNKNOWN => None,
            mode => Some(mode & ON != 0),
        }
    }

    /// Whether a call asks for nothing but to be timed, so that nobody needs to look at the settings.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.mode.load(Relaxed) & PLAIN != 0
    }

    /// Whether not every call is timed.
    #[inline]
    pub(crate) fn is_sampled(&self) -> bool {
        self.mode.load(Relaxed) & SAMPLED != 0
    }

    /// Changes when calls that are passed over had better be decided about anew.
    #[inline]
    pub(crate) fn epoch(&self) -> u32 {
        self.pace.epoch()
    }

    /// Which calls are timed now.
    pub(crate) fn sampling(&self) -> Sampling {
        self.pace.get()
    }

    /// Whether its captured launches were decided to get nodes of ours.
    pub(crate) fn has_nodes(&self) -> bool {
        self.nodes.load(Relaxed) == ON
    }

    /// Changes how often calls are timed.
    pub(crate) fn steer(&self, rate: f64) {
        if let Some(sampling) = Sampling::of_share(rate) {
            self.pace.set(sampling);
        }
    }

    /// Has every thread decide about its next call, though that was to be passed over.
    pub(crate) fn renew(&self) {
        self.pace.renew();
    }

    /// Sets which calls are timed, and how.
    pub(crate) fn configure(&self, mode: Mode) {
        let settings = Settings {
            cold: mode.cold,
            // A barrier would wait for the kernel that holds the stream.
            hold: mode.hold.filter(|_| !self.spec.is_async && self.spec.clock == Clock::Events),
        };
        self.warmup.store(mode.warmup, Relaxed);
        self.settings.store(settings.pack(), Relaxed);
        let is_plain = mode.warmup == 0 && settings == Settings::default() && !self.spec.graph;
        self.pace.set(mode.sampling);
        let with = |flag: u8, is_set: bool| if is_set { flag } else { 0 };
        let flags = match mode.on {
            false => OFF,
            true => ON | with(PLAIN, is_plain) | with(SAMPLED, mode.is_sampled),
        };
        self.mode.store(flags, Release);
    }

    /// What it is called in reports.
    pub(crate) fn name(&self) -> &str {
        self.name
            .get_or_init(|| self.spec.name.map_or_else(|| label((self.spec.path)()), str::to_owned))
    }

    /// What goes before a bracket now; until the site is introduced, nothing.
    pub(crate) fn settings(&self) -> Settings {
        Settings::unpack(self.settings.load(Relaxed))
    }

    /// How many calls warm each device up.
    pub(crate) fn warmup(&self) -> u32 {
        self.warmup.load(Relaxed)
    }

    /// The row of these properties, made on first use.
    pub(crate) fn series_id(
        &self,
        launch: Option<u32>,
        device: DeviceId,
        cache: CacheState,
        key: SeriesKey,
    ) -> &'static SeriesId {
        self.find_series_id(launch, device, cache, key, false)
    }

    /// The row of a launch that became a node of a graph, made on first use.
    pub(crate) fn graph_series_id(
        &self,
        launch: u32,
        device: DeviceId,
        key: SeriesKey,
    ) -> &'static SeriesId {
        self.find_series_id(Some(launch), device, CacheState::AsFound, key, true)
    }

    fn find_series_id(
        &self,
        launch: Option<u32>,
        device: DeviceId,
        cache: CacheState,
        key: SeriesKey,
        graph: bool,
    ) -> &'static SeriesId {
        let mut series = self.series();
        let wanted = (launch, device, cache, key, graph);
        let same = |r: &SeriesId| (r.launch, r.device, r.cache, r.key, r.graph) == wanted;
        if let Some(cell) = series.iter().find(|cell| same(cell.id)) {
            return cell.id;
        }
        let on_host = device == DeviceId::Host;
        let clock = if on_host { Clock::Host } else { self.spec.clock };
        let index = series.len();
        let id: &'static SeriesId = Box::leak(Box::new(SeriesId {
            launch,
            device,
            cache,
            key,
            clock,
            graph,
            index,
            repeats: AtomicBool::new(false),
        }));
        series.push(SeriesCell { id, series: Series::new() });
        id
    }

    /// Whether captured launches of the site get nodes of ours. The first capture decides, by
    /// `wanted`, and later ones follow: a graph captured anew then has the shape of the one before,
    /// which an update of what was instantiated asks for.
    pub(crate) fn gets_nodes(&self, wanted: bool) -> bool {
        let decided = if wanted { ON } else { OFF };
        let was = self.nodes.compare_exchange(UNKNOWN, decided, Relaxed, Relaxed);
        was.map_or_else(|known| known == ON, |_| wanted)
    }

    /// Whether that is decided, and against them: nothing a capture does changes that.
    pub(crate) fn has_no_nodes(&self) -> bool {
        self.nodes.load(Relaxed) == OFF
    }

    /// Every row with what is kept of it, by its index.
    pub(crate) fn series(&self) -> MutexGuard<'_, Vec<SeriesCell>> {
        locked(&self.series)
    }

    /// Takes up to `most` of the warm-up calls that `device` still owes of `total`, leaving enough of them
    /// to the other threads that the last ones are handed out singly.
    pub(crate) fn lease_warmup(&self, device: DeviceId, total: u32, most: u32) -> u32 {
        if total == 0 {
            return 0;
        }
        let mut warmups = locked(&self.warmups);
        let at = warmups.iter().position(|(d, _)| *d == device).unwrap_or_else(|| {
            warmups.push((device, 0));
            warmups.len() - 1
        });
        let Some((_, taken)) = warmups.get_mut(at) else { return 0 };
        let left = total.saturating_sub(*taken);
        let lease = left.min(most.min(left / 256).max(1));
        *taken += lease;
        lease
    }

    /// Gives back warm-up calls that were leased and not used.
    pub(crate) fn return_warmup(&self, device: DeviceId, calls: u32) {
        let mut warmups = locked(&self.warmups);
        if let Some((_, taken)) = warmups.iter_mut().find(|(of, _)| *of == device) {
            *taken = taken.saturating_sub(calls);
        }
    }

    /// Counts a timed call whose `bytes` or `flops` are no amount.
    #[cold]
    pub(crate) fn count_nonsense(&self) {
        self.nonsense.fetch_add(1, Relaxed);
    }

    /// How many there were.
    pub(crate) fn nonsense(&self) -> u64 {
        self.nonsense.load(Relaxed)
    }

    pub(crate) fn hold_policy(&self) -> MutexGuard<'_, HoldDeadline> {
        locked(&self.hold_policy)
    }
}
