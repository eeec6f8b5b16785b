//! Builds the C library with a worker thread.

fn main() {
    println!("cargo::rerun-if-changed=src/worker.c");
    cc::Build::new().file("src/worker.c").warnings_into_errors(true).compile("worker");
}
