//! The driver used for scenarios.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

use gpu_time_sim_cupti::SimCupti;
use gpu_time_sim_driver::SimDriver;
use gpu_time_sim_nvml::SimNvml;

/// Returns `true` if scenarios run on this machine's GPU.
pub fn is_real() -> bool {
    match std::env::var("GPU_TIME_TEST_DRIVER").as_deref() {
        Ok("real") => true,
        Ok("simulated") | Err(_) => false,
        Ok(other) => panic!(
            "invalid value `{other}` for `GPU_TIME_TEST_DRIVER`: expected `real` or `simulated`"
        ),
    }
}

/// Returns the simulated driver and the NVML stand-in, installed once for all tests.
pub fn sim() -> SimDriver {
    static SIM: OnceLock<SimDriver> = OnceLock::new();
    SIM.get_or_init(|| install("driver", &[])).clone()
}

/// Returns the folder with this stand-in for CUPTI, installed once for all tests.
pub fn cupti_dir(cupti: &SimCupti) -> PathBuf {
    static INSTALLED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scenarios").join(cupti.name());
    let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
    if installed.insert(dir.clone()) {
        cupti.install(&dir).expect("the stand-in for CUPTI is installed");
    }
    dir
}

/// Installs the simulated driver, without the functions in `absent`, and the NVML stand-in in a folder
/// with this name.
pub fn install(name: &str, absent: &[&str]) -> SimDriver {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scenarios").join(name);
    SimNvml::install(&dir).expect("the NVML stand-in is installed");
    SimDriver::install_without(dir, absent).expect("the simulated driver is installed")
}
