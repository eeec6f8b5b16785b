//! The shapes that need unsafe code.
#![deny(warnings)]

#[allow(dead_code, unused_imports, unused_macros)] // Each root uses a part of it.
mod cuda;
mod launch_unsafe;
mod log;
#[allow(dead_code, unused_imports, unused_macros)] // Each root uses a part of it.
mod support;
mod unsafes;

fn main() {
    support::log_panics();
    support::run! {
        unsafes:
            unsafe_functions unsafe_methods foreign_abis exported_symbols called_back_from_c
            statics_and_unions lifetimes_by_hand unsafe_async target_features unsafe_launches
            raw_launches raw_handles streams_of_its_own stream_from_unsafe_code;
    }
}
