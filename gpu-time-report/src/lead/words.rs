//! How idle the GPUs were, in words.

use super::figures::Figures;
use crate::figure::Figure;
use crate::gpu_time::{GpuTime, RUN, TOO_FEW};
use crate::largest::sort_by_largest;
use crate::units::percent;
use crate::{Device, Snapshot};

/// Returns how idle the devices were or, without phases, the share of the run that functions account for. `None` if no
/// time on a device is known.
pub fn time(figures: &Figures) -> Option<String> {
    idle(figures).or_else(|| accounted(figures))
}

/// Returns words that say that these GPUs were idle. If other processes used any of them, it is only known how idle
/// those of the report left it.
pub fn were_idle(snapshot: &Snapshot, gpus: &[&Device]) -> String {
    let (name, were) = match gpus {
        [_] if snapshot.gpus().count() == 1 => ("the GPU".to_owned(), "was"),
        [gpu] => (gpu.id.clone(), "was"),
        _ if gpus.len() < snapshot.gpus().count() => (format!("{} GPUs", gpus.len()), "were"),
        _ => ("the GPUs".to_owned(), "were"),
    };
    match gpus.iter().any(|gpu| gpu.is_shared()) {
        false => format!("{name} {were} idle"),
        true if is_merged(snapshot) => format!("each process left {name} idle"),
        true => format!("this process left {name} idle"),
    }
}

fn idle(figures: &Figures) -> Option<String> {
    let snapshot = figures.snapshot;
    let known = figures.gpus.iter().filter_map(|gpu| Some((gpu, gpu.idle?)));
    let (known, idle): (Vec<&GpuTime>, Vec<Figure>) = known.unzip();
    let gpus: Vec<&Device> = known.iter().map(|gpu| gpu.device).collect();
    let (share, doubt) = match &idle[..] {
        [] => return None,
        [idle] => (GpuTime::idle_words(*idle), known[0].idle_doubt()),
        idle => {
            let range = range(&gpus, idle.iter().map(|idle| idle.value))?;
            match idle.iter().any(|idle| idle.error.is_none()) {
                true => (format!("about {range}"), TOO_FEW.to_owned()),
                false => (range, String::new()),
            }
        }
    };
    let of = match GpuTime::of_all(known.iter().copied()) {
        RUN => "the time",
        of => of,
    };
    let shared: Vec<_> = gpus.iter().filter(|gpu| gpu.is_shared()).map(|gpu| &*gpu.id).collect();
    let mean = if is_merged(snapshot) { " on average" } else { "" };
    let others = match shared[..] {
        [] => String::new(),
        [_] if gpus.len() == 1 => format!("{mean}, and other processes used it too"),
        _ => format!("{mean}, and other processes used {} too", shared.join(", ")),
    };
    let idle = were_idle(snapshot, &gpus);
    let is_name = gpus.iter().any(|gpu| idle.starts_with(&*gpu.id));
    let idle = match idle.split_at_checked(1) {
        Some((first, rest)) if !is_name => first.to_uppercase() + rest,
        _ => idle,
    };
    Some(format!("{idle} {share} of {of}{doubt}{others}."))
}

/// Returns the share of the run that functions account for on each device.
fn accounted(figures: &Figures) -> Option<String> {
    let gpus = figures.gpus.iter().filter(|gpu| !gpu.times.is_empty());
    let gpus: Vec<&GpuTime> = gpus.collect();
    if let [gpu] = gpus[..] {
        return Some(gpu.busy_sentence() + ".");
    }
    let of = GpuTime::of_all(gpus.iter().copied());
    let devices: Vec<&Device> = gpus.iter().map(|gpu| gpu.device).collect();
    let range = range(&devices, gpus.iter().map(|gpu| gpu.busy_share()))?;
    let is_bound = gpus.iter().any(|gpu| gpu.busy.is_bound());
    let at_most = if is_bound { "at most " } else { "" };
    Some(format!("Timed functions account for {at_most}{range} of {of}."))
}

/// Returns the least and the largest share with their devices, or the only share. `None` if there are none.
fn range(gpus: &[&Device], shares: impl Iterator<Item = f64>) -> Option<String> {
    let mut shares: Vec<_> = gpus.iter().zip(shares).collect();
    sort_by_largest(&mut shares, |(_, share)| -share);
    let ((least, low), (most, high)) = shares.first().zip(shares.last())?;
    let [low, high] = [low, high].map(|share| percent(*share));
    let range = format!("{low} ({}) to {high} ({})", least.id, most.id);
    Some(if low == high { low } else { range })
}

fn is_merged(snapshot: &Snapshot) -> bool {
    snapshot.process.merged.len() > 1
}
