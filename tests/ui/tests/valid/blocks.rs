//! Blocks and guards.
#![deny(warnings, clippy::all)]
#![forbid(unsafe_code)]

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use gpu_time::{gpu_timed, guard, scope};

struct Stream;

impl Stream {
    fn cu_stream(&self) -> *mut () {
        std::ptr::null_mut()
    }

    fn context(&self) -> &&Driver {
        &&Driver
    }

    fn launch_builder(&self, _: u8) -> &Stream {
        self
    }

    fn launch(&self) -> Result<u8, String> {
        Ok(7)
    }
}

struct Driver;

impl Driver {
    fn cu_ctx(&self) -> *mut () {
        std::ptr::null_mut()
    }
}

const NAME: &str = "by a constant";

fn values(n: u8) -> Result<u8, String> {
    let mut count = 0;
    let doubled = scope!("doubled", { 2 * n });
    scope!("in a statement", key = n, warmup = 0, {
        count += 1;
    });
    let parsed: u8 = scope!("question mark", { "3".parse::<u8>().map_err(|e| e.to_string())? });
    let found = 'search: {
        for i in 0..5_u8 {
            scope!(NAME, clock = "host", {
                if i == 1 {
                    continue;
                }
                if i == 3 {
                    break 'search Some(i);
                }
            })
        }
        None
    };
    let text = scope!("borrows", { &mut count });
    *text += 1;
    if n == 9 {
        scope!("returns", { return Err("nine".to_owned()) });
    }
    Ok(doubled + parsed + found.unwrap_or(0) + count)
}

fn streams(streams: &(Option<Stream>, u8)) -> Result<u8, String> {
    let (stream, _) = streams;
    let given = scope!("given", stream = stream, cold, { stream.is_none() });
    let lane = Stream;
    let timed = guard!("guarded", stream = stream.as_ref().ok_or("none")?, bytes = 8);
    let inferred = scope!("inferred", sleep, { lane.launch_builder(3).launch()? });
    drop(timed);
    Ok(u8::from(given) + inferred)
}

#[gpu_timed(clock = "host")]
fn inside_a_function(x: u8) -> u8 {
    let _timed = guard!("a guard", clock = "host");
    scope!("outer", clock = "host", { scope!("inner", clock = "host", { x + 1 }) })
}

async fn waits() -> u8 {
    let mut sum = scope!("async", { std::future::ready(3).await });
    sum += std::future::ready(1).await;
    let later = || scope!("in a closure", { 1 });
    scope!("last", { sum + later() })
}

fn send<T: Send>(value: T) -> T {
    value
}

#[test]
fn runs() {
    assert_eq!(values(2), Ok(4 + 3 + 3 + 2));
    assert_eq!(values(9), Err("nine".to_owned()));
    assert_eq!(streams(&(None, 0)), Ok(8));
    assert_eq!(inside_a_function(1), 2);
    let mut future = pin!(send(waits()));
    assert_eq!(future.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(5));

    let snapshot = gpu_time::snapshot();
    let calls = |name: &str| snapshot.site(name).map(|site| site.calls);
    for (name, expected) in [
        ("doubled", 2),
        ("in a statement", 2),
        ("question mark", 2),
        ("by a constant", 8),
        ("borrows", 2),
        ("returns", 1),
        ("given", 1),
        ("guarded", 1),
        ("inferred", 1),
        ("a guard", 1),
        ("outer", 1),
        ("inner", 1),
        ("async", 1),
        ("in a closure", 1),
        ("last", 1),
    ] {
        assert_eq!(calls(name), Some(expected), "{name}");
    }
    assert_eq!(snapshot.site("inferred").map(|site| site.launches_seen), Some(1));
}
