//! Tests for the stack that calls need, on threads with stacks of 64 KiB.

use crate::harness::{Run, scenario};

const KIB: u64 = 1024;
const FIRST: u64 = 16 * KIB;
/// The maximum stack of later calls. Only optimised code meets it, because other code keeps every temporary on
/// the stack: `Cargo.toml` optimises the runtime and the package of the functions in all profiles.
const LATER: u64 = 4 * KIB;

/// Asserts the amount of stack that the runtime itself needs, without the driver.
#[track_caller]
fn assert_depths(run: &Run) {
    let [driver, first, later] = ["driver", "first", "later"].map(|name| run.fact(name));
    let depths = format!("{first} bytes, later {later}, of which the driver may need {driver}");
    assert!(first <= FIRST + driver, "{depths}");
    assert!(later <= LATER + driver, "{depths}");
}

#[test]
fn host_call_on_small_stack() {
    assert_depths(&scenario("stack/host", &[]).run());
}

#[test]
fn gpu_call_on_small_stack() {
    assert_depths(&scenario("stack/gpu", &[]).untraced().run());
}
