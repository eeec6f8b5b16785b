//! Tests for scripted faults, process exit, forked children, and a missing driver.
#![allow(unsafe_code)] // calls C interfaces

mod client;
#[path = "../../sim-driver/tests/support/mod.rs"]
mod support;

use client::*;
use cudarc::driver::sys::CUstream;
use gpu_time_sim_cupti::{SimCupti, Version};
use support::*;

/// Starts recording kernels. Returns the client, the kernels and a stream.
fn recording() -> (Client, Kernels, CUstream) {
    start();
    let (client, kernels, stream) = (Client::subscribed(), Kernels::load(), stream());
    client.enable(&[KERNELS]);
    (client, kernels, stream)
}

/// Runs kernels of 1 µs, 2 µs … and waits for them.
fn run_kernels(kernels: &Kernels, stream: CUstream, count: u64) {
    (1..=count).for_each(|us| kernels.spin(stream, us * 1_000));
    sync(stream);
}

/// Returns the length in µs of each kernel from `run_kernels`, which identifies the kernel. A record
/// without times gives 0.
fn numbers(records: &[Record]) -> Vec<u64> {
    let length = |record: &Record| (record.end - record.start).saturating_sub(672);
    records.iter().map(|record| length(record) / 1_000).collect()
}

#[test]
fn dropped_records_are_counted() {
    child!().sim(|sim| scripted(sim, "drop=3")).run(|| {
        let (client, kernels, stream) = recording();
        run_kernels(&kernels, stream, 7);
        client.flush();
        assert_eq!(numbers(&take_records()), [1, 2, 4, 5, 7]);
        assert_eq!((client.dropped(), client.dropped()), (2, 0));
        // The trace still has all kernels that CUPTI should have recorded.
        assert_eq!(trace().recorded().count(), 7);
    });
}

#[test]
fn lost_records_are_not_counted() {
    child!().sim(|sim| scripted(sim, "lose=2")).run(|| {
        let (client, kernels, stream) = recording();
        run_kernels(&kernels, stream, 5);
        client.flush();
        assert_eq!((numbers(&take_records()), client.dropped()), (vec![1, 3, 5], 0));
    });
}

#[test]
fn records_without_times() {
    child!().sim(|sim| scripted(sim, "zero=2")).run(|| {
        let (client, kernels, stream) = recording();
        run_kernels(&kernels, stream, 5);
        client.flush();
        let records = take_records();
        assert_eq!(numbers(&records), [1, 0, 3, 0, 5]);
        assert!(records.iter().all(|record| (record.start == 0) == (record.end == 0)));
    });
}

#[test]
fn late_records() {
    child!().sim(|sim| scripted(sim, "late=2")).run(|| {
        let (client, kernels, stream) = recording();
        run_kernels(&kernels, stream, 2);
        client.flush();
        run_kernels(&kernels, stream, 3);
        client.flush();
        assert!(take_buffers().is_empty());
        client.flush();
        assert_eq!(numbers(&take_records()), [1, 2]);
        client.flush();
        assert_eq!(numbers(&take_records()), [1, 2, 3]);
        run_kernels(&kernels, stream, 1);
        client.call("cuptiActivityFlushAll", FORCED);
        assert_eq!(numbers(&take_records()), [1]);
    });
}

#[test]
fn several_buffers() {
    child!().sim(|sim| scripted(sim, "records=2")).run(|| {
        let (client, kernels, stream) = recording();
        (1..=5).for_each(|us| kernels.spin(stream, us * 1_000));
        sync(stream);
        client.flush();
        let buffers: Vec<_> = take_buffers().iter().map(|records| numbers(records)).collect();
        assert_eq!(buffers, [vec![1, 2], vec![3, 4], vec![5]]);
    });
}

#[test]
fn newest_records_first() {
    child!().sim(|sim| scripted(sim, "records=2,reversed")).run(|| {
        let (client, kernels, stream) = recording();
        // While the stream is busy, full buffers are not delivered.
        kernels.busy(stream);
        run_kernels(&kernels, stream, 4);
        client.flush();
        let buffers: Vec<_> = take_buffers().iter().map(|records| numbers(records)).collect();
        assert_eq!(buffers, [vec![3, 2], vec![1, 1_000], vec![4]]);
    });
}

extern "C" fn print_records() {
    eprintln!("delivered {:?}", numbers(&take_records()));
}

#[test]
fn buffers_delivered_at_exit() {
    let outcome = child!().sim(|sim| scripted(sim, "exit")).run(|| {
        // Handlers run in reverse order of registration.
        // SAFETY: the function belongs to this program.
        unsafe { libc::atexit(print_records) };
        let (_, kernels, stream) = recording();
        run_kernels(&kernels, stream, 2);
    });
    assert!(outcome.stderr.contains("delivered [1, 2]"), "{}", outcome.stderr);
}

#[test]
fn nothing_delivered_at_exit_without_script() {
    let outcome = child!().sim(|sim| scripted(sim, "")).run(|| {
        // SAFETY: the function belongs to this program.
        unsafe { libc::atexit(print_records) };
        let (_, kernels, stream) = recording();
        run_kernels(&kernels, stream, 2);
    });
    assert!(outcome.stderr.contains("delivered []"), "{}", outcome.stderr);
}

#[test]
fn subscriber_refused_for_a_while() {
    child!().sim(|sim| scripted(sim, "").faults("cuptiSubscribe:1-2=39")).run(|| {
        start();
        let mut client = Client::load();
        assert_eq!([client.subscribe(), client.subscribe(), client.subscribe()], [TAKEN, TAKEN, 0]);
        assert_eq!(client.result_name(TAKEN), "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED");
        // From here on, this client is the only subscriber.
        assert_eq!(Client::load().subscribe(), TAKEN);
        assert_eq!((client.unsubscribe(), client.subscribe()), (0, 0));
        let results: Vec<i32> =
            trace().calls_of("cuptiSubscribe").filter(|c| c.scripted).map(|c| c.result).collect();
        assert_eq!(results, [39; 2]);
    });
}

#[test]
fn exclusive_subscriber() {
    child!().sim(|sim| with(sim, SimCupti::new(Version::V13_2).script("other=exclusive"))).run(
        || {
            let mut client = Client::load();
            assert_eq!(client.subscribe(), TAKEN);
            assert_eq!(client.subscribe_with(true), (TAKEN, "CUPTI for Other Tool".to_owned()));
        },
    );
}

#[test]
fn shared_subscriber() {
    child!().sim(|sim| with(sim, SimCupti::new(Version::V13_2).script("other=shared"))).run(|| {
        let mut client = Client::load();
        let name = || "CUPTI for Other Tool".to_owned();
        assert_eq!(client.subscribe(), TAKEN);
        assert_eq!(client.subscribe_with(false), (TAKEN, name()));
        assert_eq!(client.subscribe_with(true), (0, name()));
    });
}

#[test]
fn subscriber_cannot_be_shared_before_13_2() {
    child!().sim(|sim| scripted(sim, "other=shared")).run(|| {
        assert_eq!(Client::load().subscribe_with(true).0, TAKEN);
    });
}

#[test]
fn subscriber_refused_by_old_driver() {
    child!().sim(|sim| scripted(sim, "").model("driver_version=12_090")).run(|| {
        assert_eq!(Client::load().subscribe(), 15);
    });
}

#[test]
fn kind_refused() {
    child!().sim(|sim| scripted(sim, "").faults("cuptiActivityEnable:2+=35")).run(|| {
        let (client, kernels, stream) = recording();
        let enable = |kind| client.call("cuptiActivityEnable", kind);
        assert_eq!([enable(MEMCPY), enable(KERNELS)], [35; 2]);
        run_kernels(&kernels, stream, 1);
        client.flush();
        assert_eq!(take_records().len(), 1);
        assert_eq!(client.result_name(35), "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES");
    });
}

#[test]
fn invalid_uses_are_refused() {
    child!().sim(|sim| scripted(sim, "")).run(|| {
        start();
        let client = Client::load();
        // A flush without functions for buffers, unknown kinds, and both kinds of kernels at once.
        assert_eq!(client.call("cuptiActivityFlushAll", 0), 7);
        assert_eq!(client.call("cuptiActivityEnable", 4_000), 21);
        assert_eq!(client.call("cuptiActivityDisable", 4_000), 21);
        client.enable(&[KERNELS]);
        assert_eq!(client.call("cuptiActivityEnable", 3), 14);
        // Activity without a subscriber is dropped if there is no buffer.
        let (kernels, stream) = (Kernels::load(), stream());
        run_kernels(&kernels, stream, 2);
        assert_eq!(client.dropped(), 2);
    });
}

#[test]
fn missing_function() {
    let sim = |sim| with(sim, SimCupti::default().without("cuptiActivityFlushAll"));
    child!().sim(sim).run(|| {
        let client = Client::load();
        assert!(!client.has("cuptiActivityFlushAll") && client.has("cuptiActivityEnable"));
    });
}

#[test]
fn version_too_old() {
    child!().sim(|sim| with(sim, SimCupti::new(Version::V10_2))).run(|| {
        assert_eq!(Client::load_version(Version::V10_2).version(), 12);
    });
}

#[test]
fn version_too_new() {
    child!().sim(|sim| with(sim, SimCupti::new(Version::V99))).run(|| {
        assert_eq!(Client::load_version(Version::V99).version(), 990_000);
    });
}

#[test]
fn misspelled_script_aborts() {
    let sim = |sim| scripted(sim, "").with("GPU_TIME_TEST_SIM_CUPTI", "drpo=1");
    let outcome = child!().sim(sim).run_unchecked(|| {
        Client::load().version();
    });
    assert!(!outcome.status.success());
    assert!(outcome.stderr.contains("unknown key `drpo`"), "{}", outcome.stderr);
}

#[test]
fn forked_child_is_refused() {
    child!().sim(|sim| scripted(sim, "")).run(|| {
        let (client, kernels, stream) = recording();
        run_kernels(&kernels, stream, 2);
        // SAFETY: the child only makes calls that take no lock, and exits.
        let child = unsafe { libc::fork() };
        if child == 0 {
            let refused = client.timestamp() == Err(NOT_INITIALIZED)
                && client.call("cuptiActivityFlushAll", 0) == NOT_INITIALIZED
                && client.call("cuptiActivityDisable", KERNELS) == NOT_INITIALIZED;
            // SAFETY: ends the child.
            unsafe { libc::_exit(if refused { 0 } else { 1 }) };
        }
        let mut status = 0;
        // SAFETY: the call waits for a child of this process.
        assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
        assert_eq!(status, 0);
        client.flush();
        assert_eq!(numbers(&take_records()), [1, 2]);
    });
}

extern "C" fn print_result() {
    let client = Client::load();
    eprintln!("{:?} {}", client.timestamp(), client.call("cuptiActivityFlushAll", 0));
}

#[test]
fn calls_after_driver_has_shut_down_are_refused() {
    let outcome = child!().sim(|sim| scripted(sim, "")).run(|| {
        // The driver registers its handler later, so the driver's handler runs first.
        // SAFETY: the function belongs to this program.
        unsafe { libc::atexit(print_result) };
        // Records nothing, because recording would register a teardown of CUPTI itself.
        start();
        let (_client, kernels, stream) = (Client::subscribed(), Kernels::load(), stream());
        run_kernels(&kernels, stream, 2);
    });
    assert!(outcome.stderr.contains("Err(15) 15"), "{}", outcome.stderr);
}

#[test]
fn flush_can_take_time() {
    child!().sim(|sim| scripted(sim, "").model("cost.cuptiActivityFlushAll=35000")).run(|| {
        let (client, kernels, stream) = recording();
        kernels.spin(stream, 100_000);
        let before = now();
        client.flush();
        assert_eq!((now() - before, take_buffers().len()), (35_000, 0));
        // The kernel ends while the host flushes.
        (0..3).for_each(|_| client.flush());
        assert_eq!(take_records().len(), 1);
    });
}

#[test]
fn nothing_works_without_simulated_driver() {
    let dir = tempfile::tempdir().unwrap();
    let cupti = SimCupti::default();
    cupti.install(dir.path()).unwrap();
    // SAFETY: loading the library does not run any code, and the type matches the header.
    unsafe {
        let library = libloading::Library::new(dir.path().join("libcupti.so.13")).unwrap();
        let enable = library.get::<unsafe extern "C" fn(u32) -> u32>(b"cuptiActivityEnable");
        assert_eq!(enable.unwrap()(KERNELS), NOT_INITIALIZED);
    }
}
