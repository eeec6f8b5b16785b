//! Processes that ran at the same time.

use gpu_time_report::Process;

/// Returns, for each process, the place of the first one that ran at the same time, directly or
/// through others, and that has the same `key`. A process without a key, or at an unknown time, is
/// the first one itself.
pub fn firsts<'a, K: Ord>(
    processes: impl Iterator<Item = &'a Process>,
    key: impl Fn(&'a Process) -> Option<K>,
) -> Vec<u32> {
    let (mut firsts, mut known) = (Vec::new(), Vec::new());
    for (place, process) in (0..).zip(processes) {
        firsts.push(place);
        known.extend(key(process).zip(process.period_ms()).map(|at| (at, place)));
    }
    known.sort_unstable();
    let mut run: Option<(K, u64, u32)> = None;
    for ((key, [start, end]), place) in known {
        run = match run {
            Some((same, until, first)) if same == key && start < until => {
                firsts[place as usize] = first;
                Some((key, until.max(end), first))
            }
            _ => Some((key, end, place)),
        };
    }
    firsts
}
