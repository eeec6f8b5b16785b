//! What CUPTI says of an empty kernel: with the time that a pair of events reads around one, that is
//! the bias of the pair.

use std::process::ExitCode;

use cudarc::driver::PushKernelArg;
use gpu_time_kernels::{EMPTY, workloads};

use crate::Failure;
use crate::cupti::Cupti;
use crate::figure::Figure;
use crate::gpu::{Gpu, ONE, is_there};

const LAUNCHES: usize = 2_000;

/// Prints the row of this machine: the figure of launches that the stream was held for, and of
/// launches that each found it idle; then the setting that makes it the base here. Without a GPU or
/// CUPTI it says so.
pub fn kernel_base() -> ExitCode {
    match measure() {
        Ok((row, held)) => {
            println!("| device | sm | driver | CUPTI | held, ns | idle, ns |");
            println!("|---|---|---|---|---:|---:|");
            println!("{row}");
            println!("\nGPU_TIME_BIAS=cupti:{}ns", held.median);
            ExitCode::SUCCESS
        }
        Err(why) => {
            eprintln!("kernel-base: {why}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> Result<(String, Figure), Failure> {
    if !is_there() {
        return Err("no GPU here".into());
    }
    // Before the first context, so that all of it is seen.
    let cupti = Cupti::start()?;
    let gpu = Gpu::new()?;
    gpu.ramp()?;
    let held = empty(&cupti, &gpu, true)?;
    let idle = empty(&cupti, &gpu, false)?;
    let (major, minor) = gpu.context.compute_capability()?;
    let range = |figure: Figure| format!("{} ({}–{})", figure.median, figure.p5, figure.p95);
    let row = format!(
        "| {} | sm_{major}{minor} | {} | {} | {} | {} |",
        gpu.context.name()?,
        driver()?,
        cupti.version(),
        range(held),
        range(idle)
    );
    Ok((row, held))
}

/// Launches with the stream held until a hundred have been enqueued, or each on an idle one.
fn empty(cupti: &Cupti, gpu: &Gpu, is_held: bool) -> Result<Figure, Failure> {
    const BATCH: usize = 100;
    const LONGER_THAN_A_BATCH: u64 = 2_000_000;
    let stream = &gpu.stream;
    let (kernel, spin) = (gpu.runtime_kernel(EMPTY)?, gpu.workload(workloads::SPIN_NS)?);
    drop(cupti.take()?);
    for i in 0..LAUNCHES {
        if is_held && i % BATCH == 0 {
            // SAFETY: the argument is the kernel's.
            unsafe { stream.launch_builder(&spin).arg(&LONGER_THAN_A_BATCH).launch(ONE) }?;
        }
        // SAFETY: the kernel takes nothing.
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

/// The driver's own version where the kernel module says it, else the CUDA version that it implements.
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

/// The word that is numbers with dots between them.
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
    fn the_drivers_version_stands_among_words() {
        let text = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Tue Sep 9 2025\n\
                    GCC version:  gcc version 12.3.0\n";
        assert_eq!(module_version(text), Some("580.159.04"));
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86  Release Build";
        assert_eq!(module_version(open), Some("570.86"));
        assert_eq!(module_version(""), None);
    }
}
