//! GPU time for `tracing` spans: a layer that records spans as functions of recorded calls.

mod counts;
mod kept;
mod roots;
mod sites;
mod span_state;

use std::fmt::Debug;

use tracing_core::Subscriber;
use tracing_core::field::{Field, Visit};
use tracing_core::span::{Attributes, Id};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use crate::base::{console, fork, inside};
use crate::call::spans::counts::{EXPECTED, LIVE, PARTS, SUSPENDED};
use crate::call::spans::span_state::{EnclosingSpans, SpanState};
use crate::record::opened;
use crate::types::key::{KeyText, SeriesKey};
use crate::types::sampling::Sampling;

/// A layer for [`tracing`](https://docs.rs/tracing) that reports the device time of spans. Returned by
/// [`spans`].
///
/// Spans become rows of the report and paths of the call tree, alongside annotated functions, with the
/// kernels, copies and memsets that were enqueued while they were entered. Their name is `target::name`.
///
/// In each phase, the layer records every root span with all spans inside it, or a random share of them if
/// [`sample`](Spans::sample) sets one. A root is a span without an explicit parent, created while its thread is not
/// inside another span that it entered in the same phase. So a span around the whole program hides no others. Totals are
/// estimated for all spans. A span inside a recorded call of an annotated function is recorded with that call. If a span
/// is created once and entered for each call, as in candle's models, each entry counts as a call.
///
/// `GPU_TIME`, `GPU_TIME_FILTER`, `GPU_TIME_RECORD` and `GPU_TIME_BUDGET` apply to spans as they do to
/// functions. Without CUPTI, chosen spans are counted as lost, and the report says why.
#[derive(Clone, Debug)]
#[must_use = "a layer does nothing until it is added to a subscriber"]
pub struct Spans {
    rate: Sampling,
    key: Option<&'static str>,
}

/// Returns a layer for [`tracing`](https://docs.rs/tracing) that reports the device time of spans.
///
/// ```no_run
/// use tracing_subscriber::prelude::*;
///
/// tracing_subscriber::registry().with(gpu_time_runtime::spans()).init();
/// ```
pub fn spans() -> Spans {
    Spans { rate: Sampling::ALL, key: None }
}

impl Spans {
    /// Sets the share of a phase's root spans to record, from 0 to 1. With 0, spans are recorded only inside recorded
    /// calls of annotated functions.
    ///
    /// Any other value is ignored, with a line on stderr.
    pub fn sample(mut self, share: f64) -> Spans {
        match Sampling::of_share(share) {
            Some(rate) => self.rate = rate,
            None => {
                if let Some(_call) = fork::begin_call() {
                    console::complain(format!(
                        "invalid value `{share}` for `spans().sample`: expected a share from `0` to `1`"
                    ));
                }
            }
        }
        self
    }

    /// Splits spans that have this field into one series per value, such as a shape or a kind of request.
    /// The value is read when the span is created. Each span has at most 64 values; further values
    /// share `<other>`.
    pub fn key(mut self, field: &'static str) -> Spans {
        self.key = Some(field);
        self
    }

    /// Returns the state of a new span.
    fn span_state(&self, span: &Attributes<'_>, chosen: Option<f64>) -> Option<SpanState> {
        let field = self.key.and_then(|key| span.metadata().fields().field(key));
        let text = field.and_then(|field| {
            // May run the user's `Debug` implementation.
            let mut value = Value { field, text: None };
            span.record(&mut value);
            value.text
        });
        let _inside = inside::try_enter()?;
        let of = sites::find(span.metadata(), self.key);
        let key = text.map_or(SeriesKey::NONE, |text| of.site.keys.find(&text));
        match chosen {
            // Each entry of a kept span is chosen separately.
            Some(_) if of.kept.get() => None,
            Some(chosen) => Some(SpanState::chosen(of, key, chosen)),
            None => Some(SpanState::new(of, key)),
        }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    #[inline]
    fn on_new_span(&self, span: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let chosen = if span.parent().is_none() { roots::choose_new(self.rate) } else { None };
        if chosen.is_some() || (self.key.is_some() && opened::is_inside()) {
            self.create(span, id, &context, chosen);
        }
    }

    #[inline]
    fn on_enter(&self, id: &Id, context: Context<'_, S>) {
        let is_root = roots::enter();
        let chosen = if is_root { roots::choose_entered(self.rate) } else { None };
        if chosen.is_some()
            || SUSPENDED.has_any()
            || opened::is_inside()
            || (is_root && (EXPECTED.has_any() || LIVE.has_any()))
        {
            self.enter(id, &context, is_root, chosen);
        }
    }

    #[inline]
    fn on_exit(&self, id: &Id, context: Context<'_, S>) {
        roots::exit();
        if SUSPENDED.has_any() || opened::is_inside() {
            change(id, &context, SpanState::exit);
        }
    }

    #[inline]
    fn on_close(&self, id: Id, context: Context<'_, S>) {
        if PARTS.has_any() {
            change(&id, &context, SpanState::close);
        }
    }
}

impl Spans {
    #[cold]
    fn create<S: Subscriber + for<'a> LookupSpan<'a>>(
        &self,
        span: &Attributes<'_>,
        id: &Id,
        context: &Context<'_, S>,
        chosen: Option<f64>,
    ) {
        if !fork::is_forked()
            && let Some(data) = context.span(id)
            && let Some(span_state) = self.span_state(span, chosen)
        {
            data.extensions_mut().replace(span_state);
        }
    }

    #[cold]
    fn enter<S: Subscriber + for<'a> LookupSpan<'a>>(
        &self,
        id: &Id,
        context: &Context<'_, S>,
        is_root: bool,
        chosen: Option<f64>,
    ) {
        if fork::is_forked() {
            return;
        }
        let Some(_inside) = inside::try_enter() else { return };
        let Some(span) = context.span(id) else { return };
        let around = || around(&span);
        let mut extensions = span.extensions_mut();
        if let Some(span_state) = extensions.get_mut::<SpanState>() {
            span_state.enter(is_root, chosen, around);
            return;
        }
        let around = if opened::is_inside() { None } else { Some(around()) };
        if chosen.is_some() || around.as_ref().is_none_or(Option::is_some) {
            let mut span_state =
                SpanState::new(sites::find(span.metadata(), self.key), SeriesKey::NONE);
            span_state.enter(is_root, chosen, || around.flatten());
            extensions.replace(span_state);
        }
    }
}

/// Returns the recorded spans around this one.
fn around<'a, R: LookupSpan<'a>>(span: &SpanRef<'a, R>) -> Option<EnclosingSpans> {
    let mut callers = Vec::new();
    let mut weight = None;
    for outer in span.scope().skip(1) {
        if let Some((site, of)) =
            outer.extensions().get::<SpanState>().and_then(SpanState::recorded)
        {
            callers.insert(0, site);
            weight.get_or_insert(of);
        }
    }
    weight.map(|weight| EnclosingSpans { callers, weight })
}

#[cold]
fn change<S: Subscriber + for<'a> LookupSpan<'a>>(
    id: &Id,
    context: &Context<'_, S>,
    change: fn(&mut SpanState),
) {
    if fork::is_forked() {
        return;
    }
    let Some(_inside) = inside::try_enter() else { return };
    if let Some(span) = context.span(id)
        && let Some(span_state) = span.extensions_mut().get_mut::<SpanState>()
    {
        change(span_state);
    }
}

/// Reads the value of one field as text.
struct Value {
    field: Field,
    text: Option<KeyText>,
}

impl Visit for Value {
    fn record_str(&mut self, field: &Field, value: &str) {
        if *field == self.field {
            self.text = Some(KeyText::of(value));
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if *field == self.field {
            self.text = Some(KeyText::of(&format_args!("{value:?}")));
        }
    }
}
