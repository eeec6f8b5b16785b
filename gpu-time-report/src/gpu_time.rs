//! What a GPU did with its time: busy with functions, busy with other work, idle.

use crate::busy_time::BusyTime;
use crate::coverage::FAR;
use crate::idle::{self, Idle};
use crate::in_use::{InUse, RUN, all_windows};
use crate::own_times::{self, Rows};
use crate::units::percent;
use crate::{Coverage, Device, Process, Snapshot};

/// What a GPU did with its time.
pub struct GpuTime<'a> {
    pub device: &'a Device,
    pub in_use: InUse,
    /// The time for which functions kept it busy. It has no times if no function ran on the GPU.
    pub busy: BusyTime<'a>,
    /// `None` without phases that tell it.
    pub idle: Option<Idle>,
    /// The share of the run for which recorded calls are known to have kept it busy.
    pub recorded: f64,
    /// The phases saw no work of annotated functions, although functions ran for long. Nothing that they found stands
    /// for the run then.
    pub is_missed: bool,
}

impl<'a> GpuTime<'a> {
    pub fn of(snapshot: &'a Snapshot, device: &'a Device, rows: &Rows<'a>) -> GpuTime<'a> {
        let in_use = InUse::of(&snapshot.process, device);
        let times = own_times::of(snapshot, Some(&device.id), rows);
        let is_missed = idle::is_missed(device, &times, in_use.ns);
        let windows = all_windows(device).filter(|_| !is_missed);
        let busy = BusyTime::of(device, times, in_use.ns, windows);
        let recorded = idle::recorded_share(snapshot, device, in_use.ns);
        let phases = device.known_coverage().filter(|_| !is_missed);
        let idle = phases.map(|phases| Idle::of(phases, device.windows_from, recorded));
        GpuTime { device, in_use, busy, idle, recorded, is_missed }
    }

    /// Returns the phases, if they tell how idle the GPU was.
    pub fn phases(&self) -> Option<&'a Coverage> {
        self.device.known_coverage().filter(|_| !self.is_missed)
    }

    /// Does the same, except where some of the merged reports with the GPU have no phases: those of the others say
    /// nothing about these.
    pub fn phases_of_all(&self) -> Option<&'a Coverage> {
        all_windows(self.device).filter(|_| !self.is_missed)
    }

    /// Returns the time for which functions kept it busy, if any ran on it.
    pub fn known_busy(&self) -> Option<&BusyTime<'a>> {
        Some(&self.busy).filter(|busy| !busy.times.is_empty())
    }

    /// Returns `true` if functions ran on the GPU, but it has no phases, or not those of all merged reports.
    pub fn is_without_phases(&self) -> bool {
        all_windows(self.device).is_none() && !self.busy.times.is_empty()
    }

    /// Returns how busy phases found a GPU, in words. `None` without phases.
    pub fn phases_sentence(&self) -> Option<String> {
        let coverage = self.device.coverage.as_ref()?;
        if self.is_missed {
            let windows = coverage.windows_words();
            return Some(format!("{windows} saw no work of annotated functions"));
        }
        self.device.coverage_sentence(match self.in_use.words {
            RUN => "wall time",
            of => of,
        })
    }

    /// Returns a warning if the phases of a device contradict what recorded calls measured exactly. In a
    /// merged report, only some of the processes may have done so.
    pub fn contradiction(&self, process: &Process) -> Option<String> {
        let coverage = all_windows(self.device).filter(|_| process.merged.len() <= 1)?;
        let (busy, error) = (coverage.busy, coverage.busy_error?);
        let exact = self.recorded;
        (exact > busy + FAR * error).then(|| {
            format!(
                "phases found the GPU busy for {:.1} ±{:.1}% of the time, but recorded calls alone kept it busy for {} \
                 of {}: the phases do not stand for the run",
                100.0 * busy,
                100.0 * error,
                percent(exact),
                self.in_use.words
            )
        })
    }
}
