//! A stub of `window` for builds without the `kernels` feature, which have no windows.

pub(crate) mod matching {
    use crate::record::stream_progress::StreamProgress;
    use crate::types::activity::Activity;

    pub(crate) struct Windows;

    impl Windows {
        pub fn begin_round(&mut self) {}

        pub fn repeat_round(&mut self) {}

        pub fn take(&mut self, _: &Activity, _: &mut StreamProgress) -> bool {
            false
        }

        pub fn end_round(&mut self, _: &mut StreamProgress, _: bool, _: bool, _: bool) {}
    }

    pub(crate) fn windows() -> Windows {
        Windows
    }
}

pub(crate) mod notes {
    use crate::types::activity::EnqueueCall;

    pub(crate) fn note(_: &EnqueueCall, _: bool, _: u32) {}

    pub(crate) fn note_failure(_: u32) {}
}

pub(crate) mod thread {
    use std::time::Duration;

    use crate::cuda::DeviceInfo;
    use crate::types::window_plan::WindowPlan;

    pub(crate) fn set(_: Option<WindowPlan>, _: bool) {}

    pub(crate) fn request(_: Option<Duration>) {}

    pub(crate) fn wake() {}

    pub(crate) fn before_opening(_: fn()) {}

    pub(crate) fn devices() -> Vec<DeviceInfo> {
        Vec::new()
    }

    pub(crate) fn coverage(_: u32) -> Option<gpu_time_report::Coverage> {
        None
    }

    pub(crate) fn is_used() -> bool {
        false
    }

    pub(crate) fn warning() -> Option<String> {
        None
    }

    pub(crate) fn take_cost_ns() -> u64 {
        0
    }
}
