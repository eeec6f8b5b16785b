//! A scripted GPU for the tests of the recorder's rules.

use crate::base::lock::{Mutex, Rank, locked};
use crate::gpu::{Fault, Gpu, Held, HoldResult};
use crate::site::callsite::CallSite;
use crate::stats::clock_fit::ClockFit;
use crate::types::attribute::{Clock, Cold, Launch, ScopeKind, Spec};
use crate::types::handles::{Event, EventPair, Stream};
use crate::types::sampling::Sampling;

/// Logs every call, fails the one that it is told to, and finishes brackets when it is told to.
pub(crate) struct FakeGpu {
    state: Mutex<State>,
}

impl Default for FakeGpu {
    fn default() -> Self {
        FakeGpu { state: Mutex::new(Rank::Fake, State::default()) }
    }
}

#[derive(Default)]
struct State {
    log: Vec<&'static str>,
    fail: Option<(&'static str, Fault)>,
    events: usize,
    /// Events up to this handle have been passed.
    done: usize,
    expired: Vec<u64>,
    tickets: u64,
    now_ns: u64,
    fit: Option<ClockFit>,
    watch: Option<Box<dyn Fn() + Send>>,
    is_gone: bool,
}

impl FakeGpu {
    /// One that lives for ever, as a context does.
    pub fn leak() -> &'static FakeGpu {
        Box::leak(Box::default())
    }

    /// From now on the step of this name fails.
    pub fn fail(&self, step: &'static str, fault: Fault) {
        locked(&self.state).fail = Some((step, fault));
    }

    /// No step fails any more.
    pub fn recover(&self) {
        locked(&self.state).fail = None;
    }

    /// The GPU passes everything recorded so far.
    pub fn finish(&self) {
        locked(&self.state).done = usize::MAX;
    }

    /// The GPU has passed the events made so far, and no later ones.
    pub fn finish_up_to(&self, event: usize) {
        locked(&self.state).done = event;
    }

    /// Every hold from now on ends by its deadline.
    pub fn expire(&self, ticket: u64) {
        locked(&self.state).expired.push(ticket);
    }

    /// The host's clock says this from now on.
    pub fn set_now(&self, ns: u64) {
        locked(&self.state).now_ns = ns;
    }

    /// The device's clock is aligned with the host's.
    pub fn align(&self, fit: ClockFit) {
        locked(&self.state).fit = Some(fit);
    }

    /// The context is destroyed, and that was seen.
    pub fn destroy(&self) {
        locked(&self.state).is_gone = true;
    }

    /// From now on this is called at every step.
    pub fn watch(&self, watch: impl Fn() + Send + 'static) {
        locked(&self.state).watch = Some(Box::new(watch));
    }

    /// The steps since the last look.
    pub fn take_log(&self) -> Vec<&'static str> {
        std::mem::take(&mut locked(&self.state).log)
    }

    fn step(&self, name: &'static str) -> Result<(), Fault> {
        let mut state = locked(&self.state);
        state.log.push(name);
        state.watch.iter().for_each(|watch| watch());
        match state.fail {
            Some((step, fault)) if step == name => Err(fault),
            _ => Ok(()),
        }
    }
}

impl Gpu for FakeGpu {
    fn is_capturing(&self, _: Stream) -> Result<bool, Fault> {
        self.step("is_capturing").map(|()| false)
    }

    fn create_event(&self) -> Result<Event, Fault> {
        self.step("create")?;
        let mut state = locked(&self.state);
        state.events += 1;
        Ok(Event::new(state.events))
    }

    fn discard(&self, _: &EventPair) {
        _ = self.step("discard");
    }

    fn record(&self, event: &Event, _: Stream) -> Result<(), Fault> {
        self.step(if event.handle() % 2 == 1 { "start" } else { "stop" })
    }

    fn check_alive(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn is_gone(&self) -> bool {
        locked(&self.state).is_gone
    }

    /// A thousand nanoseconds for each handle.
    fn elapsed(&self, pair: &EventPair) -> Result<Option<f64>, Fault> {
        self.step("elapsed")?;
        let done = locked(&self.state).done;
        Ok((pair.stop.handle() <= done).then_some(pair.stop.handle() as f64 * 1_000.0))
    }

    /// A thousand nanoseconds for each handle.
    fn since(&self, pair: &EventPair) -> Option<f64> {
        _ = self.step("since");
        Some((pair.stop.handle() as f64 - pair.start.handle() as f64) * 1_000.0)
    }

    fn clock(&self) -> Option<ClockFit> {
        locked(&self.state).fit
    }

    fn now_ns(&self) -> u64 {
        locked(&self.state).now_ns
    }

    fn flush(&self, _: Stream, _: Cold) -> Result<(), Fault> {
        self.step("flush")
    }

    fn hold(&self, _: Stream, _: u64) -> Result<Held, Fault> {
        self.step("hold")?;
        let mut state = locked(&self.state);
        state.tickets += 1;
        Ok(Held { slot: 1, ticket: state.tickets })
    }

    fn delay(&self, _: Stream, _: u64) -> Result<(), Fault> {
        self.step("delay")
    }

    fn release(&self, held: Held) -> HoldResult {
        _ = self.step("release");
        HoldResult { slot: held.slot, ticket: held.ticket }
    }

    fn has_expired(&self, hold: HoldResult) -> bool {
        locked(&self.state).expired.contains(&hold.ticket)
    }

    fn is_at_floor(&self, raw_ns: f64) -> bool {
        raw_ns <= 1_344.0
    }
}

/// A site of two launches that the registry does not know.
pub(crate) fn site() -> &'static CallSite {
    Box::leak(Box::new(CallSite::new(Spec {
        path: || "test::f::marker",
        name: None,
        file: file!(),
        line: line!(),
        column: 1,
        warmup: 0,
        sampling: Sampling::ALL,
        cold: None,
        sleep: None,
        graph: false,
        is_async: false,
        scope: ScopeKind::Launches,
        clock: Clock::Events,
        launches: &[Launch { name: "launch", line: 1 }, Launch { name: "launch", line: 2 }],
        is_single: false,
        options: "",
    })))
}
