//! Builds the C library.

fn main() {
    println!("cargo:rerun-if-changed=src/vectors.c");
    cc::Build::new().file("src/vectors.c").warnings_into_errors(true).compile("vectors");
    println!("cargo:rustc-link-lib=dl");
}
