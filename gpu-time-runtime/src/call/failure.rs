//! Detects failed launches by their return value.

use crate::call::lookup::Step;

/// Wraps the return value of a launch.
///
/// Method lookup for `gpu_time_failed` tries `Result` first, then any type. Only an `Err` counts as
/// failure: a failed launch must not become a sample.
pub fn probe<R>(returned: &R) -> Step<Step<&R>> {
    Step(Step(returned))
}

impl<T, E> Step<Step<&Result<T, E>>> {
    /// Returns `true` if the launch returned an `Err`.
    pub fn gpu_time_failed(&self) -> bool {
        self.0.0.is_err()
    }
}

impl<T, E> Step<Step<&&Result<T, E>>> {
    /// Returns `true` if the launch returned an `Err`.
    pub fn gpu_time_failed(&self) -> bool {
        self.0.0.is_err()
    }
}

impl<R> Step<&R> {
    /// Returns `false`, because the value is not a `Result`.
    pub fn gpu_time_failed(&self) -> bool {
        false
    }
}

/// Lets generated code call `result` on any return value, as on the status code of `cuLaunchKernel`.
///
/// In every cudarc version, `CUresult` has its own `result` method, which takes precedence over
/// this one. Any other return value is probed unchanged.
pub trait Status {
    /// Returns the value to pass to [`probe`].
    fn result(&self) -> &Self {
        self
    }
}

impl<R> Status for R {}

#[cfg(test)]
mod tests {
    use super::{Status as _, probe};

    #[test]
    fn only_an_err_is_a_failure() {
        assert!(probe(&Err::<(), _>("no")).gpu_time_failed());
        assert!(!probe(&Ok::<_, String>(1)).gpu_time_failed());
        assert!(!probe(&()).gpu_time_failed());
        assert!(!probe(&None::<u8>).gpu_time_failed());
        assert!(!probe(&Box::new(Err::<(), _>("boxed"))).gpu_time_failed());
    }

    #[test]
    fn status_code_is_probed_as_result() {
        use cudarc::driver::sys::CUresult;

        fn failed(code: CUresult) -> bool {
            probe(&code.result()).gpu_time_failed()
        }
        assert!(!failed(CUresult::CUDA_SUCCESS));
        assert!(failed(CUresult::CUDA_ERROR_INVALID_VALUE));
        assert!(probe(&Err::<(), _>("wrapped").result()).gpu_time_failed());
        assert!(!probe(&Ok::<(), String>(()).result()).gpu_time_failed());
        assert!(!probe(&().result()).gpu_time_failed());
    }
}
