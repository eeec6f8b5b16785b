//! A stub of `phase` for builds without the `kernels` feature, which record nothing.

pub(crate) mod windows {
    use crate::record::awaited::{Awaited, KnownLaunch, KnownLaunches, Outlook};
    use crate::types::activity::Activity;

    pub(crate) struct Windows;

    impl Windows {
        pub const fn new() -> Windows {
            Windows
        }

        pub fn are_waiting(&self) -> bool {
            false
        }

        pub fn have_closed_since(&self, _: std::time::Instant) -> bool {
            false
        }

        pub fn add(&mut self, _: &KnownLaunch) -> Option<u64> {
            None
        }

        pub fn forget(&mut self, _: &KnownLaunch) {}

        pub fn begin_round(&mut self, _: std::time::Instant) {}

        pub fn repeat_round(&mut self) {}

        pub fn take(&mut self, _: &Activity, _: &KnownLaunch) {}

        pub fn lose_all(&mut self) {}

        pub fn finish(
            &mut self,
            _: bool,
            _: &mut KnownLaunches,
            _: std::time::Instant,
            _: impl Fn(&Awaited, &KnownLaunches) -> Outlook,
        ) {
        }
    }
}

pub(crate) mod current {
    #[derive(Clone, Copy, PartialEq)]
    pub(crate) struct Phase {
        pub number: u32,
        pub weight: f32,
    }

    pub(crate) fn phase() -> Option<Phase> {
        None
    }
}

pub(crate) mod window {
    pub(crate) fn wake() {}

    pub(crate) fn begin() {}

    pub(crate) fn note_launch() {}
}

pub(crate) mod controller {
    use std::time::Duration;

    use crate::types::record_mode::RecordMode;
    use crate::types::site_time::SiteTime;

    pub(crate) fn want() {}

    pub(crate) fn want_now() {}

    pub(crate) fn want_events() {}

    pub(crate) fn is_run_recorded() -> bool {
        false
    }

    pub(crate) fn is_suspended() -> bool {
        false
    }

    pub(crate) struct Suspension;

    pub(crate) fn suspend() -> Suspension {
        Suspension
    }

    pub(crate) fn is_ordered() -> bool {
        false
    }

    pub(crate) fn set(_: RecordMode, _: bool, _: bool) {}

    pub(crate) fn request(_: Option<Duration>) {}

    pub(crate) fn before_opening(_: fn()) {}

    pub(crate) fn coverage(_: u32) -> Option<gpu_time_report::Coverage> {
        None
    }

    pub(crate) fn site_times(_: u32) -> Vec<SiteTime> {
        Vec::new()
    }

    pub(crate) fn is_used() -> bool {
        false
    }

    pub(crate) fn warning() -> Option<String> {
        None
    }

    pub(crate) fn end() {}
}
