//! The exported functions. Each is one line or two: its C signature, what it costs the host, when
//! it may be called, and which of the model's methods it stands for. What all of them share (the
//! lock, scripted faults, the clock, capture rules, the trace) is in [`run`].

mod context;
mod device;
mod event;
mod launch;
mod memory;
mod misc;
mod stream;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::code::{Answer, Code};
use crate::model::Model;
use crate::process::{self, State};
use crate::trace;

/// When a function may be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// At any time, even before `cuInit`.
    Any,
    /// After `cuInit`.
    Free,
    /// After `cuInit`, and not during a capture that it could disturb.
    NotInCapture,
}

/// What is fixed about an exported function.
struct Function {
    name: &'static str,
    cost_ns: u64,
    rule: Rule,
}

/// Defines exported functions:
/// `fn name(argument: type, …) [cost in ns, rule] |model| answer;`
macro_rules! driver {
    ($(fn $name:ident($($arg:ident: $type:ty),* $(,)?) [$cost:expr, $rule:ident] |$model:pat_param| $body:expr;)+) => {$(
        #[unsafe(no_mangle)]
        #[allow(non_snake_case, clippy::too_many_arguments)]
        pub unsafe extern "C" fn $name($($arg: $type),*) -> i32 {
            const FUNCTION: crate::api::Function = crate::api::Function {
                name: stringify!($name),
                cost_ns: $cost,
                rule: crate::api::Rule::$rule,
            };
            crate::api::run(&FUNCTION, &[$((stringify!($arg), &$arg)),*], |$model| $body)
        }
    )+};
}
pub(crate) use driver;

/// A pointer that the caller gives for a result. Only the C side makes these, and promises what
/// every driver function asks: that the pointer is null or good for one value.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Out<T>(*mut T);

impl<T> Out<T> {
    /// Stores the result, unless there is no place for it.
    fn put(self, value: T) -> Answer {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        self.put_if_wanted(value);
        Ok(())
    }

    /// Stores a result that the caller need not want.
    fn put_if_wanted(self, value: T) {
        if !self.0.is_null() {
            // SAFETY: not null, so the C side's promise holds; nothing of ours is there.
            unsafe { self.0.write(value) };
        }
    }

    /// Reads a place that the caller has filled.
    fn take(self) -> Answer<T> {
        if self.0.is_null() {
            return Err(Code::INVALID_VALUE);
        }
        // SAFETY: as in `put_if_wanted`, and functions that read say that it holds a value.
        Ok(unsafe { self.0.read() })
    }
}

/// A text that the caller passes, under the same promise.
#[repr(transparent)]
#[derive(Clone, Copy)]
pub(crate) struct Text(*const c_char);

impl Text {
    fn read(&self) -> Option<String> {
        if self.0.is_null() {
            return None;
        }
        // SAFETY: not null, so it is a NUL-terminated text, by the C side's promise.
        Some(unsafe { CStr::from_ptr(self.0) }.to_string_lossy().into_owned())
    }

    fn get(self) -> Answer<String> {
        self.read().ok_or(Code::INVALID_VALUE)
    }
}

/// What the trace says of an argument.
trait Argument {
    fn show(&self) -> Option<Value>;
}

impl<T> Argument for Out<T> {
    fn show(&self) -> Option<Value> {
        None
    }
}

impl Argument for Text {
    fn show(&self) -> Option<Value> {
        // A module's image is a text too, and nobody wants to read it here.
        self.read().filter(|text| text.len() < 256).map(Value::from)
    }
}

impl<T> Argument for *const T {
    fn show(&self) -> Option<Value> {
        Some(Value::from(*self as u64))
    }
}

impl<A, B> Argument for Option<unsafe extern "C" fn(A) -> B> {
    fn show(&self) -> Option<Value> {
        None
    }
}

macro_rules! numbers {
    ($($type:ty)+) => {$(
        impl Argument for $type {
            fn show(&self) -> Option<Value> {
                Some(Value::from(*self))
            }
        }
    )+};
}
numbers!(u8 u16 u32 i32 u64 usize);

/// The calling thread's number, from 1, in the order of first calls.
fn thread() -> u32 {
    static LAST: AtomicU32 = AtomicU32::new(0);
    thread_local! {
        // Without a destructor, so that it is there even while a thread's others run.
        static NUMBER: Cell<u32> = const { Cell::new(0) };
    }
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(LAST.fetch_add(1, Ordering::Relaxed) + 1);
        }
        number.get()
    })
}

/// One driver call.
fn run(
    function: &Function,
    arguments: &[(&str, &dyn Argument)],
    body: impl FnOnce(&mut Model) -> Answer,
) -> i32 {
    match process::state() {
        State::Alive => {}
        State::Exited => {
            trace::note_without_model("exited_call", function.name);
            return Code::DEINITIALIZED.0;
        }
        State::Forked => {
            trace::note_without_model("forked_call", function.name);
            return Code::NOT_INITIALIZED.0;
        }
    }
    let mut model = Model::lock();
    model.thread = thread();
    let before = model.now;
    let scripted = model.faults.next(function.name);
    // Releases of held streams count from the first call that sees them, so look before the clock
    // moves, and again for what its moving has brought about.
    model.settle();
    model.charge(function.name, function.cost_ns);
    model.bury();
    let answer = match (scripted, function.rule) {
        (Some(code), _) => Err(code),
        (None, Rule::Any) => body(&mut model),
        (None, _) if !model.initialized => Err(Code::NOT_INITIALIZED),
        (None, Rule::Free) => body(&mut model),
        (None, Rule::NotInCapture) => model.forbid_during_capture().and_then(|()| body(&mut model)),
    };
    let hangs = answer == Err(Code::HUNG);
    let result = match answer {
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
        let findings = std::mem::take(&mut model.findings);
        let args: BTreeMap<String, Value> = arguments
            .iter()
            .filter_map(|(name, value)| Some(((*name).to_owned(), value.show()?)))
            .chain(findings.into_iter().map(|(name, value)| (name.to_owned(), value.into())))
            .collect();
        let call = trace::Call {
            seq: 0,
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
        // SAFETY: the program gave the function for this data, and its stream has come to it. The
        // lock is free, so it may take its time.
        unsafe { (callback.function)(callback.data as *mut std::ffi::c_void) };
    }
    if hangs {
        block_for_real(limit);
    }
    result
}

/// Waits as a caller of the real driver would for a device that never answers, but not for good.
/// Other threads go on meanwhile, and the end of the process ends the wait.
fn block_for_real(limit: Duration) {
    let end = Instant::now() + limit;
    while Instant::now() < end && process::state() == State::Alive {
        std::thread::sleep(Duration::from_millis(100).min(limit));
    }
}
