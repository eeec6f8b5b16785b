//! The figures of single runs, which merged reports keep next to the pooled ones.

use gpu_time_report::{Process, Run, Series, Snapshot, value};

/// The maximum number of runs that a merged report keeps for a series. More runs would hardly
/// improve the estimate of their spread.
const MAX_RUNS: usize = 64;

/// The processes of one report, as runs of the merged report.
pub struct Processes {
    /// The index of the report's first process among the merged processes.
    first: u32,
    /// A pseudo-random number for each process, which does not depend on the order of merging.
    lots: Vec<u64>,
    is_merged: bool,
}

/// The runs of a series with the lowest lots. This is a random selection, and the same one in
/// whichever order the reports are merged.
#[derive(Default)]
pub struct Runs(Vec<(u64, Run)>);

impl Processes {
    /// Numbers the processes of a report, beginning at `already`.
    pub fn of(report: &Snapshot, already: usize) -> Processes {
        let merged = &report.process.merged[..];
        let lots = match merged {
            [] => vec![lot(&report.process)],
            merged => merged.iter().map(lot).collect(),
        };
        let first = u32::try_from(already).unwrap_or(u32::MAX);
        Processes { first, lots, is_merged: !merged.is_empty() }
    }
}

impl Runs {
    /// Adds the runs of a series in a report.
    pub fn add(&mut self, series: &Series, processes: &Processes) -> Result<(), &'static str> {
        let own = series.run(0).filter(|_| !processes.is_merged);
        for run in own.iter().chain(&series.runs) {
            let lot = processes.lots.get(run.process as usize).copied();
            let lot = lot.ok_or("a run is of a process that the report does not list")?;
            self.0.push((
                lot,
                value!(Run { process: processes.first.saturating_add(run.process), ..*run }),
            ));
            if self.0.len() > MAX_RUNS {
                let highest = (0..self.0.len()).max_by_key(|&i| self.0[i].0);
                highest.map(|i| self.0.swap_remove(i));
            }
        }
        Ok(())
    }

    /// Returns the runs in the order of their processes.
    pub fn finish(self) -> Vec<Run> {
        let mut runs: Vec<Run> = self.0.into_iter().map(|(_, run)| run).collect();
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
