//! The simulated machine: one virtual clock for host and devices, the devices, and the tables of
//! all driver objects. All threads share the clock and one lock, so driver calls never overlap.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::constants::{Constants, Costs};
use crate::faults::Faults;
use crate::handle::{Handle, Table};
use crate::l2::L2;
use crate::memory::Memory;
use crate::object::capture::{Capture, CaptureMode};
use crate::object::context::{Contexts, PrimaryContext};
use crate::object::event::Event;
use crate::object::graph::{Graph, GraphExec, PendingRelease, UserObject};
use crate::object::module::{Function, Module};
use crate::object::stream::Stream;
use crate::object::work::Callback;
use crate::trace::Tracer;

/// A device visible to the process.
pub(crate) struct Device {
    /// The device's number in the machine, before `CUDA_VISIBLE_DEVICES` is applied.
    pub installed: usize,
    pub l2: L2,
    pub primary: PrimaryContext,
}

/// Driver state of one thread.
#[derive(Default)]
pub(crate) struct Thread {
    /// The stack of current contexts.
    pub current: Vec<Handle>,
    pub capture_mode: CaptureMode,
}

/// The simulated machine. It is guarded by a single lock, and calls take effect in lock order.
pub(crate) struct Model {
    /// Virtual host time. Driver calls advance it, each by its cost and by the time it waits.
    pub now: u64,
    pub constants: Constants,
    pub costs: Costs,
    pub faults: Faults,
    pub trace: Tracer,
    /// `cuInit` has succeeded.
    pub initialized: bool,
    /// Every launch waits for its kernel to end (`CUDA_LAUNCH_BLOCKING=1`).
    pub launch_blocking: bool,
    pub devices: Vec<Device>,
    pub contexts: Contexts,
    pub threads: Vec<Thread>,
    pub streams: Table<Stream>,
    pub events: Table<Event>,
    pub modules: Table<Module>,
    pub functions: Table<Function>,
    pub captures: Table<Capture>,
    pub graphs: Table<Graph>,
    pub execs: Table<GraphExec>,
    pub objects: Table<UserObject>,
    /// References from graphs that the program destroyed or updated during a launch.
    pub pending_releases: Vec<PendingRelease>,
    pub memory: Memory,
    /// Streams with commands whose times are still unknown.
    pub waiting_streams: Vec<Handle>,
    /// The process is exiting and enqueues nothing more.
    pub is_exiting: bool,
    /// Host functions and destructors to run after the current call.
    pub callbacks: Vec<Callback>,
    pub counters: Counters,
    /// The thread making the current call, counted from 1.
    pub thread: u32,
    /// Number of the current call.
    pub correlation: u32,
    /// Results of the current call, which are added to its arguments in the trace.
    pub annotations: Vec<(&'static str, i64)>,
}

/// The last number assigned to each kind of object.
#[derive(Default)]
pub(crate) struct Counters {
    pub stream_ids: u64,
    pub created_streams: u64,
    pub records: u64,
    pub captures: u64,
    pub execs: u32,
    pub nodes: u64,
}

static MODEL: LazyLock<Mutex<Model>> = LazyLock::new(|| {
    Mutex::new(Model::from_env().unwrap_or_else(|error| {
        // A test with a misspelled script must fail, not run without its faults.
        eprintln!("simulated driver: {error}");
        std::process::abort()
    }))
});

impl Model {
    /// Locks the model.
    pub fn lock() -> MutexGuard<'static, Self> {
        MODEL.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Executes the records that are still undecided at process exit, so that the trace has them.
    /// Skipped if the lock is held, because an exit handler must not block.
    pub fn end() {
        if let Ok(mut model) = MODEL.try_lock() {
            model.finish_records();
        }
    }

    fn from_env() -> Result<Self, String> {
        let var = |name: &str| std::env::var(name).ok();
        let (constants, costs) =
            crate::constants::parse(&var("GPU_TIME_TEST_SIM_MODEL").unwrap_or_default())?;
        let faults = Faults::parse(&var("GPU_TIME_TEST_SIM_FAULTS").unwrap_or_default())?;
        let commands_only = match var("GPU_TIME_TEST_SIM_TRACE_LEVEL").as_deref() {
            None | Some("all") => false,
            Some("device") => true,
            Some(other) => {
                return Err(format!("invalid trace level `{other}`: expected `all` or `device`"));
            }
        };
        let trace = match var("GPU_TIME_TEST_SIM_TRACE") {
            Some(path) => Tracer::open(&path, commands_only)?,
            None => Tracer::default(),
        };
        let installed = match var("GPU_TIME_TEST_SIM_DEVICES") {
            Some(text) => {
                text.parse().map_err(|_| format!("invalid number of devices `{text}`"))?
            }
            None => 1,
        };
        let reuses_streams = constants.reuses_streams != 0;
        let devices = visible(installed, var("CUDA_VISIBLE_DEVICES").as_deref());
        Ok(Self {
            now: 0,
            contexts: Contexts::new(devices.len()),
            devices: devices
                .into_iter()
                .map(|installed| Device {
                    installed,
                    l2: L2::new(constants.l2_usable_bytes)
                        .filling_free(constants.l2_fills_free != 0),
                    primary: PrimaryContext::default(),
                })
                .collect(),
            constants,
            costs,
            faults,
            trace,
            initialized: false,
            launch_blocking: var("CUDA_LAUNCH_BLOCKING").is_some_and(|value| value == "1"),
            threads: Vec::new(),
            streams: Table::reusing(0x51, reuses_streams),
            events: Table::new(0x52),
            modules: Table::new(0x53),
            functions: Table::new(0x54),
            captures: Table::new(0x55),
            graphs: Table::new(0x56),
            execs: Table::new(0x57),
            objects: Table::new(0x59),
            pending_releases: Vec::new(),
            memory: Memory::default(),
            waiting_streams: Vec::new(),
            is_exiting: false,
            callbacks: Vec::new(),
            counters: Counters::default(),
            thread: 0,
            correlation: 0,
            annotations: Vec::new(),
        })
    }

    /// Returns the driver state of the calling thread.
    pub fn caller(&mut self) -> &mut Thread {
        let index = self.thread as usize - 1;
        if self.threads.len() <= index {
            self.threads.resize_with(index + 1, Thread::default);
        }
        &mut self.threads[index]
    }

    /// Advances the host clock by the cost of a call of `function`.
    pub fn charge(&mut self, function: &str, built_in: u64) {
        self.now += self.costs.of(function, built_in);
        self.advance_streams();
    }

    /// Returns the time shown by the host clock, which can go back.
    pub fn host_clock(&self) -> u64 {
        let Constants { host_back_at_ns, host_back_ns, .. } = self.constants;
        let back = if self.now >= host_back_at_ns { host_back_ns } else { 0 };
        self.now.saturating_sub(back)
    }

    /// Adds a value to the arguments of the current call in the trace.
    pub fn annotate(&mut self, name: &'static str, value: i64) {
        if self.trace.wants_calls() {
            self.annotations.push((name, value));
        }
    }

    /// Writes a note to the trace.
    pub fn note(&mut self, kind: &str, name: impl Into<String>) {
        self.trace.note(kind, name, self.now);
    }

    pub fn next_stream_id(&mut self) -> u64 {
        self.counters.stream_ids += 1;
        self.counters.stream_ids
    }
}

/// Returns the installed devices visible to the process: those listed in `CUDA_VISIBLE_DEVICES`
/// before its first invalid entry.
fn visible(installed: usize, list: Option<&str>) -> Vec<usize> {
    match list {
        None => (0..installed).collect(),
        Some(list) => list
            .split(',')
            .map_while(|entry| entry.trim().parse::<usize>().ok().filter(|&n| n < installed))
            .collect(),
    }
}
