//! What a machine is like to measure on, with a line of advice for each thing that is not as it should be.

use std::fs;
use std::process::ExitCode;

use gpu_time_report::{Clocks, Device, printable};
use gpu_time_runtime::doctor::{Checkup, examine};

use crate::{Failure, output};

/// The exit code where nothing can be timed on a GPU.
const NOTHING: u8 = 1;

/// What was found, and what to do about it.
struct Finding {
    what: String,
    advice: Vec<String>,
}

impl Finding {
    fn fine(what: impl Into<String>) -> Finding {
        Finding { what: what.into(), advice: Vec::new() }
    }

    fn with(what: impl Into<String>, advice: &str) -> Finding {
        Finding { what: what.into(), advice: vec![advice.to_owned()] }
    }
}

/// Looks and tells.
pub fn run() -> Result<ExitCode, Failure> {
    let checkup = examine();
    let mut findings = hardware(&checkup);
    if let Ok(params) = fs::read_to_string("/proc/driver/nvidia/params") {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        findings.extend(permissions(&params, &status));
    }
    findings.push(match &checkup.cpu_overload {
        Some(overload) => Finding::with("host", overload),
        None => Finding::fine("host: the CPU is not overloaded"),
    });
    let mut text = String::new();
    for Finding { what, advice } in findings {
        text += &format!("{}\n", printable(&what));
        advice.iter().for_each(|line| text += &format!("  ! {}\n", printable(line)));
    }
    output::write(None, &text)?;
    let is_usable = checkup.driver.is_ok() && !checkup.devices.is_empty();
    Ok(if is_usable { ExitCode::SUCCESS } else { ExitCode::from(NOTHING) })
}

/// The driver, NVML and the GPUs.
fn hardware(checkup: &Checkup) -> Vec<Finding> {
    let Checkup { driver, no_nvml, devices, .. } = checkup;
    let version = match driver {
        Ok(version) => version,
        Err(why) => {
            let advice = "install NVIDIA's driver, or give the container its GPUs, as by `--gpus all`: \
                          until then only the host's clock tells the time";
            return vec![Finding::with(format!("driver: {why}"), advice)];
        }
    };
    let mut findings = vec![Finding::fine(format!("driver: CUDA {version}"))];
    if devices.is_empty() {
        let advice = "look at `CUDA_VISIBLE_DEVICES`, which may hide all of them";
        findings.push(Finding::with("GPUs: none", advice));
    }
    if let Some(why) = no_nvml {
        let advice = "clocks, throttling and neighbours are not known: NVML comes with the driver, as \
                      libnvidia-ml.so.1";
        findings.push(Finding::with(format!("NVML: {why}"), advice));
    }
    findings.extend(devices.iter().map(|(device, idle)| gpu(device, *idle)));
    findings
}

fn gpu(device: &Device, idle: Option<bool>) -> Finding {
    let mut advice = device.warnings().to_vec();
    if idle == Some(false) && device.other_processes() == Some(0) {
        advice.push(
            "something runs on it that is not seen from here, as in another container: wait until it \
             is idle"
                .to_owned(),
        );
    }
    Finding { what: device_line(device, idle), advice }
}

fn device_line(device: &Device, idle: Option<bool>) -> String {
    let clocks = device.clocks();
    let clock = |what, now: fn(&Clocks) -> Option<u32>, most: fn(&Clocks) -> Option<u32>| {
        let most = clocks.and_then(most).map(|most| format!(" of {most}")).unwrap_or_default();
        clocks.and_then(now).map(|now| format!("{what} {now}{most} MHz"))
    };
    let mode = |is: Option<bool>, on: &str, off: &str| Some(if is? { on } else { off }.to_owned());
    let parts = [
        mode(idle, "idle", "busy"),
        clock("SM", Clocks::sm_end_mhz, Clocks::sm_max_mhz),
        clock("memory", Clocks::mem_end_mhz, Clocks::mem_max_mhz),
        device.temperature_c().map(|degrees| format!("{degrees} °C")),
        device.power_w().map(|watts| format!("{watts:.0} W")),
        mode(device.persistence(), "persistence on", "persistence off"),
        mode(device.mps(), "MPS on", "MPS off"),
        mode(device.mig(), "MIG on", "MIG off"),
    ];
    let name = format!("{}: {}", device.id(), device.name());
    parts.into_iter().flatten().fold(name, |line, part| line + ", " + &part)
}

/// Who may profile and lock clocks, by the driver's parameters and the state of this process.
fn permissions(params: &str, status: &str) -> [Finding; 2] {
    const SYS_ADMIN: u32 = 21;
    let field = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        Some(line.trim_start_matches(':').trim().to_owned())
    };
    let capabilities = field(status, "CapEff").and_then(|hex| u64::from_str_radix(&hex, 16).ok());
    let is_admin = capabilities.is_some_and(|all| all >> SYS_ADMIN & 1 == 1);
    let is_root =
        field(status, "Uid").is_some_and(|ids| ids.split_whitespace().nth(1) == Some("0"));
    let admin_only = field(params, "RmProfilingAdminOnly").is_none_or(|value| value != "0");
    let profiling = if is_admin || !admin_only {
        Finding::fine("profiling: CUPTI and Nsight Compute may use the counters")
    } else {
        Finding::with(
            "profiling: the counters are for root only, which gpu-time does not need",
            "to compare with Nsight Compute, run that as root, or load the driver's module with \
             `NVreg_RestrictProfilingToAdminUsers=0`",
        )
    };
    let clocks = if is_root {
        Finding::fine("clocks: `lock_clocks` may fix them")
    } else {
        Finding::with(
            "clocks: root alone may fix them",
            "run as root what calls `lock_clocks`, or `nvidia-smi -lgc MHZ` before",
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
    fn permissions_are_those_of_the_driver_and_the_user() {
        let (closed, open) = ("A: 1\nRmProfilingAdminOnly: 1\n", "RmProfilingAdminOnly: 0\n");
        let may = |params, status| permissions(params, status).map(|found| found.advice.is_empty());
        assert_eq!(may(closed, USER), [false, false]);
        assert_eq!(may(open, USER), [true, false]);
        assert_eq!(may(closed, ROOT), [true, true]);
        // An older driver restricts nobody knows whom.
        assert_eq!(may("", ""), [false, false]);
    }
}
