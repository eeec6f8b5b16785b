//! A crate without unsafe code, in which generated code must not have any either.
#![forbid(unsafe_code)]
#![deny(warnings)]

use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::CudaStream;
use gpu_time::{LEGACY_STREAM, NULL_STREAM, PER_THREAD_STREAM, Settle, gpu_timed, until_stable};

#[gpu_timed]
fn inferred(stream: Option<&Arc<CudaStream>>) -> bool {
    stream.is_some()
}

#[gpu_timed(stream = stream, graph, launch = "launch")]
async fn owned(stream: Option<Arc<CudaStream>>) -> bool {
    launch().await;
    stream.is_some()
}

async fn launch() {}

#[gpu_timed(stream = [NULL_STREAM, LEGACY_STREAM, PER_THREAD_STREAM][n], cold, sleep)]
fn constant(n: usize) -> usize {
    n
}

#[test]
fn runs() {
    assert!(!inferred(None));
    drop(owned(None));
    assert_eq!(constant(2), 2);
    let settle = Settle::default().timeout(Duration::ZERO).graph(PER_THREAD_STREAM, 2);
    assert!(until_stable(settle, || assert_eq!(constant(1), 1)).back_to_back.is_none());
}
