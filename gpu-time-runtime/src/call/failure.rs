//! Whether what a launch answered is a failure, told by its type.

use std::ops::Deref;

/// A launch's answer.
///
/// Lookup of [failure](Probe::gpu_time_failed) meets a `Result` first, then anything: a launch that failed
/// must not become a sample, and only an `Err` says that one did.
pub struct Probe<'a, R>(Other<'a, R>);

/// An answer that cannot say that the launch failed.
pub struct Other<'a, R>(&'a R);

/// Wraps a launch's answer.
pub fn probe<R>(answer: &R) -> Probe<'_, R> {
    Probe(Other(answer))
}

impl<T, E> Probe<'_, Result<T, E>> {
    /// Whether it is an `Err`.
    pub fn gpu_time_failed(&self) -> bool {
        self.0.0.is_err()
    }
}

impl<T, E> Probe<'_, &Result<T, E>> {
    /// Whether it is an `Err`.
    pub fn gpu_time_failed(&self) -> bool {
        self.0.0.is_err()
    }
}

impl<R> Other<'_, R> {
    /// Never.
    pub fn gpu_time_failed(&self) -> bool {
        false
    }
}

impl<'a, R> Deref for Probe<'a, R> {
    type Target = Other<'a, R>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// The code that the driver's own `cuLaunchKernel` answers.
///
/// Every cudarc gives its `CUresult` a method `result` of its own, which is found before this one;
/// any other answer stands for itself.
pub trait Status {
    /// What to [`probe`].
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
    fn status_codes_speak_for_themselves() {
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
