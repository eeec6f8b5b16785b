//! The functions that the simulated driver calls for driver calls and enqueued work. They call the
//! client's callbacks and create records.

use std::cell::Cell;
use std::ffi::c_void;
use std::ptr;

use crate::abi::{CallbackData, DRIVER_API};
use crate::cbid::{self, Function};
use crate::delivery::{self, Which};
use crate::fragile;
use crate::observed::{ObservedCall, ObservedTimes, ObservedWork, Observer};
use crate::script::script;
use crate::state::state;

/// The functions that the simulated driver calls.
pub(crate) static OBSERVER: Observer = Observer { call, enqueued, ended };

thread_local! {
    // None of these has a destructor, so the destructors of other thread locals can use them.
    /// The thread is in a callback. Driver calls inside a callback have no callbacks.
    static IS_INSIDE: Cell<bool> = const { Cell::new(false) };
    /// The value that the client keeps from the entry of a call to its exit.
    static KEPT: Cell<u64> = const { Cell::new(0) };
    /// Id of the driver function that the thread is in, if its entry had a callback.
    static ENTERED: Cell<Option<u32>> = const { Cell::new(None) };
    /// The thread no longer gets callbacks.
    static IS_LOST: Cell<bool> = const { Cell::new(false) };
}

unsafe extern "C" fn call(observed: *const ObservedCall) {
    // SAFETY: guaranteed by the driver.
    let observed = unsafe { &*observed };
    // SAFETY: as above.
    let name = unsafe { std::slice::from_raw_parts(observed.name, observed.name_len) };
    if observed.is_exit {
        delivery::place(observed.correlation);
        delivery::deliver(Which::Full);
    }
    if let Some(function) = cbid::find(name)
        && !IS_INSIDE.get()
    {
        IS_INSIDE.set(true);
        call_back(function, observed);
        IS_INSIDE.set(false);
    }
}

fn call_back(function: &Function, observed: &ObservedCall) {
    let (subscriber, is_on) = {
        let state = state();
        (state.subscriber, state.callbacks.contains(&function.id))
    };
    let Some(subscriber) = subscriber else { return };
    if !observed.is_exit {
        ENTERED.set(is_on.then_some(function.id).or(ENTERED.get()));
    } else if ENTERED.get() == Some(function.id) {
        ENTERED.set(None);
        IS_LOST.set(IS_LOST.get() || (!is_on && script().version.loses_callbacks()));
    }
    if !is_on || IS_LOST.get() {
        return;
    }
    if observed.is_exit {
        fragile::end_load();
        fragile::end_launch();
    }
    let result = ptr::from_ref(&observed.result).cast_mut().cast();
    let mut kept = KEPT.get();
    let data = CallbackData {
        site: u32::from(observed.is_exit),
        function_name: function.name.as_ptr(),
        parameters: observed.parameters,
        return_value: if observed.is_exit { result } else { ptr::null_mut() },
        symbol_name: ptr::null(),
        context: ptr::with_exposed_provenance_mut::<c_void>(observed.context as usize),
        context_id: observed.context_id as u32,
        correlation_data: &mut kept,
        correlation: observed.correlation,
    };
    // SAFETY: the client subscribed with this function and this data.
    unsafe { (subscriber.callback)(subscriber.data, DRIVER_API, function.id, &data) };
    KEPT.set(kept);
    if !observed.is_exit {
        if function.is_load() {
            fragile::begin_load();
        } else if function.is_launch() {
            fragile::begin_launch();
        }
    }
}

unsafe extern "C" fn enqueued(work: *const ObservedWork) -> u64 {
    // SAFETY: guaranteed by the driver.
    state().enqueued(unsafe { &*work })
}

unsafe extern "C" fn ended(number: u64, times: ObservedTimes) {
    state().ended(number, times);
}
