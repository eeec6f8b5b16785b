//! What a GPU did with its time: busy with functions, busy with other work, idle.

use crate::coverage::FAR;
use crate::figure::{Bound, Figure};
use crate::own_times::{self, OwnTime, Rows, sum};
use crate::units::percent;
use crate::{Coverage, Device, Snapshot};

/// The minimum share of its processes' run for which a device is in use throughout.
const THROUGHOUT: f64 = 0.95;
/// The minimum share that reads as all of the run.
const WHOLE: f64 = 0.9995;
/// The minimum share of the run for which functions ran that phases must have seen.
const NOTICEABLE: f64 = 0.01;

/// What shares of a device that is in use throughout are of.
pub const RUN: &str = "the run";

/// What a GPU did with its time.
pub struct GpuTime<'a> {
    pub device: &'a Device,
    /// The time for which the GPU was in use. Shares of its time are shares of it.
    pub in_use_ns: f64,
    /// The same in words.
    pub of: &'static str,
    /// The functions' own times on the GPU, longest first. Empty if no function ran on it.
    pub times: Vec<OwnTime<'a>>,
    /// The time for which functions kept it busy: the sum of the own times, but not more than phases for the whole run found
    /// of functions, or than the time in use. The part of it that is an upper bound is not more than phases found of
    /// functions beside the rest.
    pub busy: Figure,
    /// An unknown part of the work ran at the same time as other work.
    pub is_partial: bool,
    /// The share for which phases found it idle. Without an error if there are too few phases.
    pub idle: Option<Figure>,
    /// The phases saw no work of annotated functions, although functions ran for long. Nothing that they found stands
    /// for the run then.
    pub is_missed: bool,
}

impl<'a> GpuTime<'a> {
    pub fn of(snapshot: &'a Snapshot, device: &'a Device, rows: &Rows<'a>) -> GpuTime<'a> {
        let process = &snapshot.process;
        let in_use_ns = process.in_use_ns(device);
        let is_part = in_use_ns < THROUGHOUT * process.run_ns(device);
        let times = own_times::of(snapshot, Some(&device.id), rows);
        let is_blind = |phases: &Coverage| phases.attributed <= 0.0;
        let mut gpu = GpuTime {
            device,
            in_use_ns,
            of: if is_part { "the time since the GPU's first use" } else { RUN },
            busy: Figure::new(sum(&times), Bound::Exact),
            is_partial: false,
            idle: None,
            is_missed: device.known_coverage().is_some_and(is_blind)
                && sum(&times) > NOTICEABLE * in_use_ns,
            times,
        };
        gpu.limit_busy();
        gpu.idle = gpu.phases().map(|phases| Figure::estimate(phases.idle, phases.idle_error));
        gpu
    }

    /// Limits the busy time to what phases found, and to the time in use: the work of several functions may run at once.
    fn limit_busy(&mut self) {
        let phases = self.phases_of_all();
        let found_ns =
            phases.map(|phases| phases.attributed * phases.stands_for_ns(self.in_use_ns));
        let mut ns = sum(&self.times);
        if let Some(found_ns) = found_ns.filter(|_| phases.is_some_and(Coverage::is_whole_run)) {
            ns = ns.min(found_ns);
        }
        // Neither events nor calls in random phases show how much work ran at once, but a sum of estimates above what phases
        // found, or above the time, shows that some did.
        let error = phases.and_then(|phases| phases.attributed_error);
        let errors_ns = self.times.iter().map(|time| time.error_ns).sum::<f64>();
        let is_above = |found_ns| Some(ns > found_ns + FAR * (errors_ns + error? * self.in_use_ns));
        let is_at_once = errors_ns > 0.0 && found_ns.and_then(is_above).unwrap_or_default();
        self.is_partial = is_at_once || ns > self.in_use_ns;
        let is_bound = self.is_partial || self.times.iter().any(OwnTime::is_bound);
        // Times by events may include pauses, but phases know how busy functions kept the GPU.
        let most_ns = match found_ns.filter(|_| is_bound) {
            Some(found_ns) if self.is_partial => found_ns,
            Some(found_ns) => found_ns.max(self.times.iter().map(OwnTime::known_ns).sum()),
            None => self.in_use_ns,
        };
        self.busy = Figure::new(ns.min(most_ns).min(self.in_use_ns), Bound::at_most(is_bound));
    }

    /// Returns the phases, if they tell how idle the GPU was.
    pub fn phases(&self) -> Option<&'a Coverage> {
        self.device.known_coverage().filter(|_| !self.is_missed)
    }

    /// Does the same, except where some of the merged reports with the GPU have no phases: those of the others say
    /// nothing about these.
    pub fn phases_of_all(&self) -> Option<&'a Coverage> {
        self.device.coverage_of_all().filter(|_| !self.is_missed)
    }

    /// Returns `true` if functions ran on the GPU, but it has no phases, or not those of all merged reports.
    pub fn is_without_phases(&self) -> bool {
        self.device.coverage_of_all().is_none() && !self.times.is_empty()
    }

    /// Returns the share of the time in use for which functions kept the GPU busy.
    pub fn busy_share(&self) -> f64 {
        self.busy.value / self.in_use_ns
    }

    /// Returns `true` if no part of any function's time is more than an upper bound.
    pub fn is_all_bound(&self) -> bool {
        !self.times.iter().any(|time| time.is_partly_known)
    }

    /// Returns `true` if functions account for all of the run, so that nothing is left.
    pub fn is_whole(&self) -> bool {
        self.busy_share() >= WHOLE
    }

    /// Returns the idle share that phases found. `None` if they are too few.
    pub fn known_idle(&self) -> Option<f64> {
        self.idle.filter(|idle| idle.error.is_some()).map(|idle| idle.value)
    }

    /// Returns the most that the idle share can be, by phases or by the time that functions leave.
    pub fn most_idle(&self) -> Option<f64> {
        let is_left = !self.times.is_empty() && !self.busy.is_bound();
        let left = is_left.then(|| 1.0 - self.busy_share());
        self.known_idle().or(left)
    }

    /// Returns the share for which functions kept the GPU busy as a clause.
    fn busy_sentence(&self) -> String {
        let (share, of) = (percent(self.busy_share()), self.of);
        if self.is_all_bound() {
            return format!(
                "At most {share} busy: the GPU may have waited for the CPU in every call"
            );
        }
        if self.busy.is_bound() && self.is_whole() {
            let why = if self.is_partial {
                "it is unknown how much of their work ran at once"
            } else {
                "the GPU may have waited for the CPU in some calls"
            };
            return format!("Timed functions may account for all of {of}: {why}");
        }
        let at_most = if self.busy.is_bound() { "at most " } else { "" };
        format!("Timed functions account for {at_most}{share} of {of}")
    }

    /// Returns how busy the GPU was: as phases found it, and if these do not tell, as functions kept it. `advised` are phases
    /// that would tell.
    pub fn sentences(&self, advised: Option<&str>) -> impl Iterator<Item = String> {
        let is_told = self.idle.is_some() || self.times.is_empty();
        let by_functions = (!is_told).then(|| self.functions_sentence(advised));
        self.phases_sentence().into_iter().chain(by_functions)
    }

    fn phases_sentence(&self) -> Option<String> {
        let coverage = self.device.coverage.as_ref()?;
        if self.is_missed {
            let windows = coverage.windows_words();
            return Some(format!("{windows} saw no work of annotated functions"));
        }
        let sentence = self.device.coverage_sentence(match self.of {
            RUN => "wall time",
            of => of,
        })?;
        let others = if self.device.is_shared() { "; other processes used it too" } else { "" };
        Some(sentence + others)
    }

    fn functions_sentence(&self, advised: Option<&str>) -> String {
        let with_phases = |before: &str, after: &str| {
            let phases = advised.filter(|_| self.device.coverage.is_none());
            phases.map(|phases| format!("{before} `GPU_TIME_RECORD={phases}` {after}"))
        };
        let more = if self.is_all_bound() {
            None
        } else if !self.is_whole() {
            let phases = with_phases(", which", "tells apart").unwrap_or_default();
            Some(format!("; the rest is idle or not annotated{phases}"))
        } else if self.busy.is_bound() {
            with_phases(";", "shows how busy the GPU was")
        } else {
            None
        };
        self.busy_sentence() + &more.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{coverage, gpu, process};
    use crate::tree::fixtures::node;
    use crate::{Node, Process, WindowsFrom};

    fn lasting(wall_ns: u64) -> Process {
        Process { wall_ns, ..process(None) }
    }

    #[test]
    fn windows_tell_since_when_a_device_is_in_use() {
        let process = lasting(1_000);
        let found = |covered_ns, windows_from| {
            let coverage = Some(Coverage { covered_ns, ..coverage() });
            let gpu = Device { coverage, windows_from, ..gpu() };
            let snapshot = Snapshot::new(process.clone(), vec![gpu], Vec::new());
            snapshot.analyzed(|report| (report.gpus[0].in_use_ns, report.gpus[0].of))
        };
        let (ns, of) = found(400.0, None);
        assert!(ns == 400.0 && of != RUN, "{of}");
        assert_eq!(found(980.0, None), (980.0, RUN));
        assert_eq!(found(0.0, None), (1_000.0, "the run"));
        let of_some = Some(WindowsFrom { with: 1, of: 2 });
        assert_eq!(found(400.0, of_some), (1_000.0, "the run"));
        assert_eq!(process.in_use_ns(&gpu()), 1_000.0);
    }

    #[test]
    fn only_users_of_a_device_count() {
        let merged = vec![lasting(300), lasting(500), lasting(200)];
        let process = Process { merged, ..lasting(1_000) };
        let used_by = |used_by| process.in_use_ns(&Device { used_by, ..gpu() });
        assert_eq!(used_by(vec![0, 2]), 500.0);
        assert_eq!((used_by(Vec::new()), used_by(vec![7])), (1_000.0, 1_000.0));
    }

    /// Phases found other work as well.
    #[test]
    fn bounds_are_not_above_what_windows_found_of_functions() {
        let process = process(None);
        let run_ns = process.wall_ns as f64;
        let windows = Coverage { busy: 0.25, idle: 0.75, attributed: 0.2, ..coverage() };
        let gpu = Device { coverage: Some(windows), ..gpu() };
        let bound = Node { upper_bound: true, ..node("f", None, 0.4 * run_ns, 0.4 * run_ns) };
        let snapshot = Snapshot::new(process, vec![gpu], Vec::new()).with_tree(vec![bound]);
        snapshot.analyzed(|report| {
            let busy = report.gpus[0].busy;
            assert!(busy.is_bound() && (busy.value - 0.2 * run_ns).abs() < 1.0, "{busy:?}");
        });
    }

    #[test]
    fn bounds_are_not_below_what_is_known() {
        let process = process(None);
        let run_ns = process.wall_ns as f64;
        let windows = Coverage { busy: 0.2, idle: 0.8, attributed: 0.1, ..coverage() };
        let blind = Coverage { attributed: 0.0, ..windows.clone() };
        for (windows, expected) in [(windows, 0.5), (blind, 0.9)] {
            let gpu = Device { coverage: Some(windows), ..gpu() };
            let bound =
                Node { upper_bound: true, ..node("held", None, 0.4 * run_ns, 0.4 * run_ns) };
            let known = node("opened", None, 0.5 * run_ns, 0.5 * run_ns);
            let snapshot = Snapshot::new(process.clone(), vec![gpu], Vec::new());
            let snapshot = snapshot.with_tree(vec![bound, known]);
            let share = snapshot.analyzed(|report| report.gpus[0].busy_share());
            assert!((share - expected).abs() < 1e-9, "{share}");
        }
    }

    /// Returns a report of phases, and of one function that keeps the GPU busy for half of the run.
    fn report(windows: Coverage) -> Snapshot {
        let process = process(None);
        let gpu = Device { coverage: Some(windows), ..gpu() };
        let ns = 0.5 * process.wall_ns as f64;
        let self_ns_by_device = [(gpu.id.clone(), ns)].into();
        let node = Node { self_ns_by_device, ..node("decode", None, ns, ns) };
        Snapshot::new(process, vec![gpu], Vec::new()).with_tree(vec![node])
    }

    fn windows(idle: f64, error: Option<f64>) -> Coverage {
        let [busy_error, idle_error] = [error; 2];
        Coverage { busy: 1.0 - idle, busy_error, idle, idle_error, ..coverage() }
    }

    fn said(windows: Coverage) -> Vec<String> {
        report(windows).analyzed(|report| report.gpus[0].sentences(None).collect())
    }

    /// Two functions of 0.4 and 0.5 of the run, on streams of their own, keep the GPU busy for less.
    #[test]
    fn work_that_ran_at_once_counts_once() {
        let process = process(None);
        let run_ns = process.wall_ns as f64;
        let whole = Coverage { total_ns: run_ns, covered_ns: run_ns, ..coverage() };
        let few = Coverage { total_ns: 0.1 * run_ns, ..whole.clone() };
        for (phases, error, expected) in [
            (whole, None, (0.6, false)),
            (few.clone(), Some(0.01), (0.6, true)),
            (few, None, (0.9, false)),
        ] {
            let phases = Coverage {
                busy: 0.6,
                idle: 0.4,
                attributed: 0.6,
                attributed_error: error,
                incomplete: 0,
                missed: 0,
                ..phases
            };
            let gpu = Device { coverage: Some(phases), ..gpu() };
            let [one, other] = [0.4, 0.5].map(|share| share * run_ns);
            let node =
                |name, ns| Node { self_error_ns: Some(0.01 * ns), ..node(name, None, ns, ns) };
            let tree = vec![node("one", one), node("other", other)];
            let snapshot = Snapshot::new(process.clone(), vec![gpu], Vec::new()).with_tree(tree);
            let busy = snapshot.analyzed(|report| report.gpus[0].busy);
            assert!((busy.value / run_ns - expected.0).abs() < 1e-9, "{busy:?}");
            assert_eq!(busy.is_bound(), expected.1);
        }
    }

    const BY_FUNCTIONS: &str =
        "Timed functions account for 50.0% of the run; the rest is idle or not annotated";

    #[test]
    fn incomplete_windows_tell_nothing() {
        let none = Coverage { windows: 0, missed: 2, kernels: vec![], ..windows(1.0, None) };
        assert_eq!(said(none), ["no phase is complete: 1 incomplete, 2 missed", BY_FUNCTIONS]);
    }

    /// The process used the GPU only in the last fifth of its run.
    #[test]
    fn windows_of_a_part_of_the_run_say_so() {
        let covered_ns = 0.2 * process(None).wall_ns as f64;
        let table = report(Coverage { covered_ns, ..windows(0.5, Some(0.01)) }).to_string();
        let shares = "busy 50.0 ±1.0%, idle 50.0 ±1.0%, annotated functions 35.0 ±0.4% of the time since the GPU's first use (";
        assert!(table.contains(shares), "{table}");
    }

    #[test]
    fn windows_that_saw_no_function_tell_nothing() {
        let blind = Coverage { attributed: 0.0, ..windows(1.0, None) };
        let saw = "40 phases of 800.0 ms in total saw no work of annotated functions";
        assert_eq!(said(blind), [saw, BY_FUNCTIONS]);
    }
}
