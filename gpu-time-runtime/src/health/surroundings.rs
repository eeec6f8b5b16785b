//! Other users of the machine and its GPUs, as reported by the operating system.

use std::path::Path;
use std::{env, fmt, fs};

/// More threads than the CPU has cores.
pub struct CpuOverload {
    /// The figures, in words.
    pub state: String,
    /// What to do about it.
    pub advice: &'static str,
}

impl fmt::Display for CpuOverload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.state, self.advice)
    }
}

/// Returns the overload if, on average over the last minute, more threads were runnable than there are
/// cores. Linux only.
pub(crate) fn cpu_overload() -> Option<CpuOverload> {
    overload(&fs::read_to_string("/proc/loadavg").ok()?, &fs::read_to_string("/proc/stat").ok()?)
}

/// Compares the load with all of the machine's cores. The load covers the whole machine, so it is
/// not comparable to the number of cores that this process may use.
fn overload(loadavg: &str, stat: &str) -> Option<CpuOverload> {
    let load: f64 = loadavg.split_whitespace().next()?.parse().ok()?;
    let is_core = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let cores = stat.lines().filter(is_core).count();
    (cores > 0 && load > cores as f64).then(|| CpuOverload {
        state: format!(
            "the CPU is overloaded, with {load} threads on {cores} cores in the last minute, which \
             delays launches"
        ),
        advice: "use `sleep`, or end other programs",
    })
}

/// Returns `true` if the environment names an MPS daemon's directory and its pipe exists there.
pub(super) fn has_mps_pipe() -> bool {
    env::var_os("CUDA_MPS_PIPE_DIRECTORY")
        .is_some_and(|dir| Path::new(&dir).join("control").exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_above_cores_warns() {
        let stat = "cpu  1 2 3\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5\ncpus 3\n";
        assert!(overload("2.00 1.00 0.50 3/400 1234\n", stat).is_none());
        let warning = overload("2.31 1.00 0.50 3/400 1234\n", stat).unwrap().to_string();
        assert!(warning.contains("2.31 threads on 2 cores"), "{warning}");
        assert!(overload("", stat).is_none());
        assert!(overload("9.00", "unknown").is_none());
    }
}
