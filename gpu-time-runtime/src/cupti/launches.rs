//! The callback that CUPTI calls at the beginning and the end of every driver call that initializes CUDA, enqueues work,
//! loads code, begins or ends a capture, or destroys a stream.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Once, OnceLock};

use crate::base::{at_exit, fork, inside, switches};
use crate::cupti::api::LaunchObserver;
use crate::cupti::captures::{self, CAPTURES};
use crate::cupti::functions::Callback;
use crate::cupti::graph_changes::{self, GRAPH_CHANGES};
use crate::cupti::library::{CallbackData, DRIVER_API};
use crate::cupti::loads::{self, LOAD_LOCK};
use crate::cupti::recording::{RECORDING, Recording};
use crate::cupti::session::{self, SUCCESS};
use crate::types::activity::EnqueueCall;
use crate::types::handles::Stream;

/// `cuInit`, at the end of which the driver has registered its teardown.
pub(super) const INIT: u32 = 1;

/// `CUPTI_API_ENTER` and `CUPTI_API_EXIT`.
const ENTER: c_int = 0;
const EXIT: c_int = 1;

static OBSERVER: OnceLock<LaunchObserver> = OnceLock::new();
/// Set at the first launch while CUPTI records.
static HAVE_BEGUN: AtomicBool = AtomicBool::new(false);

/// Returns `true` once there has been a launch while CUPTI recorded. Before, CUPTI has no records.
pub(super) fn have_begun() -> bool {
    HAVE_BEGUN.load(Relaxed)
}

/// Sets the functions to call. Only the first call has an effect.
pub(crate) fn observe_launches(observer: LaunchObserver) {
    _ = OBSERVER.set(observer);
}

/// The callback for driver calls, on the calling thread. Allocates nothing. Takes a lock only around calls
/// that load code, and to switch on a kind of activity that the call needs.
///
/// # Safety
///
/// `data` must be null or, for a driver call, describe the call `id` as CUPTI does.
pub(super) unsafe extern "C" fn on_call(
    _: *mut c_void,
    domain: c_int,
    id: u32,
    data: *const CallbackData,
) {
    if domain != DRIVER_API || data.is_null() {
        return;
    }
    // SAFETY: CUPTI passes this struct for calls of the driver API.
    let data = unsafe { &*data };
    let callback = Callback::with_id(id);
    if callback.is_none() && loads::is_load(id) {
        match data.site {
            ENTER if !fork::is_forked() => {
                let _inside = inside::enter();
                LOAD_LOCK.begin();
            }
            EXIT => LOAD_LOCK.end(),
            _ => {}
        }
        return;
    }
    // Also closed in a forked child, and during process exit.
    if switches::is_closed() {
        return;
    }
    if id == INIT {
        static ONCE: Once = Once::new();
        // By now the driver has registered its teardown. A program may initialize it inside an opened call.
        if data.site == EXIT {
            ONCE.call_once(at_exit::register);
        }
        return;
    }
    let Some(callback) = callback else {
        // SAFETY: guaranteed by the caller.
        unsafe { observe_change(id, data) };
        return;
    };
    // SAFETY: guaranteed by the caller.
    unsafe { observe(OBSERVER.get(), &RECORDING, callback, data) };
}

/// Notes that a capture has begun or ended, or that a stream is about to be destroyed or a graph changed.
///
/// # Safety
///
/// `data` must describe a call of the function with this id, as CUPTI does.
unsafe fn observe_change(id: u32, data: &CallbackData) {
    let is_of_graph = graph_changes::is_change(id);
    let is_known = is_of_graph || captures::is_edge(id) || captures::destroys(id);
    if data.params.is_null() || !is_known {
        return;
    }
    // SAFETY: the first argument of these functions is a handle, or a pointer.
    let first = unsafe { data.params.cast::<usize>().read() };
    if is_of_graph {
        if data.site == ENTER {
            GRAPH_CHANGES.note(id, first);
        }
    } else if captures::destroys(id) {
        // Done before another thread can create a stream at the same address.
        if data.site == ENTER {
            CAPTURES.end(Stream(first));
        }
    } else if data.site == EXIT && !data.return_value.is_null() {
        // SAFETY: at the end of the call, the result is set.
        CAPTURES.note(id, first, unsafe { data.return_value.cast::<c_int>().read() });
    }
}

/// Calls the observer when a call that enqueues work begins, and if it fails.
///
/// # Safety
///
/// `data` must describe a call of the function of `callback`, as CUPTI does.
unsafe fn observe(
    observer: Option<&LaunchObserver>,
    recording: &Recording,
    callback: Callback,
    data: &CallbackData,
) {
    thread_local! {
        // Without a destructor, so that it can be read as long as the thread runs.
        static LAST: Cell<u32> = const { Cell::new(0) };
    }
    // The callbacks stay on while nothing is recorded.
    if !recording.is_on() {
        return;
    }
    if let Some(observer) = observer
        && data.site == EXIT
        && has_failed(data)
    {
        (observer.failed)(data.correlation);
        return;
    }
    // If a driver function calls another one, CUPTI reports both with the same correlation id.
    if data.site != ENTER || LAST.replace(data.correlation) == data.correlation {
        return;
    }
    if !have_begun() && !HAVE_BEGUN.swap(true, Relaxed) {
        // Libraries that the driver loaded since may have registered theirs.
        at_exit::register();
    }
    let Some(observer) = observer else { return };
    let lacks_records = !recording.on_call(callback, session::get());
    // SAFETY: guaranteed by the caller.
    if unsafe { callback.is_empty(data.params) } {
        return;
    }
    // SAFETY: guaranteed by the caller.
    let stream = unsafe { callback.stream(data.params) };
    let is_graph = callback.is_graph();
    // SAFETY: the first argument of a graph launch is the graph.
    let graph = || unsafe { data.params.cast::<usize>().read() };
    let graph = (is_graph && !data.params.is_null()).then(graph);
    (observer.launched)(EnqueueCall {
        correlation: data.correlation,
        context: data.context.addr(),
        stream,
        capture: stream.and_then(|stream| CAPTURES.of(Stream(stream))),
        is_graph,
        graph: graph.and_then(|graph| GRAPH_CHANGES.exec(graph)),
        is_group: callback.is_group(),
        lacks_records,
    });
}

/// Returns `true` if a call has returned an error. `data` must be from the end of the call.
fn has_failed(data: &CallbackData) -> bool {
    let result = data.return_value.cast::<c_int>();
    // SAFETY: at the end of a driver call, it is null or points to the result.
    !result.is_null() && unsafe { result.read() } != SUCCESS
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::ptr;

    use super::*;
    use crate::cupti::session::fake;

    thread_local! {
        static SEEN: RefCell<Vec<EnqueueCall>> = const { RefCell::new(Vec::new()) };
        static FAILED: RefCell<Vec<u32>> = const { RefCell::new(Vec::new()) };
    }

    const OBSERVER: LaunchObserver = LaunchObserver {
        launched: |launched| SEEN.with_borrow_mut(|seen| seen.push(launched)),
        failed: |correlation| FAILED.with_borrow_mut(|failed| failed.push(correlation)),
    };

    /// Calls the callback as CUPTI does, and returns what the observer saw.
    fn call(site: c_int, id: u32, correlation: u32, params: &[usize]) -> Vec<EnqueueCall> {
        call_with_result(SUCCESS, site, id, correlation, params)
    }

    fn call_with_result(
        mut result: c_int,
        site: c_int,
        id: u32,
        correlation: u32,
        params: &[usize],
    ) -> Vec<EnqueueCall> {
        RECORDING.start(&fake::session(), &LOAD_LOCK.permit().unwrap()).unwrap();
        observe_launches(OBSERVER);
        let data = data(site, correlation, params, &mut result);
        // SAFETY: the tests pass enough arguments for each function.
        unsafe { on_call(ptr::null_mut(), DRIVER_API, id, &raw const data) };
        SEEN.take()
    }

    fn data(site: c_int, correlation: u32, params: &[usize], result: &mut c_int) -> CallbackData {
        CallbackData {
            site,
            function_name: ptr::null(),
            params: params.as_ptr().cast(),
            return_value: ptr::from_mut(result).cast(),
            symbol_name: ptr::null(),
            context: ptr::without_provenance_mut(0xc0),
            context_uid: 1,
            correlation_data: ptr::null_mut(),
            correlation,
        }
    }

    #[test]
    fn launch_is_observed() {
        let launch = EnqueueCall {
            correlation: 1,
            context: 0xc0,
            stream: Some(7),
            capture: None,
            is_graph: false,
            graph: None,
            is_group: false,
            lacks_records: false,
        };
        assert_eq!(call(ENTER, 307, 1, &[0, 0, 0, 0, 0, 7]), [launch]);
        let replay = EnqueueCall {
            correlation: 2,
            stream: Some(9),
            is_graph: true,
            graph: GRAPH_CHANGES.exec(0x770),
            is_group: true,
            ..launch
        };
        assert_eq!(call(ENTER, 514, 2, &[0x770, 9]), [replay]);
    }

    #[test]
    fn launch_is_observed_only_while_recording() {
        let (session, recording) = (fake::session(), Recording::new());
        let seen = |correlation| {
            let (callback, mut result) = (Callback::with_id(307).unwrap(), SUCCESS);
            let data = data(ENTER, correlation, &[0; 6], &mut result);
            // SAFETY: the function has six arguments up to its stream.
            unsafe { observe(Some(&OBSERVER), &recording, callback, &data) };
            SEEN.take().len()
        };
        assert_eq!(seen(81), 0);
        recording.start(&session, &LOAD_LOCK.permit().unwrap()).unwrap();
        assert_eq!(seen(82), 1);
        assert!(recording.stop(&session, &LOAD_LOCK.permit().unwrap()));
        assert_eq!(seen(83), 0);
    }

    #[test]
    fn changed_graph_is_another_one() {
        let graph = |correlation| call(ENTER, 514, correlation, &[0x780, 9])[0].graph;
        let before = graph(101);
        assert!(before.is_some() && graph(102) == before);
        // `cuGraphNodeSetEnabled`.
        for site in [ENTER, EXIT] {
            assert_eq!(call(site, 650, 103, &[0x780, 0, 0]), []);
        }
        assert!(graph(104).is_some_and(|after| Some(after) != before));
    }

    #[test]
    fn nested_call_and_exit_are_not_seen() {
        assert_eq!(call(ENTER, 307, 41, &[0; 6]).len(), 1);
        assert_eq!(call(ENTER, 652, 41, &[0; 6]), []);
        assert_eq!(call(1, 307, 42, &[0; 6]), []);
        assert_eq!(call(ENTER, 307, 43, &[0; 6]).len(), 1);
    }

    #[test]
    fn failure_is_observed_at_the_exit() {
        let failed = |site, result| {
            call_with_result(result, site, 307, 71, &[0; 6]);
            FAILED.take()
        };
        // The result is not set at the beginning of a call.
        assert_eq!(failed(ENTER, 1), [0; 0]);
        assert_eq!(failed(EXIT, 1), [71]);
        assert_eq!(failed(EXIT, SUCCESS), [0; 0]);
        call_with_result(1, EXIT, 539, 72, &[0xca98]);
        assert_eq!(FAILED.take(), [0; 0], "a call that enqueues nothing");
    }

    #[test]
    fn launch_into_a_capture_is_marked() {
        let capture_of_launch = |correlation| {
            let seen = call(ENTER, 307, correlation, &[0, 0, 0, 0, 0, 0xca97]);
            seen.first().and_then(|launched| launched.capture)
        };
        assert_eq!(capture_of_launch(61), None);
        for site in [ENTER, EXIT] {
            assert_eq!(call(site, 539, 62, &[0xca97]), []);
        }
        let before = captures::captures_begun();
        assert_eq!(capture_of_launch(63), Some(before));
        call(EXIT, 497, 64, &[0xca97, 0]);
        assert_eq!(capture_of_launch(65), None);
    }

    #[test]
    fn destroyed_stream_is_not_captured_any_more() {
        let capture_of_launch = |correlation| {
            let seen = call(ENTER, 307, correlation, &[0, 0, 0, 0, 0, 0xca99]);
            seen.first().and_then(|launched| launched.capture)
        };
        call(EXIT, 539, 66, &[0xca99]);
        assert!(capture_of_launch(67).is_some());
        call(ENTER, 326, 68, &[0xca99]);
        assert_eq!(capture_of_launch(69), None);
    }

    #[test]
    fn call_that_enqueues_nothing_is_not_seen() {
        assert_eq!(call(ENTER, 1, 51, &[0; 6]), []);
    }
}
