//! Finds functions of CUPTI and of the driver that hang or crash when several threads call them.
//!
//! Each arrangement runs in a process of its own, which ends itself if its threads do not.

use std::ffi::c_void;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitCode;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use comfy_table::{CellAlignment, presets};
use cudarc::driver::sys::{
    CUgraphInstantiate_flags as InstantiateFlags, CUstreamCaptureMode as CaptureMode,
};
use cudarc::driver::{CudaFunction, DriverError, PushKernelArg, result, sys};
use cudarc::nvrtc::Ptx;
use gpu_time_kernels::workloads;
use serde::{Deserialize, Serialize};

use crate::child;
use crate::cupti::{Cupti, Order};
use crate::failure::Failure;
use crate::gpu::{Gpu, ONE, is_present};

/// The time for which the threads work, and the time that they then get to end.
const WORK: Duration = Duration::from_secs(2);
const PATIENCE: Duration = Duration::from_secs(20);
const LAUNCHERS: usize = 4;
const KERNEL_NS: u64 = 5_000;
const GRAPH_KERNELS: usize = 8;
/// The time for which CUPTI is attached, and the pause before it is attached again.
const RECORDING: Duration = Duration::from_millis(40);
const DETACHED: Duration = Duration::from_millis(5);

/// An action that one thread repeats while others launch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loads {
    Nothing,
    /// Loads and unloads a module.
    Modules,
    /// Also looks up its kernel. No lock keeps this apart from switches and flushes.
    LookUps,
    /// Also launches that kernel for the first time.
    FirstLaunches,
    /// The same with the driver's library functions, which load a kernel when it is first launched.
    Libraries,
    Streams,
    /// Allocates memory and sets it.
    Memsets,
    /// Launches a graph that was captured beforehand.
    Graphs,
}

/// Two kinds of work that a lock keeps apart.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Apart {
    LoadsAndSwitches,
    LoadsAndFlushes,
    SwitchesAndFlushes,
}
use Apart::{LoadsAndFlushes, LoadsAndSwitches, SwitchesAndFlushes};

struct Arrangement {
    name: &'static str,
    loads: Loads,
    order: Order,
    /// CUPTI records only while a thread launches. Otherwise it always records, unless it is detached.
    switches: bool,
    flushes: bool,
    /// Another thread attaches CUPTI, records for a while, and detaches it, over and over.
    detaches: bool,
    apart: &'static [Apart],
    /// gpu-time relies on this arrangement, so it must neither hang nor crash.
    is_ours: bool,
}

const ALL_APART: &[Apart] = &[LoadsAndSwitches, LoadsAndFlushes, SwitchesAndFlushes];

impl Arrangement {
    const fn of(name: &'static str, loads: Loads, apart: &'static [Apart]) -> Arrangement {
        Arrangement {
            name,
            loads,
            order: Order::KernelsAround,
            switches: true,
            flushes: true,
            detaches: false,
            apart,
            is_ours: false,
        }
    }

    const fn detached(name: &'static str, loads: Loads) -> Arrangement {
        Arrangement {
            switches: false,
            flushes: false,
            detaches: true,
            ..Arrangement::of(name, loads, &[])
        }
    }

    const fn ours(name: &'static str, loads: Loads) -> Arrangement {
        Arrangement { is_ours: true, ..Arrangement::of(name, loads, ALL_APART) }
    }
}

const ARRANGEMENTS: &[Arrangement] = &[
    Arrangement::of("loads, switches, flushes", Loads::Modules, &[]),
    Arrangement { flushes: false, ..Arrangement::of("loads and switches", Loads::Modules, &[]) },
    Arrangement {
        switches: false,
        ..Arrangement::of("loads and flushes, always on", Loads::Modules, &[])
    },
    Arrangement::of("all, flushes apart from switches", Loads::Modules, &[SwitchesAndFlushes]),
    Arrangement::of("all, switches apart from loads", Loads::Modules, &[LoadsAndSwitches]),
    Arrangement::of("creation of streams, switches, flushes", Loads::Streams, &[]),
    Arrangement::of("switches and flushes", Loads::Nothing, &[]),
    Arrangement {
        order: Order::KernelsInside,
        ..Arrangement::of("memsets, kernels switched while they are on", Loads::Memsets, ALL_APART)
    },
    Arrangement::ours("memsets, kernels switched while they are off", Loads::Memsets),
    Arrangement::ours("all three apart", Loads::Modules),
    Arrangement::ours("all three apart, look-ups anywhere", Loads::LookUps),
    Arrangement::ours("all three apart, first launches anywhere", Loads::FirstLaunches),
    Arrangement::ours("all three apart, lazy libraries", Loads::Libraries),
    Arrangement::detached("detached over and over", Loads::Nothing),
    Arrangement::detached("detached over and over, launches of a graph", Loads::Graphs),
];

#[derive(Serialize, Deserialize)]
struct Outcome {
    loads: u64,
    switches: u64,
    flushes: u64,
    hung: bool,
}

/// Prints a row for each arrangement. Fails without a GPU or CUPTI, or if one that gpu-time relies on fails.
pub fn compare() -> Result<ExitCode, Failure> {
    if !is_present() {
        return Err("no GPU here".into());
    }
    let mut table = comfy_table::Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(["arrangement", "loads", "switches", "flushes", "outcome"]);
    for column in table.column_iter_mut().skip(1).take(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut is_bad = false;
    for arrangement in ARRANGEMENTS {
        let limit = WORK + PATIENCE + Duration::from_secs(30);
        let mut process = child::role(&["hazards", arrangement.name])?;
        let (counts, outcome) = match child::output(&mut process, limit) {
            Ok((status, text)) if status.success() => {
                let outcome: Outcome = child::parse(&text)?;
                let counts = [outcome.loads, outcome.switches, outcome.flushes];
                let hung = if outcome.hung { "**hung**" } else { "" };
                (counts.map(|count| count.to_string()), hung)
            }
            Ok((status, _)) if status.signal().is_some() => (no_counts(), "**crashed**"),
            Ok(_) => (no_counts(), "**failed**"),
            Err(_) => (no_counts(), "**did not end**"),
        };
        is_bad |= arrangement.is_ours && !outcome.is_empty();
        let [loads, switches, flushes] = counts;
        table.add_row([arrangement.name, &loads, &switches, &flushes, outcome]);
    }
    println!("{table}");
    if is_bad {
        return Err("an arrangement failed that gpu-time relies on".into());
    }
    Ok(ExitCode::SUCCESS)
}

fn no_counts() -> [String; 3] {
    ["–"; 3].map(str::to_owned)
}

/// Runs an arrangement and prints its outcome. Ends the process if the threads do not end.
pub fn run(name: &str) -> Result<ExitCode, Failure> {
    let arrangement = ARRANGEMENTS.iter().find(|arrangement| arrangement.name == name);
    let arrangement = arrangement.ok_or("there is no such arrangement")?;
    // CUPTI must be loaded before the first context is created.
    let cupti = Cupti::load()?;
    let gpu = Gpu::new()?;
    let spin = gpu.workload(workloads::SPIN_NS)?;
    if !arrangement.switches && !arrangement.detaches {
        cupti.switch(true, arrangement.order)?;
    }
    let work = Box::leak(Box::new(Shared::new(arrangement, cupti, gpu, spin)));
    let mut threads: Vec<_> = (0..LAUNCHERS).map(|_| thread::spawn(|| work.launch())).collect();
    if arrangement.loads != Loads::Nothing {
        threads.push(thread::spawn(|| work.load()));
    }
    if arrangement.flushes {
        threads.push(thread::spawn(|| work.flush()));
    }
    if arrangement.detaches {
        threads.push(thread::spawn(|| work.detach()));
    }
    thread::sleep(WORK);
    work.is_over.store(true, SeqCst);
    let deadline = Instant::now() + PATIENCE;
    while !threads.iter().all(thread::JoinHandle::is_finished) && Instant::now() < deadline {
        thread::sleep(Duration::from_millis(5));
    }
    let hung = !threads.iter().all(thread::JoinHandle::is_finished);
    if !hung {
        for thread in threads {
            thread.join().map_err(|_| "a thread panicked")?.map_err(|why| why.to_string())?;
        }
    }
    let [loads, switches, flushes] =
        [&work.loads, &work.switches, &work.flushes].map(|count| count.load(SeqCst));
    println!("{}", serde_json::to_string(&Outcome { loads, switches, flushes, hung })?);
    std::io::stdout().flush()?;
    if hung {
        // SAFETY: nothing is left to do. Exit handlers of CUPTI would wait for the same locks.
        unsafe { libc::_exit(0) };
    }
    Ok(ExitCode::SUCCESS)
}

/// The state that the threads share.
struct Shared {
    arrangement: &'static Arrangement,
    cupti: Cupti,
    gpu: Gpu,
    spin: CudaFunction,
    /// One lock for each [`Apart`].
    locks: [Mutex<()>; ALL_APART.len()],
    /// The number of threads that are launching.
    launching: Mutex<usize>,
    is_over: AtomicBool,
    loads: AtomicU64,
    switches: AtomicU64,
    flushes: AtomicU64,
}

type Outcomes = Result<(), String>;

impl Shared {
    fn new(
        arrangement: &'static Arrangement,
        cupti: Cupti,
        gpu: Gpu,
        spin: CudaFunction,
    ) -> Shared {
        Shared {
            arrangement,
            cupti,
            gpu,
            spin,
            locks: [const { Mutex::new(()) }; ALL_APART.len()],
            launching: Mutex::new(0),
            is_over: AtomicBool::new(false),
            loads: AtomicU64::new(0),
            switches: AtomicU64::new(0),
            flushes: AtomicU64::new(0),
        }
    }

    /// Takes the locks that the arrangement has for one kind of work, in the same order everywhere.
    fn keep_apart(&self, from: [Apart; 2]) -> [Option<MutexGuard<'_, ()>>; 2] {
        from.map(|apart| {
            let is_kept = self.arrangement.apart.contains(&apart);
            is_kept
                .then(|| self.locks[apart as usize].lock().unwrap_or_else(PoisonError::into_inner))
        })
    }

    fn repeat(&self, mut once: impl FnMut() -> Result<(), Failure>) -> Outcomes {
        self.gpu.context.bind_to_thread().map_err(|why| why.to_string())?;
        while !self.is_over.load(SeqCst) {
            once().map_err(|why| why.to_string())?;
        }
        Ok(())
    }

    /// Launches one kernel at a time, between two calls of `enter`.
    fn launch(&self) -> Outcomes {
        let stream = self.gpu.context.new_stream().map_err(|why| why.to_string())?;
        self.repeat(|| {
            self.enter(true)?;
            // SAFETY: the argument matches the kernel.
            unsafe { stream.launch_builder(&self.spin).arg(&KERNEL_NS).launch(ONE) }?;
            self.enter(false)?;
            Ok(stream.synchronize()?)
        })
    }

    /// Counts a thread in or out. If the arrangement switches, the first turns recording on, the last off.
    fn enter(&self, is_entry: bool) -> Result<(), Failure> {
        let _apart = self.keep_apart([LoadsAndSwitches, SwitchesAndFlushes]);
        let mut launching = self.launching.lock().unwrap_or_else(PoisonError::into_inner);
        let is_switch = if is_entry { *launching == 0 } else { *launching == 1 };
        if is_entry {
            *launching += 1;
        } else {
            *launching -= 1;
        }
        if is_switch && self.arrangement.switches {
            self.cupti.switch(is_entry, self.arrangement.order)?;
            self.switches.fetch_add(1, SeqCst);
        }
        Ok(())
    }

    fn flush(&self) -> Outcomes {
        self.repeat(|| {
            let apart = self.keep_apart([LoadsAndFlushes, SwitchesAndFlushes]);
            self.cupti.flush()?;
            drop(apart);
            self.flushes.fetch_add(1, SeqCst);
            thread::sleep(Duration::from_millis(1));
            Ok(())
        })
    }

    /// Attaches CUPTI, records for a while, and detaches it.
    fn detach(&self) -> Outcomes {
        self.repeat(|| {
            self.cupti.attach()?;
            self.cupti.switch(true, self.arrangement.order)?;
            thread::sleep(RECORDING);
            self.cupti.switch(false, self.arrangement.order)?;
            self.cupti.flush()?;
            // SAFETY: none. Other threads launch meanwhile, so the process may crash. This is what is tested.
            unsafe { self.cupti.detach() }?;
            self.switches.fetch_add(2, SeqCst);
            self.flushes.fetch_add(1, SeqCst);
            thread::sleep(DETACHED);
            Ok(())
        })
    }

    /// Launches one graph over and over.
    fn launch_graph(&self) -> Outcomes {
        let text = |why: DriverError| why.to_string();
        let stream = self.gpu.context.new_stream().map_err(text)?;
        let mut memory = stream.alloc_zeros::<u8>(256).map_err(text)?;
        stream.begin_capture(CaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED).map_err(text)?;
        for _ in 0..GRAPH_KERNELS {
            // SAFETY: the argument matches the kernel.
            unsafe { stream.launch_builder(&self.spin).arg(&KERNEL_NS).launch(ONE) }
                .map_err(text)?;
        }
        stream.memset_zeros(&mut memory).map_err(text)?;
        let flags = InstantiateFlags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH;
        let graph = stream.end_capture(flags).map_err(text)?.ok_or("nothing was captured")?;
        self.repeat(|| {
            graph.launch()?;
            self.loads.fetch_add(1, SeqCst);
            Ok(stream.synchronize()?)
        })
    }

    fn load(&self) -> Outcomes {
        if self.arrangement.loads == Loads::Graphs {
            return self.launch_graph();
        }
        self.repeat(|| {
            match self.arrangement.loads {
                Loads::Nothing | Loads::Graphs => {}
                Loads::Streams => drop(self.gpu.context.new_stream()?),
                Loads::Memsets => drop(self.gpu.stream.alloc_zeros::<u8>(1 << 20)?),
                Loads::Libraries => self.load_library()?,
                Loads::Modules | Loads::LookUps | Loads::FirstLaunches => self.load_module()?,
            }
            self.loads.fetch_add(1, SeqCst);
            // Lets the other threads take the locks.
            thread::sleep(Duration::from_micros(20));
            Ok(())
        })
    }

    fn load_module(&self) -> Result<(), Failure> {
        let apart = self.keep_apart([LoadsAndSwitches, LoadsAndFlushes]);
        let module = self.gpu.context.load_module(Ptx::from_src(workloads::PTX))?;
        drop(apart);
        let mut kernel = None;
        if self.arrangement.loads != Loads::Modules {
            kernel = Some(module.load_function(workloads::EMPTY)?);
        }
        if let (Loads::FirstLaunches, Some(kernel)) = (self.arrangement.loads, &kernel) {
            // SAFETY: the kernel has no parameters.
            unsafe { self.gpu.stream.launch_builder(kernel).launch(ONE) }?;
            self.gpu.stream.synchronize()?;
        }
        let _apart = self.keep_apart([LoadsAndSwitches, LoadsAndFlushes]);
        // The last owner unloads the module.
        drop((kernel, module));
        Ok(())
    }

    fn load_library(&self) -> Result<(), Failure> {
        let image = format!("{}\0", workloads::PTX);
        let name = format!("{}\0", workloads::EMPTY);
        let (mut library, mut kernel): (sys::CUlibrary, sys::CUkernel) = (null_mut(), null_mut());
        let apart = self.keep_apart([LoadsAndSwitches, LoadsAndFlushes]);
        // SAFETY: the image is NUL-terminated, and there are no options.
        unsafe {
            let image = image.as_ptr().cast::<c_void>();
            let (library, none) = (&raw mut library, null_mut());
            sys::cuLibraryLoadData(library, image, null_mut(), none, 0, null_mut(), null_mut(), 0)
        }
        .result()?;
        drop(apart);
        // SAFETY: the library was loaded above, and the name is NUL-terminated.
        unsafe { sys::cuLibraryGetKernel(&raw mut kernel, library, name.as_ptr().cast()) }
            .result()?;
        let (function, stream) = (kernel.cast(), self.gpu.stream.cu_stream());
        // SAFETY: the driver takes a kernel of a library as a function. This one has no parameters.
        unsafe { result::launch_kernel(function, (1, 1, 1), (1, 1, 1), 0, stream, &mut []) }?;
        self.gpu.stream.synchronize()?;
        let _apart = self.keep_apart([LoadsAndSwitches, LoadsAndFlushes]);
        // SAFETY: the kernel has ended, and nothing else uses the library.
        Ok(unsafe { sys::cuLibraryUnload(library) }.result()?)
    }
}
