//! The end of the process: the last report, and locked clocks given back.

#![allow(unsafe_code)] // registrations with the C library

use std::panic;
use std::sync::Once;
use std::sync::atomic::{
    AtomicBool, AtomicI32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
};
use std::time::{Duration, Instant};

#[cfg(feature = "signals")]
use crate::base::console;
#[cfg(any(feature = "nvml", feature = "signals"))]
use crate::base::signals::Handlers;
#[cfg(feature = "signals")]
use crate::base::signals::{self, NothingYet};
use crate::base::{
    at_exit, clock, environment, fork, inside, pin, standard, switches, thread_id, worker,
};
#[cfg(feature = "kernels")]
use crate::collect::empty_kernel;
use crate::control::active;
#[cfg(feature = "metrics")]
use crate::export;
use crate::record::{drain, opened, phase::controller};
use crate::site::registry;
use crate::{collect, cuda, cupti, health};

/// The longest wait at exit for work that the GPU has not finished.
const PATIENCE: Duration = Duration::from_millis(500);
/// The longest wait for another thread that makes the last report. More than a report takes unless it is stuck.
const REPORT_PATIENCE: Duration = Duration::from_secs(10);

/// The state of the exit handlers and of the process's end.
struct ExitState {
    /// The id of the process that loaded this code, as opposed to children that it forks.
    loaded_by: AtomicI32,
    /// Runs the body of [`arm`] once. The report is due once that has been done.
    arming: Once,
    /// The number of the first thread that called [`end`]; 0 before.
    ending_thread: AtomicU64,
    /// That thread has reported and given the clocks back.
    has_ended: AtomicBool,
}

static EXIT: ExitState = ExitState {
    loaded_by: AtomicI32::new(0),
    arming: Once::new(),
    ending_thread: AtomicU64::new(0),
    has_ended: AtomicBool::new(false),
};

/// Arms the report at exit, and starts export and signal handling.
///
/// These need threads, which are started here, inside the user's first call: the library has no
/// earlier entry, and a thread started when the program is loaded would exist in programs that time
/// nothing and would be missing in children that they fork.
pub(crate) fn arm() {
    EXIT.arming.call_once(|| {
        fork::mark_children();
        clock::started();
        // A constructor of the program may run before `on_load`.
        at_exit::set_handler(handle_exit);
        // In a program without a GPU this is the only registration.
        at_exit::register();
        worker::each_second(collect::write_files_again);
        #[cfg(feature = "nvml")]
        worker::each_second(health::read_utilization);
        #[cfg(feature = "metrics")]
        export::arm();
        #[cfg(feature = "signals")]
        if let Err(error) = signals::watch_to_report(HANDLERS) {
            console::say(&format!("cannot watch for signals: {error}"));
        }
    });
}

/// Arms the report at exit so that it runs before the driver's teardown. Called when a context is
/// found, and before a phase begins.
pub(crate) fn arm_for_driver() {
    static ONCE: Once = Once::new();
    arm();
    // By now the driver has registered its teardown, after which it must not be called.
    ONCE.call_once(at_exit::register);
}

/// Replaces [`arm`] if `GPU_TIME` turns timing off: a signal that asks for a report or a phase prints a line.
pub(crate) fn arm_while_off() {
    #[cfg(feature = "signals")]
    {
        static ONCE: Once = Once::new();
        ONCE.call_once(|| signals::watch_for_nothing(NothingYet::Off));
    }
}

/// Registers the exit handler that gives locked clocks back, with or without a report.
#[cfg(feature = "nvml")]
pub(crate) fn arm_for_clocks() {
    static ONCE: Once = Once::new();
    // By now NVML has registered its teardown.
    ONCE.call_once(at_exit::register);
}

/// The functions that the signal thread calls.
#[cfg(any(feature = "nvml", feature = "signals"))]
pub(crate) const HANDLERS: Handlers = Handlers {
    report: collect::report,
    record_phase: || active::record_phase(None),
    end,
    give_back: health::give_clocks_back,
};

extern "C" fn handle_exit() {
    if !fork::is_forked() {
        let _inside = inside::enter();
        #[cfg(feature = "kernels")]
        end_after(empty_kernel::measure_missing);
        #[cfg(not(feature = "kernels"))]
        end_after(|| ());
    }
}

/// Sets the exit handler, registers [`at_exit_without_calls`] and remembers the standard streams while the program is
/// loaded. In a program that never calls a timed function or another function of the library, this,
/// [`at_exit_without_calls`] and the answer to a signal that asks for a report are the only code of the runtime that
/// runs.
#[used]
#[cfg_attr(not(miri), unsafe(link_section = ".init_array"))] // Miri has no `atexit`
static ON_LOAD: extern "C" fn() = on_load;

extern "C" fn on_load() {
    clock::loaded();
    environment::start_directory();
    // SAFETY: `getpid` always succeeds, and the handler does not unwind.
    unsafe {
        standard::remember();
        EXIT.loaded_by.store(libc::getpid(), Relaxed);
        libc::atexit(at_exit_without_calls);
    }
    at_exit::set_handler(handle_exit);
    let _inside = inside::enter();
    registry::complete();
    #[cfg(feature = "signals")]
    if pin::is_in_program() && !EXIT.arming.is_completed() {
        // Not in a library, which may be unloaded again.
        signals::watch_for_nothing(NothingYet::NoCall);
    }
    // A program may ask for phases without calling a timed function.
    controller::before_opening(arm_for_driver);
    #[cfg(feature = "kernels")]
    if pin::is_in_program() {
        active::record_start();
    }
}

/// Says that no timed function was called, in a table if the report has one on stderr, and which reports are therefore
/// missing. Writes no file: it could overwrite the report of a child that did time something. Makes no driver
/// call: without a timed call there is no context.
extern "C" fn at_exit_without_calls() {
    // SAFETY: always succeeds.
    let is_child = unsafe { libc::getpid() } != EXIT.loaded_by.load(Relaxed);
    // In a plugin, the handler also runs when the plugin is unloaded. An unused plugin should stay silent.
    if EXIT.arming.is_completed() || is_child || !pin::is_in_program() {
        return;
    }
    let _inside = inside::enter();
    // A panic must not unwind into the C library.
    _ = panic::catch_unwind(|| {
        if !registry::sites().is_empty() && active::config().is_on {
            let _one_at_a_time = collect::reporting();
            collect::report_no_calls();
        }
    });
}

/// Ends timing for a signal, after which the process must end soon.
#[cfg(any(feature = "nvml", feature = "signals"))]
fn end() {
    end_after(|| ());
}

/// Stops timing, reports, and gives the clocks back, once. A second thread waits for the first, or
/// it would end the process in the middle of the report. Calls `last` before CUPTI is left.
fn end_after(last: fn()) {
    EXIT.end(|| report_and_give_back(last), REPORT_PATIENCE);
}

impl ExitState {
    fn end(&self, finish: impl FnOnce(), patience: Duration) {
        let thread = thread_id::current();
        match self.ending_thread.compare_exchange(0, thread, Relaxed, Relaxed) {
            Ok(_) => {
                finish();
                self.has_ended.store(true, Release);
            }
            // An exit handler of the program called `exit` meanwhile.
            Err(first) if first == thread => {}
            Err(_) => {
                let has_ended = || self.has_ended.load(Acquire);
                clock::wait_until(Instant::now() + patience, clock::BRIEFLY, has_ended);
            }
        }
    }
}

fn report_and_give_back(last: fn()) {
    // A panic must not unwind into the C library.
    _ = panic::catch_unwind(|| {
        controller::end();
        // Asked while inner functions are still timed: threads answer when one of these begins or ends.
        opened::ask_for_parts();
        last();
        // Calls of other threads may be open, and their work belongs to no report. The last calibrations must not be
        // recorded either.
        switches::close();
        cupti::end(Instant::now() + PATIENCE);
        cuda::release_holds(false);
        drain::wait_for_gpu(PATIENCE);
        opened::give_up(Instant::now() + PATIENCE);
        let one_at_a_time = collect::reporting();
        // A calibration holds a private stream, so it must precede the final release of holds.
        collect::check_calibrations();
        cuda::release_holds(true);
        if EXIT.arming.is_completed() {
            collect::write_last_reports();
        }
        drop(one_at_a_time);
    });
    // After the report, which shows the locked clocks, and also if the report panicked.
    _ = panic::catch_unwind(health::give_clocks_back);
    cupti::leave(Instant::now() + PATIENCE);
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn second_thread_waits_for_the_end_of_the_first_but_not_for_ever() {
        let state = ExitState {
            loaded_by: AtomicI32::new(0),
            arming: Once::new(),
            ending_thread: AtomicU64::new(0),
            has_ended: AtomicBool::new(false),
        };
        let has_finished = AtomicBool::new(false);
        let other = |patience| {
            thread::scope(|scope| {
                scope.spawn(|| state.end(|| unreachable!("the first thread ends"), patience));
            });
        };
        state.end(
            || {
                // It gives up while the first thread is stuck.
                other(Duration::from_millis(1));
                state.end(|| unreachable!("an exit handler has called `exit`"), Duration::MAX);
                has_finished.store(true, Relaxed);
            },
            Duration::MAX,
        );
        other(Duration::from_secs(600));
        assert!(has_finished.load(Relaxed));
    }
}
