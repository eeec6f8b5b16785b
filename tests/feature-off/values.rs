//! Reads values, which needs the feature `enabled`.

use gpu_time::{Settle, until_stable};

fn main() {
    let snapshot = gpu_time::snapshot();
    let series: Option<&gpu_time::Series> = None;
    gpu_time::compare(Settle::default(), ("old", || {}), ("new", || {}));
    let clocks = gpu_time::lock_clocks(1_500);
}
