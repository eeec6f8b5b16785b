//! A future that is not ready immediately.

use std::future::poll_fn;
use std::mem;
use std::task::Poll;

/// A future that is pending the first time it is polled.
pub async fn later() {
    let mut is_ready = false;
    poll_fn(|_| if mem::replace(&mut is_ready, true) { Poll::Ready(()) } else { Poll::Pending })
        .await;
}
