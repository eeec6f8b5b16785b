//! A scripted GPU, for tests of the recorder.

use crate::base::lock::{Mutex, Rank, locked};
use crate::gpu::{Fault, Gpu, HoldResult, StreamHold};
use crate::site::callsite::CallSite;
use crate::stats::clock_fit::ClockFit;
use crate::types::attribute::{Cold, LaunchSpec, ScopeKind, Spec};
use crate::types::handles::{Event, EventPair, Stream};

/// A GPU that logs every step. Steps fail and brackets finish as instructed by the test.
pub(crate) struct FakeGpu {
    script: Mutex<Script>,
}

impl Default for FakeGpu {
    fn default() -> Self {
        FakeGpu { script: Mutex::new(Rank::Fake, Script::default()) }
    }
}

#[derive(Default)]
struct Script {
    log: Vec<&'static str>,
    fail: Option<(&'static str, Fault)>,
    events: usize,
    /// The events that have not been destroyed, and the most that there may be.
    live: usize,
    most: Option<usize>,
    /// The GPU has passed the events up to this handle.
    done: usize,
    expired: Vec<u64>,
    tickets: u64,
    now_ns: u64,
    fit: Option<ClockFit>,
    watch: Option<Box<dyn Fn() + Send>>,
    is_gone: bool,
}

impl FakeGpu {
    /// Creates a GPU that lives until the process ends, like a context.
    pub fn leak() -> &'static FakeGpu {
        Box::leak(Box::default())
    }

    /// Makes the step with this name fail from now on.
    pub fn fail(&self, step: &'static str, fault: Fault) {
        locked(&self.script).fail = Some((step, fault));
    }

    /// Makes every step succeed again.
    pub fn recover(&self) {
        locked(&self.script).fail = None;
    }

    /// Refuses to create an event while there are this many.
    pub fn limit_events(&self, most: usize) {
        locked(&self.script).most = Some(most);
    }

    /// Returns the number of events that have not been destroyed.
    pub fn live_events(&self) -> usize {
        locked(&self.script).live
    }

    /// Lets the GPU pass all events, including those recorded later.
    pub fn finish(&self) {
        locked(&self.script).done = usize::MAX;
    }

    /// Lets the GPU pass the events up to this handle, and no later ones.
    pub fn finish_up_to(&self, event: usize) {
        locked(&self.script).done = event;
    }

    /// Makes the hold with this ticket expire.
    pub fn expire(&self, ticket: u64) {
        locked(&self.script).expired.push(ticket);
    }

    /// Sets the host clock.
    pub fn set_now(&self, ns: u64) {
        locked(&self.script).now_ns = ns;
    }

    /// Aligns the device clock with the host clock.
    pub fn align(&self, fit: ClockFit) {
        locked(&self.script).fit = Some(fit);
    }

    /// Marks the context as destroyed.
    pub fn destroy(&self) {
        locked(&self.script).is_gone = true;
    }

    /// Calls `watch` at every step from now on.
    pub fn watch(&self, watch: impl Fn() + Send + 'static) {
        locked(&self.script).watch = Some(Box::new(watch));
    }

    /// Returns the steps since the last call.
    pub fn take_log(&self) -> Vec<&'static str> {
        std::mem::take(&mut locked(&self.script).log)
    }

    fn step(&self, name: &'static str) -> Result<(), Fault> {
        let mut script = locked(&self.script);
        script.log.push(name);
        script.watch.iter().for_each(|watch| watch());
        match script.fail {
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
        let mut script = locked(&self.script);
        if script.most.is_some_and(|most| script.live >= most) {
            return Err(Fault::Exhausted);
        }
        (script.events, script.live) = (script.events + 1, script.live + 1);
        Ok(Event::new(script.events))
    }

    fn discard(&self, events: &[Event]) {
        _ = self.step("discard");
        locked(&self.script).live -= events.len();
    }

    fn record_start(&self, _: &EventPair, _: Stream) -> Result<(), Fault> {
        self.step("start")
    }

    fn record_stop(&self, _: &EventPair, _: Stream) -> Result<(), Fault> {
        self.step("stop")
    }

    fn check_alive(&self) -> Result<(), Fault> {
        Ok(())
    }

    fn is_gone(&self) -> bool {
        locked(&self.script).is_gone
    }

    /// A bracket takes 1,000 ns times the handle of its stop event.
    fn elapsed(&self, pair: &EventPair) -> Result<Option<f64>, Fault> {
        self.step("elapsed")?;
        let done = locked(&self.script).done;
        Ok((pair.stop.handle() <= done).then_some(pair.stop.handle() as f64 * 1_000.0))
    }

    /// Events with consecutive handles are 1,000 ns apart.
    fn since(&self, pair: &EventPair) -> Option<f64> {
        _ = self.step("since");
        Some((pair.stop.handle() as f64 - pair.start.handle() as f64) * 1_000.0)
    }

    fn clock(&self) -> Option<ClockFit> {
        locked(&self.script).fit
    }

    fn now_ns(&self) -> u64 {
        locked(&self.script).now_ns
    }

    fn flush(&self, _: Stream, _: Cold) -> Result<(), Fault> {
        self.step("flush")
    }

    fn hold(&self, _: Stream, _: u64) -> Result<StreamHold, Fault> {
        self.step("hold")?;
        let mut script = locked(&self.script);
        script.tickets += 1;
        Ok(StreamHold { slot: 1, ticket: script.tickets })
    }

    fn delay(&self, _: Stream, _: u64) -> Result<(), Fault> {
        self.step("delay")
    }

    fn release(&self, hold: StreamHold) -> HoldResult {
        _ = self.step("release");
        HoldResult { slot: hold.slot, ticket: hold.ticket }
    }

    fn has_expired(&self, hold: HoldResult) -> bool {
        locked(&self.script).expired.contains(&hold.ticket)
    }

    fn is_at_floor(&self, raw_ns: f64) -> bool {
        raw_ns <= 1_344.0
    }

    fn added_ns(&self, inner: u16, queued: bool) -> Option<f64> {
        Some(f64::from(inner) * 2_000.0 + if queued { 600.0 } else { 0.0 })
    }
}

/// Creates an unregistered site with two launches.
pub(crate) fn site() -> &'static CallSite {
    Box::leak(Box::new(CallSite::new(Spec {
        scope: ScopeKind::Launches,
        launches: &[LaunchSpec { name: "launch", line: 1 }, LaunchSpec { name: "launch", line: 2 }],
        ..Spec::named("test::f")
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_logged_by_role() {
        let (gpu, stream) = (FakeGpu::default(), Stream(64));
        for (start, stop) in [(1, 2), (2, 3), (4, 6)] {
            let pair = EventPair { start: Event::new(start), stop: Event::new(stop) };
            gpu.record_start(&pair, stream).unwrap();
            gpu.record_stop(&pair, stream).unwrap();
            assert_eq!(gpu.take_log(), ["start", "stop"]);
        }
    }
}
