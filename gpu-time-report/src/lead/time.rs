//! The sentence about the time of the devices: how idle they were or, without windows, the share of
//! the run that functions account for.

use std::{iter, mem};

use crate::busy_time::Accounted;
use crate::idle::{Idle, TOO_FEW};
use crate::in_use::{RUN, all_in_use_words, in_use_words};
use crate::units::percent;
use crate::{Device, Snapshot};

/// The minimum number of devices whose shares are told as a range.
const MANY: usize = 4;
/// What idle shares are of, if the devices were in use throughout.
const TIME: &str = "the time";

/// Returns the sentence, or `None` if no time on a device is known.
pub fn sentence(snapshot: &Snapshot) -> Option<String> {
    idle(snapshot).or_else(|| accounted(snapshot))
}

/// Returns how idle each device with windows was.
fn idle(snapshot: &Snapshot) -> Option<String> {
    let known = snapshot.devices.iter();
    let known = known.filter_map(|device| Some((device, Idle::of(snapshot, device)?)));
    let known: Vec<_> = known.collect();
    let gpus = snapshot.gpus().count();
    match &known[..] {
        [] => None,
        [(device, idle)] => {
            let names = if gpus > 1 { [&*device.id; 2] } else { ["The GPU", "the GPU"] };
            Some(of_one(snapshot, device, names, idle))
        }
        all if all.len() >= MANY => {
            let are_some = all.len() < gpus;
            let some = if are_some { format!("{} of {gpus}", all.len()) } else { "The".to_owned() };
            let (about, doubt) = if all.iter().any(|(_, idle)| idle.is_bound) {
                ("at most ", "")
            } else if all.iter().any(|(_, idle)| idle.error.is_none()) {
                ("about ", TOO_FEW)
            } else {
                ("", "")
            };
            let (range, ends) = range(all.iter().map(|(device, idle)| (*device, idle.share)));
            let ends = ends.map(|[least, most]| format!(": {least} the least, {most} the most"));
            let ends = ends.unwrap_or_default();
            let shared = shared(snapshot, all.iter().map(|(device, _)| *device));
            let of = time_words(snapshot, all.iter().map(|(device, _)| *device));
            Some(format!("{some} GPUs were idle {about}{range} of {of}{doubt}{ends}.{shared}"))
        }
        all => {
            let each = all
                .iter()
                .map(|(device, idle)| format!("{} {}{}", device.id, idle.words(), idle.doubt()));
            let each = each.collect::<Vec<_>>().join(", ");
            let shared = shared(snapshot, all.iter().map(|(device, _)| *device));
            let of = match time_words(snapshot, all.iter().map(|(device, _)| *device)) {
                TIME => String::new(),
                of => format!(", as a share of {of}"),
            };
            Some(format!("Idle{of}: {each}.{shared}"))
        }
    }
}

/// Returns what the idle shares of these devices are of, in words.
fn time_words<'a>(snapshot: &Snapshot, devices: impl Iterator<Item = &'a Device>) -> &'static str {
    match all_in_use_words(&snapshot.process, devices) {
        RUN => TIME,
        of => of,
    }
}

/// Returns how idle the only device with windows was. If other processes used it too, it is only
/// known how idle each of the reported ones left it.
///
/// The device's names are those at the beginning of a sentence and elsewhere.
fn of_one(snapshot: &Snapshot, device: &Device, names: [&str; 2], idle: &Idle) -> String {
    let [subject, name] = names;
    let (share, doubt) = (idle.words(), idle.doubt());
    let of = time_words(snapshot, iter::once(device));
    if !device.is_shared() {
        return format!("{subject} was idle {share} of {of}{doubt}.");
    }
    let [process, mean] =
        if is_merged(snapshot) { ["Each process", " on average"] } else { ["The process", ""] };
    format!(
        "{process} left {name} idle for {share} of {of}{mean}{doubt}, and other processes used it too."
    )
}

/// Returns a sentence about the devices that other processes used too, which begins with a space.
/// Empty if there are none.
fn shared<'a>(snapshot: &Snapshot, devices: impl Iterator<Item = &'a Device>) -> String {
    let shared: Vec<&str> =
        devices.filter(|device| device.is_shared()).map(|device| &*device.id).collect();
    let means =
        if is_merged(snapshot) { "These are means over the processes, and other" } else { "Other" };
    match &shared[..] {
        [] => String::new(),
        shared if shared.len() >= MANY => {
            format!(" {means} processes used {} of them too.", shared.len())
        }
        shared => format!(" {means} processes used {} too.", shared.join(", ")),
    }
}

/// Returns the range of these shares, and the devices with the least and with the largest unless all
/// shares are the same.
fn range<'a>(shares: impl Iterator<Item = (&'a Device, f64)>) -> (String, Option<[&'a str; 2]>) {
    let mut shares: Vec<_> = shares.collect();
    shares.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let ends = shares.first().zip(shares.last());
    let Some(((least, low), (most, high))) = ends else { return (String::new(), None) };
    let [low, high] = [low, high].map(|share| format!("{:.0}", 100.0 * share));
    if low == high {
        return (format!("{low}%"), None);
    }
    (format!("{low} to {high}%"), Some([&least.id, &most.id]))
}

fn is_merged(snapshot: &Snapshot) -> bool {
    snapshot.process.merged.len() > 1
}

/// Returns the share of the run that functions account for on each device.
fn accounted(snapshot: &Snapshot) -> Option<String> {
    let known = snapshot.devices.iter();
    let known = known.filter_map(|device| Some((device, Accounted::of(snapshot, device)?)));
    let known: Vec<_> = known.collect();
    let of = all_in_use_words(&snapshot.process, known.iter().map(|(device, _)| *device));
    match &known[..] {
        [] => None,
        [(device, accounted)] => Some(accounted.sentence(snapshot, device)),
        all if all.len() >= MANY => {
            let is_bound = all.iter().any(|(_, accounted)| accounted.is_bound);
            let at_most = if is_bound { "at most " } else { "" };
            let shares = all.iter().map(|(device, accounted)| (*device, accounted.share));
            let (range, ends) = range(shares);
            let ends = ends.map(|[least, most]| format!(": least on {least}, most on {most}"));
            let ends = ends.unwrap_or_default();
            Some(format!("Timed functions account for {at_most}{range} of {of}{ends}."))
        }
        all => {
            let mut last_of = "";
            let each = all.iter().map(|(device, Accounted { share, is_bound, .. })| {
                let of = in_use_words(&snapshot.process, device);
                // Stated once if all shares are of the same.
                let is_stated = mem::replace(&mut last_of, of) == of;
                let of = if is_stated { String::new() } else { format!(" of {of}") };
                let at_most = if *is_bound { "at most " } else { "" };
                format!("{at_most}{}{of} on {}", percent(*share), device.id)
            });
            let each: Vec<String> = each.collect();
            let (last, others) = each.split_last()?;
            Some(format!("Timed functions account for {} and {last}.", others.join(", ")))
        }
    }
}

impl Accounted {
    /// Returns the share of a device's time as a sentence.
    pub fn sentence(&self, snapshot: &Snapshot, device: &Device) -> String {
        let (share, of) = (percent(self.share), in_use_words(&snapshot.process, device));
        if self.is_all_bound {
            return format!(
                "At most {share} busy: the GPU may have waited for the CPU in every call."
            );
        }
        if self.is_bound && self.is_whole() {
            let why = if self.is_partial {
                "it is unknown how much of their work ran at once"
            } else {
                "the GPU may have waited for the CPU in some calls"
            };
            return format!("Timed functions may account for all of {of}: {why}.");
        }
        let at_most = if self.is_bound { "at most " } else { "" };
        format!("Timed functions account for {at_most}{share} of {of}.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{coverage, gpu, process};
    use crate::tree::fixtures::node;
    use crate::{Coverage, Node, Process};

    /// Returns the sentence about devices with windows that found them idle for these shares.
    fn said(shares: &[f64], change: impl Fn(&mut Device), processes: usize) -> String {
        let device = |(at, idle): (usize, &f64)| {
            let windows = Coverage { busy: 1.0 - idle, idle: *idle, ..coverage() };
            let id = format!("cuda:{at}");
            let mut device = Device { id, coverage: Some(windows), ..gpu() };
            change(&mut device);
            device
        };
        let merged = if processes > 1 { vec![process(None); processes] } else { Vec::new() };
        let process = Process { merged, ..process(None) };
        let devices = shares.iter().enumerate().map(device).collect();
        sentence(&Snapshot::new(process, devices, Vec::new())).unwrap()
    }

    #[test]
    fn shared_gpu_is_not_called_idle() {
        let merged = said(&[0.6], |device| device.shared = true, 2);
        let expected = "Each process left the GPU idle for 60.0 ±0.5% of the time on average, and other processes used \
                        it too.";
        assert_eq!(merged, expected);
        let single = said(&[0.6], |device| device.other_processes = Some(1), 1);
        let expected = "The process left the GPU idle for 60.0 ±0.5% of the time, and other processes used it too.";
        assert_eq!(single, expected);
        let apart = said(&[0.6], |_| {}, 2);
        assert_eq!(apart, "The GPU was idle 60.0 ±0.5% of the time.");
        let two = said(&[0.6, 0.7], |device| device.shared = device.id == "cuda:1", 2);
        let expected = "Idle: cuda:0 60.0 ±0.5%, cuda:1 70.0 ±0.5%. These are means over the processes, and other \
                        processes used cuda:1 too.";
        assert_eq!(two, expected);
    }

    #[test]
    fn many_gpus_have_a_range() {
        let three = said(&[0.99, 0.5, 0.36], |_| {}, 1);
        assert_eq!(three, "Idle: cuda:0 99.0 ±0.5%, cuda:1 50.0 ±0.5%, cuda:2 36.0 ±0.5%.");
        let four = said(&[0.99, 0.5, 0.36, 0.9], |_| {}, 1);
        let expected =
            "The GPUs were idle 36 to 99% of the time: cuda:2 the least, cuda:0 the most.";
        assert_eq!(four, expected);
        let few = |device: &mut Device| device.coverage.as_mut().unwrap().idle_error = None;
        let alike = said(&[0.95; 8], few, 1);
        assert_eq!(alike, "The GPUs were idle about 95% of the time (too few windows).");
    }

    #[test]
    fn idle_share_is_of_the_time_in_use() {
        let since_first_use = |device: &mut Device| {
            let covered_ns = 0.2 * process(None).wall_ns as f64;
            device.coverage.as_mut().unwrap().covered_ns = covered_ns;
        };
        let one = said(&[0.5], since_first_use, 1);
        assert_eq!(one, "The GPU was idle 50.0 ±0.5% of the time since the GPU's first use.");
        let two = said(&[0.5, 0.6], since_first_use, 1);
        let expected = "Idle, as a share of the time since the GPU's first use: cuda:0 50.0 ±0.5%, cuda:1 60.0 ±0.5%.";
        assert_eq!(two, expected);
        let some = |device: &mut Device| {
            if device.id == "cuda:1" {
                since_first_use(device);
            }
        };
        let many = said(&[0.99, 0.5, 0.36, 0.9], some, 1);
        let range = "The GPUs were idle 36 to 99% of each GPU's time in use: ";
        assert!(many.starts_with(range), "{many}");
    }

    /// Returns the sentence about functions that account for these shares of the run on each GPU.
    fn accounted_for(shares: &[f64]) -> String {
        let ids: Vec<String> = (0..shares.len()).map(|at| format!("cuda:{at}")).collect();
        let devices = ids.iter().map(|id| Device { id: id.clone(), ..gpu() }).collect();
        let process = process(None);
        let of_run = shares.iter().map(|share| share * process.wall_ns as f64);
        let ns = of_run.clone().sum();
        let self_ns_by_device = ids.into_iter().zip(of_run).collect();
        let node = Node { self_ns_by_device, ..node("decode", None, ns, ns) };
        let snapshot = Snapshot::new(process, devices, Vec::new()).with_tree(vec![node]);
        sentence(&snapshot).unwrap()
    }

    #[test]
    fn functions_on_many_gpus_account_for_a_range() {
        let expected =
            "Timed functions account for 3 to 40% of the run: least on cuda:2, most on cuda:0.";
        assert_eq!(accounted_for(&[0.4, 0.1, 0.03, 0.2]), expected);
    }

    #[test]
    fn functions_on_two_gpus_account_for_a_share_of_each() {
        let expected =
            "Timed functions account for 30.0% of the run on cuda:0 and 80.0% on cuda:1.";
        assert_eq!(accounted_for(&[0.3, 0.8]), expected);
    }

    /// More than the run: work of several streams ran at once.
    #[test]
    fn functions_may_account_for_all_of_the_run() {
        let expected = "Timed functions may account for all of the run: it is unknown how much of their work ran at once.";
        assert_eq!(accounted_for(&[1.5]), expected);
    }
}
