//! A stub of `phase` for builds without the `kernels` feature, which record nothing.

use crate::base::stubs::stubs;

pub(crate) mod windows {
    use std::iter::Empty;
    use std::time::Instant;

    use super::stubs;
    use crate::record::awaited::{Awaited, KnownLaunch, KnownLaunches, Outlook};
    use crate::types::activity::Activity;

    #[derive(Default)]
    pub(crate) struct Windows;

    stubs! { Windows:
        fn are_waiting(&self) -> bool;
        fn have_closed_since(&self, Instant) -> bool;
        fn add(&self, &KnownLaunch) -> Option<u64>;
        fn forget(&self, &KnownLaunch);
        fn awaited(&self) -> Empty<&'static mut Awaited>;
        fn take(&self, &Activity, &KnownLaunch);
        fn lose_all(&self);
        fn finish(&self, bool, &mut KnownLaunches, Instant, impl Fn(&Awaited, &KnownLaunches) -> Outlook);
    }
}

pub(crate) mod current {
    #[derive(Clone, Copy, PartialEq)]
    pub(crate) struct Phase {
        pub number: u32,
        pub weight: f32,
    }

    super::stubs! { fn phase() -> Option<Phase>; }
}

pub(crate) mod window {
    super::stubs! {
        fn wake();
        fn begin();
        fn note_launch();
    }
}

pub(crate) mod controller {
    use std::time::Duration;

    use super::stubs;
    use crate::types::record_mode::{Needs, RecordMode};
    use crate::types::site_time::SiteTime;

    #[derive(Default)]
    pub(crate) struct Suspension;

    stubs! {
        fn want();
        fn want_in_run(Needs);
        fn is_run_recorded() -> bool;
        fn is_suspended() -> bool;
        fn suspend() -> Suspension;
        fn is_ordered() -> bool;
        fn set(RecordMode, bool, bool);
        fn request(Option<Duration>);
        fn before_opening(fn());
        fn coverage(u32) -> Option<gpu_time_report::Coverage>;
        fn site_times(u32) -> Vec<SiteTime>;
        fn is_used() -> bool;
        fn warning() -> Option<String>;
        fn end();
        fn wait_for_start();
    }
}
