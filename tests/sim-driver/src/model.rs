//! The whole simulated machine: one virtual clock, devices, and everything that handles stand for.

use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use crate::capture::{Capture, CaptureMode, Exec, Graph};
use crate::constants::{Constants, Costs};
use crate::context::{Contexts, Primary};
use crate::event::Event;
use crate::faults::Faults;
use crate::graph::{Dying, UserObject};
use crate::handle::{Handle, Table};
use crate::l2::L2;
use crate::memory::Memory;
use crate::module::{Function, Module};
use crate::stream::Stream;
use crate::trace::Tracer;

/// A device, as far as its time and its contexts are concerned.
pub(crate) struct Device {
    /// Its number in the machine, whatever it is to the process.
    pub installed: usize,
    pub l2: L2,
    pub primary: Primary,
}

/// What the driver keeps for a thread.
#[derive(Default)]
pub(crate) struct Thread {
    /// The stack of current contexts.
    pub current: Vec<Handle>,
    pub capture_mode: CaptureMode,
}

/// A host function that a stream has come to. It runs after the call, outside the model's lock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Callback {
    pub function: unsafe extern "C" fn(*mut std::ffi::c_void),
    pub data: u64,
}

/// The simulated machine. All of it is behind one lock, and calls take effect in lock order.
pub(crate) struct Model {
    /// Virtual host time. Only driver calls move it, each by what it costs or waits for.
    pub now: u64,
    pub constants: Constants,
    pub costs: Costs,
    pub faults: Faults,
    pub trace: Tracer,
    /// Whether `cuInit` has succeeded.
    pub initialized: bool,
    /// Whether every launch waits for its end (`CUDA_LAUNCH_BLOCKING=1`).
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
    pub execs: Table<Exec>,
    pub objects: Table<UserObject>,
    /// Graphs that the program let go of, until what they launched has ended.
    pub dying: Vec<Dying>,
    pub memory: Memory,
    /// Streams that wait for something whose time is not known yet.
    pub stuck: Vec<Handle>,
    /// Whether nothing is enqueued any more.
    pub is_over: bool,
    pub callbacks: Vec<Callback>,
    pub counters: Counters,
    /// The thread that makes the current call, from 1, and what the call wants to tell the trace.
    pub thread: u32,
    pub findings: Vec<(&'static str, i64)>,
}

/// The last number given out of each kind.
#[derive(Default)]
pub(crate) struct Counters {
    pub stream_ids: u64,
    pub created_streams: u64,
    pub records: u64,
    pub captures: u64,
}

static MODEL: LazyLock<Mutex<Model>> = LazyLock::new(|| {
    Mutex::new(Model::from_env().unwrap_or_else(|error| {
        // A misspelt script must not pass as one that found nothing wrong.
        eprintln!("simulated driver: {error}");
        std::process::abort()
    }))
});

impl Model {
    /// Takes the model's lock.
    pub fn lock() -> MutexGuard<'static, Self> {
        MODEL.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The program enqueues nothing any more. A thread that is in a call keeps the lock, for long if that hangs.
    pub fn end() {
        if let Ok(mut model) = MODEL.try_lock() {
            model.run_out();
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
                return Err(format!("`{other}` is not a trace level: `all` or `device`"));
            }
        };
        let trace = match var("GPU_TIME_TEST_SIM_TRACE") {
            Some(path) => Tracer::open(&path, commands_only)?,
            None => Tracer::default(),
        };
        let installed = match var("GPU_TIME_TEST_SIM_DEVICES") {
            Some(text) => {
                text.parse().map_err(|_| format!("`{text}` is not a number of devices"))?
            }
            None => 1,
        };
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
                    primary: Primary::default(),
                })
                .collect(),
            constants,
            costs,
            faults,
            trace,
            initialized: false,
            launch_blocking: var("CUDA_LAUNCH_BLOCKING").is_some_and(|value| value == "1"),
            threads: Vec::new(),
            streams: Table::new(0x51),
            events: Table::new(0x52),
            modules: Table::new(0x53),
            functions: Table::new(0x54),
            captures: Table::new(0x55),
            graphs: Table::new(0x56),
            execs: Table::new(0x57),
            objects: Table::new(0x59),
            dying: Vec::new(),
            memory: Memory::default(),
            stuck: Vec::new(),
            is_over: false,
            callbacks: Vec::new(),
            counters: Counters::default(),
            thread: 0,
            findings: Vec::new(),
        })
    }

    /// What the driver keeps for the calling thread.
    pub fn caller(&mut self) -> &mut Thread {
        let index = self.thread as usize - 1;
        if self.threads.len() <= index {
            self.threads.resize_with(index + 1, Thread::default);
        }
        &mut self.threads[index]
    }

    /// Lets the host spend what a call of `function` costs.
    pub fn charge(&mut self, function: &str, built_in: u64) {
        self.now += self.costs.of(function, built_in);
        self.settle();
    }

    /// What the host's clock shows now. It can step back.
    pub fn host_clock(&self) -> u64 {
        let Constants { host_back_at_ns, host_back_ns, .. } = self.constants;
        let back = if self.now >= host_back_at_ns { host_back_ns } else { 0 };
        self.now.saturating_sub(back)
    }

    /// Adds something to what the trace says of the current call.
    pub fn find(&mut self, name: &'static str, value: i64) {
        if self.trace.wants_calls() {
            self.findings.push((name, value));
        }
    }

    /// Puts a note into the trace.
    pub fn note(&mut self, kind: &str, name: impl Into<String>) {
        self.trace.note(kind, name, self.now);
    }

    pub fn next_stream_id(&mut self) -> u64 {
        self.counters.stream_ids += 1;
        self.counters.stream_ids
    }
}

/// Which of the installed devices the process sees: those that the list names before the first entry
/// that is none.
fn visible(installed: usize, list: Option<&str>) -> Vec<usize> {
    match list {
        None => (0..installed).collect(),
        Some(list) => list
            .split(',')
            .map_while(|entry| entry.trim().parse::<usize>().ok().filter(|&n| n < installed))
            .collect(),
    }
}
