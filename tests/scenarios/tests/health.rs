//! Tests for clocks and environment: the report has NVML's values and warns about each condition
//! that makes times unreliable, and locked clocks are released however the process ends.

use crate::harness::report::Device;
use crate::harness::{Run, is_real, scenario};

/// Returns one of a device's clocks. Panics if it is unknown.
#[track_caller]
fn clock(device: &Device, name: &str) -> u32 {
    let clocks = device.clocks.as_ref().expect("NVML is available");
    clocks[name].unwrap_or_else(|| panic!("no `{name}`: {device:?}"))
}

#[track_caller]
fn only_device(run: &Run) -> &Device {
    let [device] = &run.report().devices[..] else { panic!("{:?}", run.report().devices) };
    device
}

/// Also runs on a GPU, where NVML is only used for reading.
#[test]
fn report_has_nvml_values() {
    let run = scenario("health/run", &["1"]).run();
    let device = only_device(&run);
    for (now, most) in [("sm", "sm_max_mhz"), ("mem", "mem_max_mhz")] {
        let most = clock(device, most);
        for when in ["start", "end"] {
            let mhz = clock(device, &format!("{now}_{when}_mhz"));
            assert!((1..=most).contains(&mhz), "{now}: {mhz} of {most}");
        }
    }
    assert!((1..120).contains(&device.temperature_c.unwrap()), "{device:?}");
    assert!((1.0..2000.0).contains(&device.power_w.unwrap()), "{device:?}");
    assert!(device.persistence.is_some() && device.mig.is_some(), "{device:?}");
    assert!(device.mps.is_some() && device.other_processes.is_some(), "{device:?}");
    let held = device.throttle.as_ref().unwrap().values().flatten();
    // The process lives for less than a minute.
    assert!(held.into_iter().all(|&ns| ns < 60_000_000_000), "{device:?}");
    assert!(run.stderr.lines().any(|line| line.contains(", SM ")), "{}", run.stderr);
    if !is_real() {
        assert_eq!(device.warnings, [""; 0]);
    }
}

mod simulated {
    use gpu_time_sim_nvml::{Process, Script, ScriptedDevice, Values};

    use super::*;

    const LOCK: &str = "lock 0000:01:00.0 1500 1500";
    const RESET: &str = "reset 0000:01:00.0";
    const IDLE: u64 = 1;
    const APPLICATIONS_CLOCKS: u64 = 2;
    const SW_POWER_CAP: u64 = 4;
    const HW_SLOWDOWN: u64 = 8;
    const NOT_SUPPORTED: u32 = 3;
    const NO_PERMISSION: u32 = 4;

    #[test]
    fn use_of_the_device_is_read() {
        let mut script = Script::calm(8);
        script.devices[0].gpm =
            Some([(1, 28.5), (2, 23.25), (10, 8.0), (20, 100.0), (21, 20.0)].into());
        let run = scenario("health/used", &[]).nvml(script).run();
        let used = only_device(&run).utilization.as_ref().expect("it has been read twice");
        let names = ["graphics", "sm", "tensor", "dram", "pcie_bytes_per_s", "nvlink_bytes_per_s"];
        let pcie = Some(120.0 * 1_048_576.0);
        let expected = [Some(0.285), Some(0.2325), None, Some(0.08), pcie, None];
        for (name, expected) in names.into_iter().zip(expected) {
            let is_close = |(one, other): (f64, f64)| (one - other).abs() < 1e-9 * other;
            let (value, is_known) = (used[name], expected.is_some());
            assert!(value.zip(expected).map_or(value.is_none() != is_known, is_close), "{used:?}");
        }
        assert!(used["covered_ns"] > Some(0.2e9), "{used:?}");
        assert!(run.stderr.contains("in use by all processes: any work 28.5%"), "{}", run.stderr);
        // Before Hopper.
        let run = scenario("health/used", &[]).run();
        assert_eq!(only_device(&run).utilization, None);
    }

    #[track_caller]
    fn run_on(change: impl FnOnce(&mut ScriptedDevice)) -> Run {
        scenario("health/run", &["1"]).nvml(Script::calm(1).with(change)).run()
    }

    /// Asserts that the only device has a single warning, which is also in the table.
    #[track_caller]
    fn assert_warned(run: &Run, prefix: &str) {
        let [warning] = &only_device(run).warnings[..] else {
            panic!("{:?}", only_device(run).warnings)
        };
        assert!(warning.starts_with(prefix), "{warning}");
        assert!(run.stderr.contains(&format!("warning: cuda:0: {warning}")), "{}", run.stderr);
    }

    #[track_caller]
    fn throttle(run: &Run, reason: &str) -> Option<Option<u64>> {
        only_device(run).throttle.as_ref().unwrap().get(reason).copied()
    }

    #[test]
    fn values_match_nvml() {
        let run = run_on(|device| {
            device.sm_mhz = Values(vec![1965, 1950]);
            device.mem_mhz = Values(vec![3201, 3200]);
            device.mem_max_mhz = 3210;
        });
        let device = only_device(&run);
        assert_eq!(device.warnings, [""; 0], "the clocks moved by no more than their noise");
        let clocks = device.clocks.as_ref().unwrap();
        let expected = [
            ("sm_start_mhz", 1965),
            ("sm_end_mhz", 1950),
            ("sm_max_mhz", 1980),
            ("mem_start_mhz", 3201),
            ("mem_end_mhz", 3200),
            ("mem_max_mhz", 3210),
        ];
        assert_eq!(clocks.len(), expected.len());
        for (name, mhz) in expected {
            assert_eq!(clocks[name], Some(mhz), "{name}");
        }
        assert_eq!((device.temperature_c, device.power_w), (Some(41), Some(123.4)));
        assert_eq!((device.persistence, device.mig), (Some(true), Some(false)));
        assert_eq!((device.mps, device.other_processes), (Some(false), Some(0)));
        let held: Vec<_> = device.throttle.as_ref().unwrap().iter().collect();
        assert_eq!(held.len(), 5, "the reasons that the driver counts: {held:?}");
        assert!(held.iter().all(|(_, ns)| **ns == Some(0)), "{held:?}");
        let line = ", SM 1965 to 1950 MHz of 1980, memory 3201 to 3200 MHz, 41 °C, 123 W\n";
        assert!(run.stderr.contains(line), "{}", run.stderr);
    }

    #[test]
    fn counted_throttling_warns() {
        // Different drivers use different numbers for these fields.
        for driver in ["570.86", "580.159.04"] {
            for (field, reason) in [
                (74, "sw_power_cap"),
                (76, "sync_boost"),
                (251, "sw_thermal_slowdown"),
                (252, "hw_thermal_slowdown"),
                (253, "hw_power_brake_slowdown"),
            ] {
                let counter = Values(vec![5_000_000, 17_300_000]);
                let mut script = Script::calm(1).with(|device| {
                    device.fields.insert(field, counter);
                });
                script.driver = driver.to_owned();
                let run = scenario("health/run", &["1"]).nvml(script).run();
                assert_eq!(throttle(&run, reason), Some(Some(12_300_000)), "{driver}");
                assert_warned(&run, &format!("throttled by {reason} for 12.30 ms of "));
                let line = format!("clocks lowered by {reason} 12.30 ms\n");
                assert!(run.stderr.contains(&line), "{}", run.stderr);
            }
        }
    }

    #[test]
    fn older_driver_counts_by_policy() {
        let run = run_on(|device| {
            device.fields.clear();
            device.policies.insert(0, Values(vec![0, 1_000]));
        });
        assert_eq!(throttle(&run, "sw_power_cap"), Some(Some(1_000)));
        assert_eq!(throttle(&run, "sync_boost"), Some(Some(0)));
        assert_eq!(throttle(&run, "sw_thermal_slowdown"), None);
        assert_warned(&run, "throttled by sw_power_cap for 1.000 µs of ");
    }

    #[test]
    fn uncounted_throttling_is_sampled_twice() {
        for samples in [vec![HW_SLOWDOWN, 0], vec![0, HW_SLOWDOWN]] {
            let run = run_on(|device| device.reasons = Values(samples));
            assert_eq!(throttle(&run, "hw_slowdown"), Some(None));
            assert_warned(
                &run,
                "throttled by hw_slowdown, for a duration that the driver does not report: ",
            );
        }
        // If a reason has a counter, the sampled state is not used. A user's setting is not a
        // fault.
        let run = run_on(|device| {
            device.reasons = Values(vec![SW_POWER_CAP, APPLICATIONS_CLOCKS]);
        });
        assert_eq!(throttle(&run, "sw_power_cap"), Some(Some(0)));
        assert_eq!(throttle(&run, "applications_clocks_setting"), Some(None));
        assert_eq!(only_device(&run).warnings, [""; 0]);
    }

    /// The counter decreased, or increased by more than the elapsed time.
    #[test]
    fn implausible_counter_is_ignored() {
        for counter in [vec![5, 3], vec![0, 3_600_000_000_000]] {
            let run = run_on(|device| {
                device.fields.insert(74, Values(counter));
            });
            assert_eq!(throttle(&run, "sw_power_cap"), None);
            assert_eq!(only_device(&run).warnings, [""; 0]);
        }
    }

    #[test]
    fn moving_clock_warns_unless_idle() {
        let falls = |device: &mut ScriptedDevice| device.sm_mhz = Values(vec![1980, 1755]);
        assert_warned(&run_on(falls), "its SM clock went from 1980 to 1755 MHz during the run: ");
        let memory = |device: &mut ScriptedDevice| device.mem_mhz = Values(vec![1593, 3201]);
        assert_warned(
            &run_on(memory),
            "its memory clock went from 1593 to 3201 MHz during the run: ",
        );
        for samples in [vec![IDLE, 0], vec![0, IDLE]] {
            let run = run_on(|device| {
                falls(device);
                device.reasons = Values(samples);
            });
            assert_eq!(only_device(&run).warnings, [""; 0]);
        }
    }

    /// An idle GPU is read again after calibration has put it under load. The run's initial clocks
    /// are then those from the second reading.
    #[test]
    fn moving_clock_warns_after_idle_start() {
        let from_idle = |last: u32, reasons: Vec<u64>| {
            run_on(|device| {
                device.sm_mhz = Values(vec![345, 1980, last]);
                device.mem_mhz = Values(vec![1593, 3201, 3201]);
                device.reasons = Values(reasons);
            })
        };
        let run = from_idle(1755, vec![IDLE, 0, 0]);
        assert_warned(&run, "its SM clock went from 1980 to 1755 MHz during the run: ");
        assert_eq!(clock(only_device(&run), "sm_start_mhz"), 1980);
        assert_eq!(clock(only_device(&run), "mem_start_mhz"), 3201);
        for (last, reasons) in [(1980, vec![IDLE, 0, 0]), (345, vec![IDLE, 0, IDLE])] {
            assert_eq!(only_device(&from_idle(last, reasons)).warnings, [""; 0], "{last}");
        }
        // A GPU that is still idle gives no warning.
        let run = from_idle(1755, vec![IDLE, IDLE, 0]);
        assert_eq!(
            (clock(only_device(&run), "sm_start_mhz"), only_device(&run).warnings.len()),
            (345, 0)
        );
    }

    #[test]
    fn other_processes_warn() {
        let with = |processes: Vec<Process>| run_on(|device| device.processes = processes);
        let run = with(vec![Process::other(4711, "/usr/bin/python3"), Process::ours()]);
        assert_eq!(only_device(&run).other_processes, Some(1));
        assert_warned(&run, "shared with 1 other process (python3 4711): ");
        let many = (1..=5).map(|id| Process::other(id, "trainer"));
        let run = with(many.chain([Process::ours(), Process::ours()]).collect());
        assert_eq!(only_device(&run).other_processes, Some(5));
        assert_warned(&run, "shared with 5 other processes (trainer 1, trainer 2, trainer 3, …): ");
        // In a container, NVML lists this process under another id.
        let run = with(vec![Process::other(u32::MAX, "")]);
        assert_eq!(only_device(&run).other_processes, Some(0));
        assert_eq!(only_device(&run).warnings, [""; 0]);
    }

    #[test]
    fn mps_mig_and_persistence_warn() {
        let server = || Process::other(99, "nvidia-cuda-mps-server");
        let run = run_on(|device| device.processes.push(server()));
        assert_eq!(
            (only_device(&run).mps, only_device(&run).other_processes),
            (Some(true), Some(0))
        );
        assert_warned(&run, "MPS is on");
        assert_warned(&run_on(|device| device.mps_processes.push(Process::ours())), "MPS is on");
        let run = run_on(|device| device.mig = Some(true));
        assert_eq!(only_device(&run).mig, Some(true));
        assert_warned(&run, "MIG is on");
        let run = run_on(|device| device.mig = None);
        assert_eq!(
            (only_device(&run).mig, &only_device(&run).warnings[..]),
            (Some(false), &[][..])
        );
        let off = |device: &mut ScriptedDevice| device.persistence = false;
        let run = run_on(|device| {
            off(device);
            device.reasons = Values(vec![IDLE, 0]);
        });
        assert_eq!(only_device(&run).persistence, Some(false));
        assert_warned(&run, "persistence mode is off and it was idle at first");
        assert_eq!(
            only_device(&run_on(off)).warnings,
            [""; 0],
            "another process kept the GPU awake"
        );
    }

    #[test]
    fn mps_pipe_counts_only_if_it_exists() {
        let dir = tempfile::tempdir().unwrap();
        let run = || {
            let pipe = dir.path().to_str().unwrap();
            scenario("health/run", &["1"]).env("CUDA_MPS_PIPE_DIRECTORY", pipe).run()
        };
        assert_eq!(only_device(&run()).mps, Some(false));
        std::fs::write(dir.path().join("control"), "").unwrap();
        assert_warned(&run(), "MPS is on");
    }

    /// Devices are matched by PCI bus id, regardless of the order in which CUDA and NVML number
    /// them.
    #[test]
    fn devices_matched_by_pci_bus_id() {
        let mut script = Script::calm(2);
        for (temperature, device) in [31, 32].into_iter().zip(&mut script.devices) {
            device.temperature_c = temperature;
        }
        script.devices.reverse();
        script.devices[1].pci_bus_id = "00000000:01:00.0".to_owned();
        let temperatures = |visible: &str, count: &str| -> Vec<u32> {
            let both = scenario("health/run", &[count]).simulated(|sim| sim.devices(2));
            let run = both.env("CUDA_VISIBLE_DEVICES", visible).nvml(script.clone()).run();
            run.report().devices.iter().map(|device| device.temperature_c.unwrap()).collect()
        };
        assert_eq!(temperatures("0,1", "2"), [31, 32]);
        assert_eq!(temperatures("1", "1"), [32]);
    }

    #[test]
    fn missing_nvml_loses_only_its_values() {
        let missing = scenario("health/run", &["1"]).without_nvml().warns("no NVML (");
        let uninitialised = Script::calm(1).failing("nvmlInit_v2", NO_PERMISSION);
        let forbidden = scenario("health/run", &["1"]).nvml(uninitialised).warns("no NVML (");
        for run in [missing.run(), forbidden.run()] {
            assert_eq!(run.row("health::timed").brackets(), (5, 5, 0, 0));
            let device = only_device(&run);
            assert!(device.clocks.is_none() && device.throttle.is_none(), "{device:?}");
            assert_eq!((device.temperature_c, device.mps), (None, None));
            assert_eq!(device.warnings, [""; 0]);
            assert_eq!(run.stderr.matches("no NVML (").count(), 1, "{}", run.stderr);
        }
    }

    #[test]
    fn device_unknown_to_nvml_warns() {
        let run = scenario("health/run", &["1"]).nvml(Script::calm(0)).run();
        assert_eq!(run.row("health::timed").brackets(), (5, 5, 0, 0));
        assert!(only_device(&run).clocks.is_none());
        assert_warned(&run, "NVML cannot read it (");
    }

    /// If a function fails, only its own value is missing.
    #[test]
    fn failed_nvml_call_loses_only_its_value() {
        /// An NVML function, and a check that its value is missing.
        type MissingValue = (&'static str, fn(&Device) -> bool);
        let functions: [MissingValue; 8] = [
            ("nvmlDeviceGetClockInfo", |d| d.clocks.as_ref().unwrap()["sm_end_mhz"].is_none()),
            ("nvmlDeviceGetMaxClockInfo", |d| d.clocks.as_ref().unwrap()["sm_max_mhz"].is_none()),
            ("nvmlDeviceGetTemperature", |d| d.temperature_c.is_none()),
            ("nvmlDeviceGetPowerUsage", |d| d.power_w.is_none()),
            ("nvmlDeviceGetPersistenceMode", |d| d.persistence.is_none()),
            ("nvmlDeviceGetMigMode", |d| d.mig.is_none()),
            ("nvmlDeviceGetComputeRunningProcesses_v3", |d| {
                d.other_processes.is_none() && d.mps.is_none()
            }),
            ("nvmlDeviceGetFieldValues", |d| d.throttle.as_ref().unwrap().len() == 2),
        ];
        for (failing, _) in functions {
            let script = Script::calm(1).failing(failing, NO_PERMISSION);
            let run = scenario("health/run", &["1"]).nvml(script).run();
            let device = only_device(&run);
            for (function, is_missing) in functions {
                assert_eq!(is_missing(device), function == failing, "{failing}: {device:?}");
            }
            assert_eq!(device.warnings, [""; 0], "{failing}");
        }
        let script = Script::calm(1)
            .failing("nvmlDeviceGetCurrentClocksThrottleReasons", NOT_SUPPORTED)
            .failing("nvmlDeviceGetMPSComputeRunningProcesses_v3", NOT_SUPPORTED);
        let run = scenario("health/run", &["1"]).nvml(script).run();
        assert_eq!(
            (only_device(&run).mps, &only_device(&run).warnings[..]),
            (Some(false), &[][..])
        );
    }

    #[test]
    fn locked_clocks_released_once_at_any_end() {
        let run = scenario("health/locked", &["drop"]).run();
        assert_eq!(run.nvml, [LOCK, "worked", RESET, "main returns"]);
        let run = scenario("health/locked", &["panic"]).panics().exits(101).run();
        assert_eq!(run.nvml, [LOCK, "worked", RESET]);
        let run = scenario("health/locked", &["exit"]).exits(7).run();
        assert_eq!(run.nvml, [LOCK, "worked", RESET]);
        let run = scenario("health/locked", &["forget"]).run();
        assert_eq!(run.nvml, [LOCK, "worked", "main returns", RESET]);
        // The report is made before the clocks are released.
        assert_eq!(clock(only_device(&run), "sm_end_mhz"), 1500);
    }

    #[test]
    fn hanging_nvml_does_not_prevent_exit() {
        let says = "gpu-time: NVML does not answer, and clocks may still be locked";
        let (set, reset) = ("nvmlDeviceSetGpuLockedClocks", "nvmlDeviceResetGpuLockedClocks");
        let run = scenario("health/stuck", &[]).nvml(Script::calm(1).hanging(set));
        assert_eq!(run.complains(says).run().nvml, [format!("hangs {set}")]);
        let hangs = Script::calm(1).hanging(reset);
        for (end, code, last) in [("exit", 7, None), ("drop", 0, Some("main returns"))] {
            let run = scenario("health/locked", &[end]).exits(code).nvml(hangs.clone());
            let hangs = format!("hangs {reset}");
            let trace = [LOCK, "worked", &*hangs].into_iter().chain(last);
            assert!(run.complains(says).run().nvml.iter().eq(trace), "{end}");
        }
    }

    #[test]
    fn locking_alone_reports_no_calls() {
        let run = scenario("health/locked_first", &[]).calls_nothing().run();
        assert!(run.stderr.contains("none of the "), "{}", run.stderr);
        assert_eq!(run.nvml, [LOCK, RESET]);
        assert_eq!(run.fact("cuda:0"), 1500);
    }

    #[test]
    fn lock_returns_measured_clock() {
        let script = Script::calm(1).with(|device| device.sm_cap_mhz = 1305);
        let run = scenario("health/locked", &["exit"]).exits(7).nvml(script).run();
        assert_eq!(run.fact("cuda:0"), 1305);
        assert_warned(&run, "its SM clock is locked at 1500 MHz and reads 1305 MHz: ");
        // A clock that matches its locked value gives no warning.
        let run = scenario("health/locked", &["exit"]).exits(7).run();
        assert_eq!((run.fact("cuda:0"), &only_device(&run).warnings[..]), (1500, &[][..]));
    }

    #[test]
    fn signal_releases_clocks() {
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM] {
            let run = scenario("health/signal", &[&signal.to_string()]);
            let run = run.killed_by(signal).reports_nothing().run();
            assert_eq!(run.nvml, [LOCK, RESET]);
        }
        let run = scenario("health/signal_after", &[]).killed_by(libc::SIGTERM);
        assert_eq!(run.reports_nothing().run().nvml, [LOCK, RESET, "dropped"]);
    }

    #[test]
    fn program_signal_handler_stays_installed() {
        for (name, forwards) in [("health/own_handler_first", 0), ("health/own_handler_later", 1)] {
            let run = scenario(name, &[]).calls_nothing().run();
            assert_eq!(run.nvml, [LOCK, "survived", RESET]);
            assert_eq!((run.fact("handled"), run.fact("still_handled")), (2, 1));
            assert_eq!(run.fact("previous"), forwards);
        }
    }

    #[test]
    fn forked_child_keeps_parent_clocks_locked() {
        let run = scenario("health/locked_before_fork", &[]).calls_nothing().run();
        assert_eq!(run.nvml, [LOCK, "children are gone", RESET]);
    }

    #[track_caller]
    fn refused(mhz: &str, script: Script) -> Run {
        let both = scenario("health/refused", &[mhz]).simulated(|sim| sim.devices(2));
        let run = both.nvml(script).run();
        assert_eq!(run.nvml.last().unwrap(), "refused");
        run
    }

    #[test]
    fn lock_without_permission_suggests_command() {
        let script = Script::calm(2).failing("nvmlDeviceSetGpuLockedClocks", NO_PERMISSION);
        let run = refused("1500", script);
        assert_eq!(run.nvml, ["refused"], "nothing was locked");
        for part in [
            "cuda:0: no permission to lock clocks: run ",
            "`nvidia-smi -i 0000:01:00.0 -lgc 1500,1500` as root",
            "`nvidia-smi -i 0000:01:00.0 -rgc`",
        ] {
            assert!(run.text("error").contains(part), "{}", run.text("error"));
        }
    }

    #[test]
    fn unsupported_clock_is_rejected() {
        for mhz in ["0", "344", "1981", "4294967295"] {
            let run = refused(mhz, Script::calm(2));
            assert_eq!(run.nvml, ["refused"]);
            let expected = format!("cuda:0 has no SM clock of {mhz} MHz: expected 345 to 1980 MHz");
            assert_eq!(run.text("error"), expected);
        }
    }

    /// If one device cannot be locked, none stays locked.
    #[test]
    fn lock_is_all_or_nothing() {
        let mut script = Script::calm(2);
        script.devices[1].lock_fails = Some(NOT_SUPPORTED);
        let run = refused("1500", script);
        assert_eq!(run.nvml, [LOCK, RESET, "refused"]);
        assert!(run.text("error").starts_with("cuda:1: cannot lock "));
    }

    #[test]
    fn second_lock_is_rejected() {
        let run = scenario("health/locked_twice", &[]).calls_nothing().run();
        assert_eq!(run.nvml, [LOCK, RESET, "lock 0000:01:00.0 1200 1200", RESET]);
        assert!(run.text("error").contains(" already locked: "));
    }

    #[test]
    fn failed_release_complains() {
        let script = Script::calm(1).failing("nvmlDeviceResetGpuLockedClocks", NO_PERMISSION);
        let run = scenario("health/locked_first", &[]).nvml(script);
        let run =
            run.complains("gpu-time: cuda:0: cannot release its clock (").calls_nothing().run();
        assert!(run.stderr.contains("`nvidia-smi -i 0000:01:00.0 "), "{}", run.stderr);
    }
}
