//! Live export: every series through the `metrics` facade, to the recorder that the program installed.
//!
//! A thread of our own publishes about once a second what has come since it last did. So no recorder's
//! code runs on a timed call's path or under a lock that such a call takes, and what a thread timed
//! before it fell silent is published all the same. Nothing is kept of the recorder: each publication
//! speaks to the one that is there, and what came before it was installed is in none.

mod names;
mod seen;

use std::sync::Once;
use std::time::Duration;
use std::{panic, ptr, thread};

use metrics::gauge;

use crate::base::background;
use crate::base::console;
use crate::base::fork;
use crate::base::lock::{Mutex, Rank, locked};
use crate::base::switches;
use crate::collect;
use crate::control::budget_control;
use seen::Seen;

/// How old what a scrape finds may be, beside what a publication takes.
const PERIOD: Duration = Duration::from_secs(1);

/// What was published already.
static SEEN: Mutex<Seen> = Mutex::new(Rank::Exported, Seen::new());

/// Starts the thread. To be called once.
pub(crate) fn arm() {
    if let Err(error) = background::spawn("gpu-time-metrics", publish_for_ever) {
        console::say(&format!("no thread to publish metrics: {error}"));
    }
}

fn publish_for_ever() {
    loop {
        thread::sleep(PERIOD);
        if switches::is_closed() {
            return;
        }
        publish_all(is_heard());
    }
}

/// Publishes what the GPU has finished until now.
pub(crate) fn publish() {
    if !fork::is_forked() {
        publish_all(true);
    }
}

/// A recorder is the program's code. One that panics is published to again the next time.
fn publish_all(looks: bool) {
    static ONCE: Once = Once::new();
    if panic::catch_unwind(|| tell_all(looks)).is_err() {
        let line = "the recorder for metrics has panicked, and lacks some of what it was told then";
        ONCE.call_once(|| console::say(line));
    }
}

fn tell_all(looks: bool) {
    let mut seen = locked(&SEEN);
    let recorder = metrics::with_recorder(|recorder| ptr::from_ref(recorder).addr());
    if seen.recorder != recorder {
        names::describe();
        seen.recorder = recorder;
    }
    for (counted, shown) in collect::counted(looks) {
        seen.publish(&counted, shown);
    }
    if let Some(budget) = budget_control::settled() {
        gauge!(names::BUDGET_SHARE).set(budget.share);
        gauge!(names::BUDGET_COST_SHARE).set(budget.cost_share);
    }
}

/// Whether a recorder was installed, for whom it is worth to look at the GPU. What the facade has in its
/// place is of no size. A recorder without size is published to as well, once somebody has looked.
fn is_heard() -> bool {
    metrics::with_recorder(|recorder| size_of_val(recorder) > 0)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    use metrics::{
        Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    };

    use super::*;

    /// Panics whenever it is told something.
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

    /// The thread that publishes goes on, and so does whoever calls `publish`.
    #[test]
    fn a_recorder_that_panics_ends_no_more_than_a_publication() {
        let recorders = [Panicking::default(), Panicking::default()];
        for recorder in &recorders {
            metrics::with_local_recorder(recorder, || publish_all(true));
            assert_eq!(recorder.0.load(Relaxed), 1);
        }
    }
}
