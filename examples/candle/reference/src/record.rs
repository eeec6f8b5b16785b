//! The figures that are written at exit.

use serde::Serialize;

use crate::activity::Work;
use crate::cupti::Recorded;

/// Everything that ran on the GPU.
#[derive(Debug, Serialize)]
pub struct Record {
    cupti_version: u32,
    activities: usize,
    /// The time during which at least one activity ran.
    busy_ns: u64,
    /// The time from the first start to the last end.
    span_ns: u64,
    /// Number of activities without times, which all other figures leave out.
    zero_times: u64,
    dropped: usize,
    /// Sorted by total time, the largest first.
    kernels: Vec<Kernel>,
}

/// The activities with one name and launch configuration.
#[derive(Debug, Serialize)]
struct Kernel {
    /// Demangled, or a description such as `[copy HtoD]`.
    name: String,
    grid: [u32; 3],
    block: [u32; 3],
    registers: u16,
    shared_bytes: u32,
    count: usize,
    median_ns: u64,
    total_ns: u64,
}

impl Record {
    pub fn new(recorded: Recorded) -> Record {
        let Recorded { cupti_version, times, zero_times, dropped, .. } = recorded;
        let mut all: Vec<_> = times.values().flatten().copied().collect();
        all.sort_unstable();
        let mut kernels: Vec<_> =
            times.into_iter().map(|(work, times)| Kernel::new(work, &times)).collect();
        kernels.sort_by(|a, b| b.total_ns.cmp(&a.total_ns).then_with(|| a.name.cmp(&b.name)));
        Record {
            cupti_version,
            activities: all.len(),
            busy_ns: busy(&all),
            span_ns: all.iter().map(|&(_, end)| end).max().unwrap_or(0)
                - all.first().map_or(0, |&(start, _)| start),
            zero_times,
            dropped,
            kernels,
        }
    }
}

impl Kernel {
    fn new(work: Work, times: &[(u64, u64)]) -> Kernel {
        let Work { name, grid, block, registers, shared_bytes } = work;
        let mut durations: Vec<_> = times.iter().map(|(start, end)| end - start).collect();
        durations.sort_unstable();
        Kernel {
            name: demangled(&name),
            grid,
            block,
            registers,
            shared_bytes,
            count: durations.len(),
            median_ns: durations[(durations.len() - 1) / 2],
            total_ns: durations.iter().sum(),
        }
    }
}

/// Returns the length of the union of intervals that are sorted by their starts.
fn busy(intervals: &[(u64, u64)]) -> u64 {
    let mut busy = 0;
    let mut covered_to = 0;
    for &(start, end) in intervals {
        busy += end.saturating_sub(start.max(covered_to));
        covered_to = covered_to.max(end);
    }
    busy
}

fn demangled(name: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(name) {
        return format!("{name:#}");
    }
    let demangled = cpp_demangle::Symbol::new(name).ok().and_then(|name| name.demangle().ok());
    demangled.unwrap_or_else(|| name.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_intervals_count_once() {
        assert_eq!(busy(&[]), 0);
        assert_eq!(busy(&[(10, 20), (30, 35)]), 15);
        assert_eq!(busy(&[(10, 20), (12, 15), (15, 25), (25, 26)]), 16);
    }

    #[test]
    fn kernels_are_ordered_by_total_time() {
        let work = Work::without_grid;
        let times = [
            (work("_Z5shortPf"), vec![(100, 101), (110, 113), (120, 129)]),
            (work("long"), vec![(104, 140)]),
        ];
        let record = Record::new(Recorded { times: times.into(), ..Recorded::default() });
        assert_eq!((record.activities, record.busy_ns, record.span_ns), (4, 37, 40));
        let [long, short] = &record.kernels[..] else { panic!("{record:?}") };
        assert_eq!((&*long.name, long.count, long.median_ns, long.total_ns), ("long", 1, 36, 36));
        assert_eq!(
            (&*short.name, short.count, short.median_ns, short.total_ns),
            ("short(float*)", 3, 3, 13)
        );
    }
}
