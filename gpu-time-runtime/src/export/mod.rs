//! Live export of every series through the `metrics` facade, to the recorder that the program installed.
//!
//! The worker publishes the increments about once a second. The recorder's code therefore never runs
//! on the path of a timed call, or under a lock that such a call takes, and the last samples of a thread that
//! has become idle are published too. The recorder is looked up for each publication. An increment is
//! published once, so a recorder that is installed later does not receive it.

mod devices;
mod names;
mod publisher;

use std::sync::Once;
use std::{panic, ptr};

use metrics::gauge;

use crate::base::lock::{Mutex, Rank, locked};
use crate::base::{console, worker};
use crate::collect;
use crate::collect::devices::Biases;
use crate::control::{active, budget_control};
use publisher::Publisher;

static PUBLISHER: Mutex<Publisher> = Mutex::new(Rank::Exported, Publisher::new());

/// Lets the worker publish. Must be called only once.
pub(crate) fn arm() {
    worker::each_second(|| publish_all(has_recorder()));
}

/// Publishes all calls that the GPU has finished so far.
pub(crate) fn publish() {
    publish_all(true);
}

/// Publishes, and catches a panic of the recorder, which is the application's code. The next publication tries
/// again. With `drains`, first reads the times that the GPU has finished.
fn publish_all(drains: bool) {
    static ONCE: Once = Once::new();
    if panic::catch_unwind(|| publish_unguarded(drains)).is_err() {
        let line = "the `metrics` recorder panicked and missed some increments";
        ONCE.call_once(|| console::say(line));
    }
}

fn publish_unguarded(drains: bool) {
    let mut publisher = locked(&PUBLISHER);
    let recorder = metrics::with_recorder(|recorder| ptr::from_ref(recorder).addr());
    if publisher.recorder != recorder {
        names::describe();
        publisher.recorder = recorder;
    }
    let biases = Biases::new(active::config().bias);
    for state in collect::live_states(drains) {
        publisher.publish(&state, &biases);
    }
    if drains {
        devices::publish();
    }
    if let Some(budget) = budget_control::settled() {
        gauge!(names::BUDGET_SHARE).set(budget.share);
        gauge!(names::BUDGET_COST_SHARE).set(budget.cost_share);
        let added = [
            (names::ADDED_SHARE, budget.added_share),
            (names::ADDED_ERROR, budget.added_error_share),
        ];
        for (name, share) in added {
            if let Some(share) = share {
                gauge!(name).set(share);
            }
        }
    }
}

/// Returns `true` if a recorder is installed, so that it is worth reading times from the GPU. The facade's
/// placeholder for a missing recorder has size 0. A real recorder of size 0 receives only the times that other
/// code has read.
fn has_recorder() -> bool {
    metrics::with_recorder(|recorder| size_of_val(recorder) > 0)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use metrics::{
        Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    };

    use super::*;

    /// A recorder that panics in every method.
    #[derive(Default)]
    struct Panicking(AtomicU32);

    impl Panicking {
        fn panic(&self) -> ! {
            self.0.fetch_add(1, Relaxed);
            panic!("a recorder that panics");
        }
    }

    impl Recorder for Panicking {
        fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
            self.panic()
        }
        fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
            self.panic()
        }
        fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {
            self.panic()
        }
        fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
            self.panic()
        }
        fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
            self.panic()
        }
        fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
            self.panic()
        }
    }

    #[test]
    fn panicking_recorder_ends_one_publication_only() {
        let recorders = [Panicking::default(), Panicking::default()];
        for recorder in &recorders {
            metrics::with_local_recorder(recorder, || publish_all(true));
            assert_eq!(recorder.0.load(Relaxed), 1);
        }
    }
}
