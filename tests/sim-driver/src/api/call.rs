//! The common path for all driver calls: process state, lock, scripted faults, clock, capture
//! rules, trace.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::args::Argument;
use crate::code::{Code, DriverResult};
use crate::model::Model;
use crate::observed::ObservedCall;
use crate::observer;
use crate::process::{self, ProcessState};
use crate::trace;

/// The state in which a function may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    /// Even before `cuInit`.
    Always,
    /// After `cuInit`.
    AfterInit,
    /// After `cuInit`, except during a capture that the call could disturb.
    NotInCapture,
}

/// The static properties of an exported function.
pub(crate) struct EntryPoint {
    pub name: &'static str,
    pub cost_ns: u64,
    pub availability: Availability,
}

/// Defines exported functions: `fn name(argument: type, …) [cost in ns, availability] |model|
/// result;`
macro_rules! driver {
    ($(
        fn $name:ident($($arg:ident: $type:ty),* $(,)?)
            [$cost:expr, $availability:ident] |$model:pat_param| $body:expr;
    )+) => {$(
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, clippy::too_many_arguments)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> i32 {
            const FUNCTION: crate::api::call::EntryPoint = crate::api::call::EntryPoint {
                name: stringify!($name),
                cost_ns: $cost,
                availability: crate::api::call::Availability::$availability,
            };
            #[repr(C)]
            #[allow(dead_code)] // read by the observer
            struct ObservedParameters {
                $($arg: $type,)*
            }
            let parameters = ObservedParameters { $($arg),* };
            crate::api::call::run(
                &FUNCTION,
                std::ptr::from_ref(&parameters).cast(),
                &[$((stringify!($arg), &$arg)),*],
                &mut |$model| $body,
            )
        }
    )+};
}
pub(crate) use driver;

/// The effect of a driver function on the model. Not a type parameter, because the compiler would copy the
/// common path for each of the functions.
type Body<'a> = &'a mut dyn FnMut(&mut Model) -> DriverResult;

/// Returns the calling thread's number. Threads are numbered from 1, in the order of their first
/// calls.
pub(crate) fn thread() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        // This has no destructor, so it stays usable while the destructors of other thread locals
        // run.
        static NUMBER: Cell<u32> = const { Cell::new(0) };
    }
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(LAST.fetch_add(1, Ordering::Relaxed) + 1);
        }
        number.get()
    })
}

/// Executes one driver call, and reports it to the observer, if there is one, before and after.
/// `parameters` points to a C structure with the arguments as its fields.
pub(crate) fn run(
    function: &EntryPoint,
    parameters: *const c_void,
    arguments: &[(&str, &dyn Argument)],
    body: Body<'_>,
) -> i32 {
    let correlation = observer::next_correlation();
    if process::state() != ProcessState::Alive || !observer::is_registered() {
        return execute(function, correlation, arguments, body);
    }
    let (context, context_id) = {
        let mut model = Model::lock();
        model.thread = thread();
        let id = model.current().map_or(0, |current| current.id);
        (model.current_handle(), id)
    };
    let name = function.name;
    let mut call = ObservedCall {
        is_exit: false,
        correlation,
        name: name.as_ptr(),
        name_len: name.len(),
        parameters,
        result: 0,
        context,
        context_id,
    };
    observer::call(&call);
    let result = execute(function, correlation, arguments, body);
    (call.is_exit, call.result) = (true, result);
    observer::call(&call);
    result
}

/// Executes one call: takes the lock, applies scripted faults, charges the cost, checks the
/// availability, runs `body`, writes the trace, and finally runs callbacks without the lock.
pub(crate) fn execute(
    function: &EntryPoint,
    correlation: u32,
    arguments: &[(&str, &dyn Argument)],
    body: Body<'_>,
) -> i32 {
    match process::state() {
        ProcessState::Alive => {}
        ProcessState::Exited => {
            trace::note_without_model("exited_call", function.name);
            return Code::DEINITIALIZED.0;
        }
        ProcessState::Forked => {
            trace::note_without_model("forked_call", function.name);
            return Code::NOT_INITIALIZED.0;
        }
    }
    let mut model = Model::lock();
    model.thread = thread();
    model.correlation = correlation;
    let before = model.now;
    let scripted = model.faults.next(function.name);
    // A hold ends at the first call that sees its ticket released, so streams advance before the
    // clock does. `charge` lets them advance again afterwards.
    model.advance_streams();
    model.charge(function.name, function.cost_ns);
    model.release_after_launches();
    let outcome = match (scripted, function.availability) {
        (Some(code), _) => Err(code),
        (None, Availability::Always) => body(&mut model),
        (None, _) if !model.initialized => Err(Code::NOT_INITIALIZED),
        (None, Availability::AfterInit) => body(&mut model),
        (None, Availability::NotInCapture) => {
            model.forbid_during_capture().and_then(|()| body(&mut model))
        }
    };
    let hangs = outcome == Err(Code::HUNG);
    let result = match outcome {
        Ok(()) => 0,
        Err(Code::HUNG) => Code::LAUNCH_FAILED.0,
        Err(code) => code.0,
    };
    let limit = Duration::from_millis(model.constants.hang_limit_ms);
    if hangs {
        model.note("hang", function.name);
        model.now += limit.as_nanos() as u64;
    }
    if model.trace.wants_calls() {
        let annotations = std::mem::take(&mut model.annotations);
        let args: BTreeMap<String, Value> = arguments
            .iter()
            .filter_map(|(name, value)| Some(((*name).to_owned(), value.show()?)))
            .chain(annotations.into_iter().map(|(name, value)| (name.to_owned(), value.into())))
            .collect();
        let call = trace::Call {
            seq: 0,
            correlation,
            thread: model.thread,
            name: function.name.to_owned(),
            args,
            result,
            scripted: scripted.is_some(),
            before_ns: before,
            after_ns: model.now,
        };
        model.trace.call(call);
    }
    let callbacks = std::mem::take(&mut model.callbacks);
    drop(model);
    for callback in callbacks {
        // SAFETY: the program passed this function together with this data. The call is due: its
        // stream has reached it, or its user object has lost its last reference. The lock is not
        // held, so the function may block and call the driver.
        unsafe { (callback.function)(callback.data as *mut c_void) };
    }
    if hangs {
        block_for_real(limit);
    }
    result
}

/// Blocks in real time, as the real driver does if a device does not respond, but only up to
/// `limit` or until the process exits. Other threads continue to run.
fn block_for_real(limit: Duration) {
    let end = Instant::now() + limit;
    while Instant::now() < end && process::state() == ProcessState::Alive {
        std::thread::sleep(Duration::from_millis(100).min(limit));
    }
}
