//! CUPTI's duration for an empty kernel. An event pair's bias is the time that it measures around
//! an empty kernel, minus this duration.

use std::process::ExitCode;

use cudarc::driver::PushKernelArg;
use gpu_time_kernels::{EMPTY, workloads};

use crate::cupti::Cupti;
use crate::failure::Failure;
use crate::figure::Figure;
use crate::gpu::{Gpu, ONE, is_present};

const LAUNCHES: usize = 2_000;

/// Prints the duration on this machine, for launches behind a hold and on an idle stream, followed
/// by the setting that uses it. Fails without a GPU or CUPTI.
pub fn measure() -> Result<ExitCode, Failure> {
    if !is_present() {
        return Err("no GPU here".into());
    }
    // CUPTI must start before the first context is created, so that it records everything.
    let cupti = Cupti::start()?;
    let gpu = Gpu::new()?;
    gpu.ramp()?;
    let held = empty_kernel(&cupti, &gpu, true)?;
    let idle = empty_kernel(&cupti, &gpu, false)?;
    let (major, minor) = gpu.context.compute_capability()?;
    let range = |figure: Figure| format!("{} ({}–{})", figure.median, figure.p5, figure.p95);
    println!("| device | sm | driver | CUPTI | held, ns | idle, ns |");
    println!("|---|---|---|---|---:|---:|");
    println!(
        "| {} | sm_{major}{minor} | {} | {} | {} | {} |",
        gpu.context.name()?,
        driver()?,
        cupti.version(),
        range(held),
        range(idle)
    );
    println!("\nGPU_TIME_BIAS=cupti:{}ns", held.median);
    Ok(ExitCode::SUCCESS)
}

/// Measures empty kernels, either each on an idle stream, or in batches of 100 with the stream held
/// until the batch has been enqueued.
fn empty_kernel(cupti: &Cupti, gpu: &Gpu, is_held: bool) -> Result<Figure, Failure> {
    const BATCH: usize = 100;
    /// Longer than it takes to enqueue a batch.
    const HOLD_NS: u64 = 2_000_000;
    let stream = &gpu.stream;
    let (kernel, spin) = (gpu.runtime_kernel(EMPTY)?, gpu.workload(workloads::SPIN_NS)?);
    drop(cupti.take()?);
    for i in 0..LAUNCHES {
        if is_held && i % BATCH == 0 {
            // SAFETY: the argument matches the kernel.
            unsafe { stream.launch_builder(&spin).arg(&HOLD_NS).launch(ONE) }?;
        }
        // SAFETY: the kernel has no parameters.
        unsafe { stream.launch_builder(&kernel).launch(ONE) }?;
        if !is_held || (i + 1) % BATCH == 0 {
            stream.synchronize()?;
        }
    }
    let is_empty = |name: &String| name.as_bytes() == EMPTY.to_bytes();
    let records = cupti.take()?;
    let times: Vec<f64> = records
        .iter()
        .filter(|record| record.kernel.as_ref().is_some_and(is_empty))
        .map(|record| record.duration_ns() as f64)
        .collect();
    if times.len() != LAUNCHES {
        return Err(format!("CUPTI recorded {} of {LAUNCHES} launches", times.len()).into());
    }
    Figure::of(times).ok_or_else(|| "no launches".into())
}

/// Returns the version of the driver's kernel module if known, otherwise the driver's CUDA version.
fn driver() -> Result<String, Failure> {
    let module = std::fs::read_to_string("/proc/driver/nvidia/version").unwrap_or_default();
    if let Some(version) = module_version(&module) {
        return Ok(version.to_owned());
    }
    let mut version = 0;
    // SAFETY: writes one integer.
    unsafe { cudarc::driver::sys::cuDriverGetVersion(&raw mut version) }.result()?;
    Ok(format!("CUDA {}.{}", version / 1000, version % 1000 / 10))
}

/// Returns the first word that consists of numbers separated by dots.
fn module_version(text: &str) -> Option<&str> {
    let is_version = |word: &&str| {
        word.split('.').count() >= 2 && word.split('.').all(|part| part.parse::<u32>().is_ok())
    };
    text.lines().next()?.split_whitespace().find(is_version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_version_is_found_in_text() {
        let text = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue Sep 9 2025\n\
                    GCC version:  gcc version 12.3.0\n";
        assert_eq!(module_version(text), Some("580.159.04"));
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86  Release Build";
        assert_eq!(module_version(open), Some("570.86"));
        assert_eq!(module_version(""), None);
    }
}
