//! The kernels of recorded calls in merged reports.

use gpu_time_report::merge::join;
use gpu_time_report::{Elsewhere, Kernel, KernelTimes, Series, Site, value};

use super::combine::add;

/// The maximum number of different kernels that a series keeps, besides the entry that combines the
/// rest. A report of one process has the same limit.
const MAX_KERNELS: usize = 255;

/// Estimates the number of calls that a series' recorded calls represent: those that were timed or
/// skipped by sampling, if the function's calls of every series were sampled alike.
pub fn represented(site: &Site, series: &Series) -> f64 {
    if series.opened() == 0 {
        return 0.0;
    }
    let (timed, unsampled) = (site.timed as f64, site.unsampled as f64);
    series.timed as f64 * (timed + unsampled) / timed.max(1.0)
}

/// Adds the recorded calls of another report. Counts and totals are added up. Statistics are dropped
/// if both reports have them, because percentiles cannot be combined without all of the times.
/// `calls` are the numbers of calls that [the opened ones represent](represented), ours first.
pub fn merge(ours: &mut KernelTimes, theirs: KernelTimes, calls: [f64; 2]) {
    let all = calls[0] + calls[1];
    let mean = |ours: f64, theirs: f64| {
        if all > 0.0 { (ours * calls[0] + theirs * calls[1]) / all } else { ours }
    };
    join(&mut ours.kernels_per_call, theirs.kernels_per_call, |ours, theirs| {
        *ours = mean(*ours, theirs);
    });
    let opened = [ours.opened, theirs.opened];
    for (ours, theirs) in [
        (&mut ours.busy_ns, theirs.busy_ns),
        (&mut ours.self_busy_ns, theirs.self_busy_ns),
        (&mut ours.span_ns, theirs.span_ns),
        (&mut ours.gaps_ns, theirs.gaps_ns),
    ] {
        *ours = match opened {
            [0, _] => theirs,
            [_, 0] => *ours,
            _ => None,
        };
    }
    ours.streams = ours.streams.max(theirs.streams);
    add(&mut ours.opened, theirs.opened);
    add(&mut ours.zero_times, theirs.zero_times);
    ours.kernels.iter_mut().for_each(|kernel| kernel.per_call *= calls[0]);
    for kernel in theirs.kernels {
        let kernel = value!(Kernel { per_call: kernel.per_call * calls[1], ..kernel });
        match ours.kernels.iter_mut().find(|known| is_same(known, &kernel)) {
            Some(known) => combine(known, &kernel),
            None => ours.kernels.push(kernel),
        }
    }
    for work in theirs.elsewhere {
        let is_same = |known: &&mut Elsewhere| (&known.name, known.why) == (&work.name, work.why);
        match ours.elsewhere.iter_mut().find(is_same) {
            Some(known) => {
                add(&mut known.count, work.count);
                known.total_ns += work.total_ns;
            }
            None => ours.elsewhere.push(work),
        }
    }
    for kernel in &mut ours.kernels {
        kernel.per_call /= if all > 0.0 { all } else { 1.0 };
    }
    let of_call: f64 = ours.kernels.iter().map(ns_per_call).sum();
    for kernel in &mut ours.kernels {
        kernel.share = if of_call > 0.0 { ns_per_call(kernel) / of_call } else { 0.0 };
    }
    ours.sort_kernels();
    bound(&mut ours.kernels);
}

/// Returns a kernel's time in the mean call. Calls weigh as many as they represent in `per_call`, but not in `total_ns`.
fn ns_per_call(kernel: &Kernel) -> f64 {
    kernel.per_call * kernel.total_ns / (kernel.count as f64).max(1.0)
}

/// Returns `true` for the same kernel with the same launch configuration.
fn is_same(one: &Kernel, other: &Kernel) -> bool {
    let of = |kernel: &Kernel| (kernel.grid, kernel.block, kernel.registers, kernel.shared_bytes);
    one.name == other.name && (of(one) == of(other) || one.name == Kernel::OTHER)
}

/// Adds the launches of a kernel to those of `ours`. In both, `per_call` has the same meaning.
fn combine(ours: &mut Kernel, theirs: &Kernel) {
    add(&mut ours.count, theirs.count);
    ours.per_call += theirs.per_call;
    ours.total_ns += theirs.total_ns;
    ours.share += theirs.share;
    ours.time_ns = None;
}

/// Combines the kernels beyond the limit.
fn bound(kernels: &mut Vec<Kernel>) {
    if kernels.iter().filter(|kernel| kernel.name != Kernel::OTHER).count() <= MAX_KERNELS {
        return;
    }
    let known = kernels.iter().position(|kernel| kernel.name == Kernel::OTHER);
    let known = known.map(|at| kernels.remove(at));
    let mut others = kernels.split_off(MAX_KERNELS).into_iter();
    let first = known.or_else(|| others.next());
    kernels.extend(first.map(|first| {
        value!(Kernel {
            name: Kernel::OTHER.to_owned(),
            grid: [0; 3],
            block: [0; 3],
            registers: 0,
            shared_bytes: 0,
            ..first
        })
    }));
    if let Some(other) = kernels.last_mut() {
        others.for_each(|kernel| combine(other, &kernel));
    }
}
