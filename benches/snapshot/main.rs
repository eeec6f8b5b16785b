//! The time that a call takes while another thread makes snapshots of many functions and threads.
//!
//! ```text
//! cargo bench --bench snapshot
//! ```
//!
//! One thread calls 10,000 functions in turn. 1,023 other threads have called 100 of them each. Prints how
//! long the calls took without snapshots and during snapshots. The bench has no bound, because on a busy
//! machine the longest calls are those during which the thread was descheduled. Tests of the runtime bound
//! the work that a snapshot does under a lock.

use std::hint::black_box;
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use gpu_time::__private::{CallSite, Clock, NoDetails, Spec, enter};

const SITES: usize = 10_000;
const THREADS: usize = 1_024;
const SITES_OF_THREAD: usize = 100;
const SNAPSHOTS: usize = 5;
const PERIOD: Duration = Duration::from_secs(2);

/// Creates a site as the attribute does, named by its line.
fn site(line: usize) -> &'static CallSite {
    let name = Box::leak(format!("bench::site_{line}").into_boxed_str());
    Box::leak(Box::new(CallSite::new(Spec {
        line: line as u32,
        clock: Clock::Host,
        ..Spec::named(name)
    })))
}

fn call(site: &'static CallSite) {
    let scope = enter(site, NoDetails);
    black_box(site);
    drop(scope);
}

/// Calls the sites in turn until told to stop, and returns the times of the calls in ascending order.
fn calls(sites: &[&'static CallSite], is_over: &AtomicBool) -> Vec<Duration> {
    let mut times = Vec::with_capacity(100_000_000);
    for site in sites.iter().cycle() {
        if is_over.load(Relaxed) || times.len() == times.capacity() {
            break;
        }
        let began = Instant::now();
        call(site);
        times.push(began.elapsed());
    }
    times.sort_unstable();
    times
}

fn print(label: &str, times: &[Duration]) {
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!(
        "{label:<18} {:>9} calls, median {:?}, 99.9 % {:?}, 99.99 % {:?}, longest {:?}",
        times.len(),
        at(0.5),
        at(0.999),
        at(0.9999),
        at(1.0)
    );
}

fn main() {
    // SAFETY: no other thread is running yet.
    #[allow(unsafe_code)]
    unsafe {
        std::env::set_var("GPU_TIME_REPORT", "none");
    }
    let sites: Vec<_> = (1..=SITES).map(site).collect();
    // Registers all sites first, so that the counters of threads created later have room for them.
    sites.iter().for_each(|site| call(site));
    let (called, done) = (Barrier::new(THREADS), Barrier::new(THREADS));
    let (called, done, sites) = (&called, &done, &sites[..]);
    thread::scope(|scope| {
        for at in 1..THREADS {
            let run = move || {
                let own = sites.iter().cycle().skip(at * 97).take(SITES_OF_THREAD);
                own.for_each(|site| call(site));
                called.wait();
                done.wait();
            };
            thread::Builder::new().stack_size(64 << 10).spawn_scoped(scope, run).expect("a thread");
        }
        called.wait();
        let during = |work: &dyn Fn()| {
            let is_over = AtomicBool::new(false);
            thread::scope(|scope| {
                let calling = scope.spawn(|| calls(sites, &is_over));
                work();
                is_over.store(true, Relaxed);
                calling.join().expect("the calling thread")
            })
        };
        print("without snapshots", &during(&|| thread::sleep(PERIOD)));
        let snapshots = during(&|| {
            for _ in 0..SNAPSHOTS {
                let began = Instant::now();
                let sites = gpu_time::snapshot().sites.len();
                println!(
                    "a snapshot of {sites} functions on {THREADS} threads took {:?}",
                    began.elapsed()
                );
            }
        });
        print("during snapshots", &snapshots);
        done.wait();
    });
}
