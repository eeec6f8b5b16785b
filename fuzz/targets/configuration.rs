//! Reads the configuration from environment variables. Each line of the input is one, as
//! `NAME=value`.

#![no_main]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use gpu_time_runtime::fuzzing;
use libfuzzer_sys::fuzz_target;

const FUNCTIONS: [&str; 3] = ["app::scale", "app::gemm::f32", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab"];

fuzz_target!(|text: &[u8]| {
    let var = |line: &[u8]| {
        let equals = line.iter().position(|byte| *byte == b'=')?;
        let string = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        Some((string(&line[..equals]), string(&line[equals + 1..])))
    };
    let vars: Vec<_> = text.split(|byte| *byte == b'\n').filter_map(var).collect();
    for message in fuzzing::read(&vars, &FUNCTIONS) {
        assert!(!message.chars().any(char::is_control), "{message:?} is not one line");
    }
});
