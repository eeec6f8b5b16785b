use super::figures;
use crate::Analysis;
use crate::fixtures::{coverage, gpu, process};
use crate::lead::words::time;
use crate::tree::fixtures::node;
use crate::{Coverage, Device, Node, Process, Snapshot};

/// Returns the sentence about devices with phases that found them idle for these shares.
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
    let snapshot = Snapshot::new(process, devices, Vec::new());
    time(&figures(&Analysis::of(&snapshot))).unwrap()
}

#[test]
fn shared_gpu_is_not_called_idle() {
    let merged = said(&[0.6], |device| device.shared = true, 2);
    let expected = "Each process left the GPU idle 60.0 ±0.5% of the time on average, and other processes used it too.";
    assert_eq!(merged, expected);
    let single = said(&[0.6], |device| device.other_processes = Some(1), 1);
    let expected =
        "This process left the GPU idle 60.0 ±0.5% of the time, and other processes used it too.";
    assert_eq!(single, expected);
    let apart = said(&[0.6], |_| {}, 2);
    assert_eq!(apart, "The GPU was idle 60.0 ±0.5% of the time.");
    let two = said(&[0.6, 0.7], |device| device.shared = device.id == "cuda:1", 2);
    let expected = "Each process left the GPUs idle 60.0% (cuda:0) to 70.0% (cuda:1) of the time on average, and other \
                    processes used cuda:1 too.";
    assert_eq!(two, expected);
}

#[test]
fn several_gpus_have_a_range() {
    let three = said(&[0.99, 0.5, 0.36], |_| {}, 1);
    assert_eq!(three, "The GPUs were idle 36.0% (cuda:2) to 99.0% (cuda:0) of the time.");
    let few = |device: &mut Device| device.coverage.as_mut().unwrap().idle_error = None;
    let alike = said(&[0.95; 8], few, 1);
    assert_eq!(alike, "The GPUs were idle about 95.0% of the time (too few phases).");
}

#[test]
fn only_gpu_with_windows_is_named() {
    let of_second = |device: &mut Device| {
        device.coverage = device.coverage.take().filter(|_| device.id == "cuda:1");
    };
    assert_eq!(said(&[0.9, 0.5], of_second, 1), "cuda:1 was idle 50.0 ±0.5% of the time.");
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
    let expected = "The GPUs were idle 50.0% (cuda:0) to 60.0% (cuda:1) of the time since the GPU's first use.";
    assert_eq!(two, expected);
    let some = |device: &mut Device| {
        if device.id == "cuda:1" {
            since_first_use(device);
        }
    };
    let many = said(&[0.99, 0.5, 0.36, 0.9], some, 1);
    let expected = "The GPUs were idle 36.0% (cuda:2) to 99.0% (cuda:0) of each GPU's time in use.";
    assert_eq!(many, expected);
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
    time(&figures(&Analysis::of(&snapshot))).unwrap()
}

#[test]
fn functions_on_many_gpus_account_for_a_range() {
    let expected = "Timed functions account for 3.0% (cuda:2) to 40.0% (cuda:0) of the run.";
    assert_eq!(accounted_for(&[0.4, 0.1, 0.03, 0.2]), expected);
}

#[test]
fn functions_on_two_gpus_account_for_a_share_of_each() {
    let expected = "Timed functions account for 30.0% (cuda:0) to 80.0% (cuda:1) of the run.";
    assert_eq!(accounted_for(&[0.3, 0.8]), expected);
}

/// More than the run: work of several streams ran at once.
#[test]
fn functions_may_account_for_all_of_the_run() {
    let expected = "Timed functions may account for all of the run: it is unknown how much of their work ran at once.";
    assert_eq!(accounted_for(&[1.5]), expected);
}
