//! The sentence about the time of the devices: how idle they were or, without windows, the share of
//! the run that functions account for.

use crate::idle::Idle;
use crate::marks::bound;
use crate::own_times::Accounted;
use crate::units::percent;
use crate::{Device, Snapshot};

/// Returns the sentence, or `None` if no time on a device is known.
pub fn sentence(snapshot: &Snapshot) -> Option<String> {
    idle(snapshot).or_else(|| accounted(snapshot))
}

/// Returns how idle each device with windows was.
fn idle(snapshot: &Snapshot) -> Option<String> {
    let known = snapshot.devices.iter();
    let known = known.filter_map(|device| Some((device, Idle::of(snapshot, device)?)));
    let known: Vec<_> = known.collect();
    match &known[..] {
        [] => None,
        [(device, idle)] => Some(of_one(snapshot, device, idle)),
        all => {
            let each = all
                .iter()
                .map(|(device, idle)| format!("{} {}{}", device.id, idle.words(), idle.doubt()));
            let each = each.collect::<Vec<_>>().join(", ");
            let shared = shared(snapshot, all.iter().map(|(device, _)| *device));
            Some(format!("Idle: {each}.{shared}"))
        }
    }
}

/// Returns how idle the only device with windows was. If other processes used it too, it is only
/// known how idle each of the reported ones left it.
fn of_one(snapshot: &Snapshot, device: &Device, idle: &Idle) -> String {
    let (share, doubt) = (idle.words(), idle.doubt());
    if !device.is_shared() {
        return format!("The GPU was idle {share} of the time{doubt}.");
    }
    let [process, mean] =
        if is_merged(snapshot) { ["Each process", " on average"] } else { ["The process", ""] };
    format!(
        "{process} left the GPU idle for {share} of the time{mean}{doubt}, and other processes used it too."
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
        shared => format!(" {means} processes used {} too.", shared.join(", ")),
    }
}

fn is_merged(snapshot: &Snapshot) -> bool {
    snapshot.process.merged.len() > 1
}

/// Returns the share of the run that functions account for on each device.
fn accounted(snapshot: &Snapshot) -> Option<String> {
    let known = snapshot.devices.iter();
    let known = known.filter_map(|device| Some((device, Accounted::of(snapshot, device)?)));
    let known: Vec<_> = known.collect();
    match &known[..] {
        [] => None,
        [(_, accounted)] => Some(accounted.sentence()),
        all => {
            let each = all.iter().map(|(device, Accounted { share, is_bound, .. })| {
                format!("{}{} on {}", bound(*is_bound), percent(*share), device.id)
            });
            let each = each.collect::<Vec<_>>().join(", ");
            Some(format!("Timed functions account for {each} of the run."))
        }
    }
}

impl Accounted {
    /// Returns the share of the run as a sentence.
    pub fn sentence(&self) -> String {
        let share = percent(self.share);
        if self.is_all_bound {
            return format!(
                "At most {share} busy: the GPU may have waited for the CPU in every call."
            );
        }
        let at_most = if self.is_bound { "at most " } else { "" };
        format!("Timed functions account for {at_most}{share} of the run.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{coverage, gpu, process};
    use crate::{Coverage, Process};

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
}
