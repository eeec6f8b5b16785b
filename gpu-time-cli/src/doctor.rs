//! The `doctor` command: checks whether a machine is ready for measuring and suggests remedies.

use std::fs;
use std::process::ExitCode;

use gpu_time_report::{Clocks, Device, printable};
use gpu_time_runtime::tools::doctor::{Checkup, CpuOverload, examine};

use crate::message::Failure;
use crate::output;

/// The exit code if GPU time cannot be measured.
const NO_GPU: u8 = 1;

/// The state of one part of the machine, and a remedy for each problem.
struct Finding {
    state: String,
    advice: Vec<String>,
}

impl Finding {
    fn ok(state: impl Into<String>) -> Finding {
        Finding { state: state.into(), advice: Vec::new() }
    }

    fn problem(state: impl Into<String>, advice: &str) -> Finding {
        Finding { state: state.into(), advice: vec![advice.to_owned()] }
    }
}

/// Runs all checks, prints the findings and returns the exit code.
pub fn run() -> Result<ExitCode, Failure> {
    let checkup = examine();
    let mut findings = hardware(&checkup);
    if let Ok(params) = fs::read_to_string("/proc/driver/nvidia/params") {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        findings.extend(permissions(&params, &status));
    }
    findings.push(host(checkup.cpu_overload.as_ref()));
    let mut text = String::new();
    for Finding { state, advice } in findings {
        text += &format!("{}\n", printable(&state));
        advice.iter().for_each(|line| text += &format!("  ! {}\n", printable(line)));
    }
    output::write(None, &text)?;
    let is_usable = checkup.driver.is_ok() && !checkup.devices.is_empty();
    Ok(if is_usable { ExitCode::SUCCESS } else { ExitCode::from(NO_GPU) })
}

/// Returns the reasons to doubt times measured now, one line each.
pub fn warnings() -> Vec<String> {
    let checkup = examine();
    let gpus = checkup.devices.iter().flat_map(|(device, idle)| {
        let advice = gpu(device, *idle).advice;
        advice.into_iter().map(|line| format!("{}: {line}", device.id))
    });
    let no_nvml = checkup.no_nvml.as_ref().filter(|_| !checkup.devices.is_empty());
    let unknown =
        no_nvml.map(|why| format!("cannot tell whether other programs use the GPUs: NVML: {why}"));
    gpus.chain(unknown).chain(checkup.cpu_overload.iter().map(CpuOverload::to_string)).collect()
}

/// Checks the driver, NVML and the GPUs.
fn hardware(checkup: &Checkup) -> Vec<Finding> {
    let Checkup { driver, no_nvml, devices, .. } = checkup;
    let version = match driver {
        Ok(version) => version,
        Err(why) => {
            let advice = "install the NVIDIA driver, or pass the GPUs to the container, for example with \
                          `--gpus all`: until then, only host time can be measured";
            return vec![Finding::problem(format!("driver: {why}"), advice)];
        }
    };
    let mut findings = vec![Finding::ok(format!("driver: CUDA {version}"))];
    if devices.is_empty() {
        let advice = "check `CUDA_VISIBLE_DEVICES`, which may hide all GPUs";
        findings.push(Finding::problem("GPUs: none", advice));
    }
    if let Some(why) = no_nvml {
        let advice = "clocks, throttling and other processes are unknown: install libnvidia-ml.so.1, which \
                      is part of the driver";
        findings.push(Finding::problem(format!("NVML: {why}"), advice));
    }
    findings.extend(devices.iter().map(|(device, idle)| gpu(device, *idle)));
    findings
}

fn host(overload: Option<&CpuOverload>) -> Finding {
    match overload {
        Some(overload) => Finding::problem(format!("host: {}", overload.state), overload.advice),
        None => Finding::ok("host: the CPU is not overloaded"),
    }
}

fn gpu(device: &Device, idle: Option<bool>) -> Finding {
    let mut advice = device.warnings.to_vec();
    if idle == Some(false) && device.other_processes == Some(0) {
        advice.push(
            "the GPU is busy, but its processes are not visible here; they may be in another container: \
             wait until it is idle"
                .to_owned(),
        );
    }
    Finding { state: device_line(device, idle), advice }
}

fn device_line(device: &Device, idle: Option<bool>) -> String {
    let clocks = device.clocks.as_ref();
    let clock = |name, now: fn(&Clocks) -> Option<u32>, max: fn(&Clocks) -> Option<u32>| {
        let max = clocks.and_then(max).map(|max| format!(" of {max}")).unwrap_or_default();
        clocks.and_then(now).map(|now| format!("{name} {now}{max} MHz"))
    };
    let mode =
        |is_on: Option<bool>, on: &str, off: &str| Some(if is_on? { on } else { off }.to_owned());
    let parts = [
        mode(idle, "idle", "busy"),
        clock("SM", |clocks| clocks.sm_end_mhz, |clocks| clocks.sm_max_mhz),
        clock("memory", |clocks| clocks.mem_end_mhz, |clocks| clocks.mem_max_mhz),
        device.temperature_c.map(|degrees| format!("{degrees} °C")),
        device.power_w.map(|watts| format!("{watts:.0} W")),
        mode(device.persistence, "persistence on", "persistence off"),
        mode(device.mps, "MPS on", "MPS off"),
        mode(device.mig, "MIG on", "MIG off"),
    ];
    let name = format!("{}: {}", device.id, device.name);
    parts.into_iter().flatten().fold(name, |line, part| line + ", " + &part)
}

/// Checks whether this process may profile and lock clocks.
///
/// `params` is the content of `/proc/driver/nvidia/params`, `status` that of `/proc/self/status`.
fn permissions(params: &str, status: &str) -> [Finding; 2] {
    const CAP_SYS_ADMIN: u32 = 21;
    let field = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_start_matches(':').trim().to_owned())
    };
    let capabilities = field(status, "CapEff").and_then(|hex| u64::from_str_radix(&hex, 16).ok());
    let is_admin = capabilities.is_some_and(|all| all >> CAP_SYS_ADMIN & 1 == 1);
    let is_root =
        field(status, "Uid").is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0"));
    let admin_only = field(params, "RmProfilingAdminOnly").is_none_or(|value| value != "0");
    let profiling = if is_admin || !admin_only {
        Finding::ok("profiling: CUPTI and Nsight Compute may use the performance counters")
    } else {
        Finding::problem(
            "profiling: the performance counters are restricted to root (gpu-time does not use them)",
            "to compare with Nsight Compute, run it as root, or load the driver's kernel module with \
             `NVreg_RestrictProfilingToAdminUsers=0`",
        )
    };
    let clocks = if is_root {
        Finding::ok("clocks: may be locked with `lock_clocks`")
    } else {
        Finding::problem(
            "clocks: only root may lock them",
            "run the program that calls `lock_clocks` as root, or run `nvidia-smi -lgc MHZ` as root first",
        )
    };
    [profiling, clocks]
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: &str = "Name:\tx\nUid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n";
    const ROOT: &str = "Name:\tx\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n";

    #[test]
    fn overloaded_host_has_a_state() {
        let overload = CpuOverload { state: "9 on 2".to_owned(), advice: "wait" };
        let finding = host(Some(&overload));
        assert_eq!((&*finding.state, &*finding.advice[0]), ("host: 9 on 2", "wait"));
    }

    #[test]
    fn permissions_depend_on_driver_and_user() {
        let (restricted, open) = ("A: 1\nRmProfilingAdminOnly: 1\n", "RmProfilingAdminOnly: 0\n");
        let allowed =
            |params, status| permissions(params, status).map(|finding| finding.advice.is_empty());
        assert_eq!(allowed(restricted, USER), [false, false]);
        assert_eq!(allowed(open, USER), [true, false]);
        assert_eq!(allowed(restricted, ROOT), [true, true]);
        // Older drivers do not publish the parameter, so profiling is assumed to be restricted.
        assert_eq!(allowed("", ""), [false, false]);
    }
}
