//! The figures of single runs, which merged reports keep next to the pooled ones.

use std::collections::BTreeMap;

use gpu_time_report::{Process, Run, Series, value};

/// The maximum number of runs that a merged report keeps for a series. More runs would hardly
/// improve the estimate of their spread.
const MAX_RUNS: usize = 64;

/// Returns the processes that a report covers: one, or several if it is itself merged.
pub fn processes(process: &Process) -> &[Process] {
    match &process.merged[..] {
        [] => std::slice::from_ref(process),
        merged => merged,
    }
}

/// The runs of a series with the lowest lots, by lot and process. This is a random selection, and
/// the same one in whichever order the reports are merged.
#[derive(Default)]
pub struct Runs(BTreeMap<(u64, u32), Run>);

impl Runs {
    /// Adds the runs of a series in the report of a process, whose runs begin at the place `first`.
    pub fn add(&mut self, series: &Series, of: &Process, first: u32) -> Result<(), &'static str> {
        let own = series.run(0).filter(|_| of.merged.is_empty());
        for run in own.iter().chain(&series.runs) {
            let of = processes(of).get(run.process as usize);
            let of = of.ok_or("a run is of a process that the report does not list")?;
            let process = first.saturating_add(run.process);
            self.0.insert((lot(of), process), value!(Run { process, ..*run }));
            if self.0.len() > MAX_RUNS {
                self.0.pop_last();
            }
        }
        Ok(())
    }

    /// Returns the runs in the order of their processes.
    pub fn finish(self) -> Vec<Run> {
        let mut runs: Vec<Run> = self.0.into_values().collect();
        runs.sort_by_key(|run| run.process);
        runs
    }
}

/// Hashes a process (FNV-1a, then the finalizer of MurmurHash3, for the same result in every
/// build).
fn lot(process: &Process) -> u64 {
    let Process { name, pid, started, wall_ns, .. } = process;
    let numbers = u64::from(*pid).to_le_bytes().into_iter().chain(wall_ns.to_le_bytes());
    let bytes = name.bytes().chain(started.bytes()).chain(numbers);
    let mut hash = bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ hash >> 33).wrapping_mul(factor);
    }
    hash ^ hash >> 33
}
