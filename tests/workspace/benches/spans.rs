//! Measures the host cost that gpu-time adds to a `tracing` span that it does not record.
//!
//! ```text
//! cargo bench --features tracing --bench spans
//! ```
//!
//! Compares a `Registry` that has gpu-time's layer and a no-op layer with a `Registry` that has
//! only the no-op layer, in alternating repetitions. A `Registry` without any layer would never
//! release a span. Prints one table and fails if a bound is exceeded.

#[allow(dead_code, reason = "the table has kinds of bounds that are not used here")]
#[path = "../../../benches/overhead/table.rs"]
mod table;

use std::hint::black_box;
use std::time::{Duration, Instant};

use table::{Bound, Figure, Table};
use tracing::{Dispatch, Span, dispatcher, info_span};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;

const SPANS: u32 = 50_000;
const REPETITIONS: usize = 101;
/// The maximum cost of creating, entering, exiting and closing one span.
const MOST_NS: f64 = 15.0;

/// A layer that does nothing.
struct Idle;

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Idle {}

/// Creates, enters, exits and closes a root span.
fn root(_: &Span) {
    info_span!("root").in_scope(|| black_box(()));
}

/// Creates, enters, exits and closes a root span with nine children.
fn ten(_: &Span) {
    info_span!("root").in_scope(|| {
        for _ in 0..9 {
            info_span!("child").in_scope(|| black_box(()));
        }
    });
}

/// Creates, enters, exits and closes `depth` nested spans.
fn nested(depth: u32) {
    if depth > 0 {
        info_span!("nested").in_scope(|| nested(depth - 1));
    }
}

fn fifty(_: &Span) {
    nested(50);
}

/// Enters and exits a span, as each poll of a future does.
fn poll(span: &Span) {
    span.in_scope(|| black_box(()));
}

/// Returns the mean time of a call to `spans` under a subscriber, in nanoseconds.
fn ns_per_call(subscriber: &Dispatch, spans: fn(&Span)) -> f64 {
    dispatcher::with_default(subscriber, || {
        let span = info_span!("polled");
        let start = Instant::now();
        for _ in 0..SPANS {
            spans(&span);
        }
        start.elapsed().as_nanos() as f64 / f64::from(SPANS)
    })
}

/// Measures the time per span under `with` minus the time under `base`, in alternating repetitions.
fn over(base: &Dispatch, with: &Dispatch, spans: fn(&Span), number: f64) -> Figure {
    let difference = |_| {
        let base = ns_per_call(base, spans);
        (ns_per_call(with, spans) - base) / number
    };
    Figure::of((0..REPETITIONS).map(difference).collect())
}

fn main() {
    // SAFETY: no other thread is running yet.
    #[allow(unsafe_code)]
    unsafe {
        std::env::set_var("GPU_TIME_REPORT", "none");
        std::env::set_var("GPU_TIME_RECORD", "off");
    }
    let mut table = Table::default();
    let alone = Dispatch::new(tracing_subscriber::registry().with(Idle));
    let layer = gpu_time::spans().sample(0.0);
    let with = Dispatch::new(tracing_subscriber::registry().with(Idle).with(layer));
    let started = Instant::now();
    while started.elapsed() < Duration::from_millis(500) {
        ns_per_call(&alone, root);
    }
    let plain = (0..REPETITIONS).map(|_| ns_per_call(&alone, root)).collect();
    table.row("root span, `tracing` alone", Figure::of(plain), "ns", Bound::None);
    for (label, spans, number) in [
        ("root span, over `tracing` alone", root as fn(&Span), 1.0),
        ("each of ten nested, over `tracing` alone", ten, 10.0),
        ("each of fifty inside of each other, over `tracing` alone", fifty, 50.0),
        ("poll, over `tracing` alone", poll, 1.0),
    ] {
        let figure = over(&alone, &with, spans, number);
        table.row(label, figure, "ns", Bound::AtMost(MOST_NS));
    }
    print!("{table}");
    if table.has_missed() {
        std::process::exit(1);
    }
}
