//! The host cost of a span that is not recorded, over `tracing` alone.
//!
//! ```text
//! cargo bench --features tracing --bench spans
//! ```
//!
//! Compares a `Registry` that has the layer of gpu-time and one that does nothing with a `Registry` that has
//! the latter alone, in alternating repetitions. Without any layer it would never release a span. Prints one
//! table and fails if a bound is missed.

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
/// The bound on one span, created, entered, left and closed.
const MOST_NS: f64 = 15.0;

/// A layer that does nothing.
struct Idle;

impl<S: tracing::Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Idle {}

/// Creates, enters, leaves and closes a root span.
fn root(_: &Span) {
    info_span!("root").in_scope(|| black_box(()));
}

/// Does the same with a root and nine spans inside.
fn ten(_: &Span) {
    info_span!("root").in_scope(|| {
        for _ in 0..9 {
            info_span!("child").in_scope(|| black_box(()));
        }
    });
}

/// Does the same with spans nested this deep.
fn nested(depth: u32) {
    if depth > 0 {
        info_span!("nested").in_scope(|| nested(depth - 1));
    }
}

fn fifty(_: &Span) {
    nested(50);
}

/// Enters and leaves a span, as each poll of a future does.
fn poll(span: &Span) {
    span.in_scope(|| black_box(()));
}

/// Returns the mean nanoseconds per repetition of `spans` under a subscriber.
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

/// Measures one subscriber minus another, per span, in alternating repetitions.
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
